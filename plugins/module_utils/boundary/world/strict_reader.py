# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Strict reading of plain Kubernetes data: the value of the right type, or a ``PolicyError`` that names the field.

``null`` reads as "not there", as the API server reads it. A field that nobody asked for is reported by ``unknown``, so
that the caller can count what it might mean as open.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ..errors import PolicyError
from ..sets.addresses import AddressSet, parse_cidr
from ..sets.ports import TRANSPORTS
from ..sets.selectors import EVERYTHING, OPERATORS, Selector, selector


class Reader:
    """One mapping inside an object, with the path that leads to it.

    Attributes:
        body: the mapping.
        object: the object, as ``Kind namespace/name``.
    """

    __slots__ = ("_index", "_key", "_parent", "body", "object")

    def __init__(
        self, body: object, object_: str, path: str = "", parent: Reader | None = None, index: int | None = None
    ) -> None:
        self.object = object_
        # The path is put together when it is asked for, which is in errors alone.
        self._key = path
        self._parent = parent
        self._index = index
        if not isinstance(body, dict):
            raise PolicyError(f"expected a mapping, got {_kind_of(body)}", object=object_, field=self.path)
        self.body: dict[str, t.Any] = body

    @property
    def path(self) -> str:
        """The mapping's path inside the object, empty at its root."""
        key = self._key if self._index is None else f"{self._key}[{self._index}]"
        return key if self._parent is None else self._parent.at(key)

    def at(self, key: str) -> str:
        """The path of a field of this mapping."""
        path = self.path
        return f"{path}.{key}" if path else key

    def error(self, problem: str, key: str = "") -> PolicyError:
        """The error of a field, to raise."""
        return PolicyError(problem, object=self.object, field=self.at(key) if key else self.path)

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.body.get(key) is not None

    def unknown(self, known: c.Set[str]) -> list[str]:
        """The fields that are present and not among the known ones, by path."""
        if self.body.keys() <= known:
            return []
        return [self.at(str(key)) for key, value in self.body.items() if key not in known and value is not None]

    def mapping(self, key: str) -> Reader | None:
        """A mapping below this one, or None when it is not there."""
        value = self.body.get(key)
        return None if value is None else Reader(value, self.object, key, self)

    def required(self, key: str) -> Reader:
        """A mapping that must be there."""
        held = self.mapping(key)
        if held is None:
            raise self.error("expected a mapping, got nothing", key)
        return held

    def items(self, key: str) -> list[Reader] | None:
        """A list of mappings, or None when it is not there; an empty list is an empty list."""
        if self.body.get(key) is None:
            return None
        value = self.sequence(key) or ()
        return [Reader(item, self.object, key, self, index) for index, item in enumerate(value)]

    def sequence(self, key: str) -> list[t.Any] | None:
        """A list of anything, or None when it is not there."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(f"expected a list, got {_kind_of(value)}", key)
        return value

    def text(self, key: str) -> str | None:
        """A text, or None when it is not there."""
        value = self.body.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"expected a text, got {_kind_of(value)}", key)
        return value

    def number(self, key: str, low: int, high: int) -> int | None:
        """A whole number between the bounds, both included, or None when it is not there."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"expected a number, got {_kind_of(value)}", key)
        if not low <= value <= high:
            raise self.error(f"{value} is not between {low} and {high}", key)
        return value

    def truth(self, key: str) -> bool | None:
        """A truth value, or None when it is not there."""
        value = self.body.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"expected true or false, got {_kind_of(value)}", key)
        return value

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None when it is not there."""
        value = self.sequence(key)
        if value is None:
            return None
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.error(f"expected a text, got {_kind_of(item)}", f"{key}[{index}]")
        return value

    def labels(self, key: str) -> dict[str, str]:
        """A mapping of texts; empty when it is not there."""
        value = self.body.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"expected a mapping, got {_kind_of(value)}", key)
        for name, item in value.items():
            if not isinstance(name, str) or not isinstance(item, str):
                raise self.error(f"expected texts, got {name!r}: {item!r}", key)
        return value

    def cidr(self, key: str) -> AddressSet | None:
        """A CIDR block, or None when it is not there."""
        value = self.text(key)
        return None if value is None else self.block(value, key)

    def block(self, value: str, key: str) -> AddressSet:
        """A text of this mapping as a CIDR block with a prefix length."""
        if "/" not in value:
            raise self.error(f"{value!r} has no prefix length", key)
        try:
            return parse_cidr(value)
        except ValueError as exc:
            raise self.error(str(exc), key) from exc

    def protocol(self, key: str) -> str | None:
        """TCP, UDP or SCTP, or None when it is not there."""
        value = self.text(key)
        if value is not None and value not in TRANSPORTS:
            raise self.error(f"{value!r} is none of {', '.join(TRANSPORTS)}", key)
        return value

    def selector(self, key: str) -> Selector | None:
        """A ``LabelSelector``, or None when it is not there; an empty one selects everything."""
        value = self.body.get(key)
        if value is None:
            return None
        return EVERYTHING if value == {} else read_selector(Reader(value, self.object, key, self))


_SELECTOR_FIELDS = frozenset({"matchLabels", "matchExpressions"})


def read_selector(reader: Reader) -> Selector:
    """A ``LabelSelector`` mapping as a compiled selector.

    Raises:
        PolicyError: an operator that does not exist, values where none belong, none where some belong, an unknown
            field: what a selector selects must never be guessed.
    """
    if not reader.body:
        return EVERYTHING
    if not reader.body.keys() <= _SELECTOR_FIELDS:
        for path in reader.unknown(_SELECTOR_FIELDS):
            raise PolicyError("unknown field in a label selector", object=reader.object, field=path)
    if "matchExpressions" not in reader.body:
        return Selector(frozenset(reader.labels("matchLabels").items()))
    expressions: list[tuple[str, str, list[str]]] = []
    for entry in reader.items("matchExpressions") or ():
        key, operator = entry.text("key"), entry.text("operator")
        values = entry.texts("values") or []
        if not key:
            raise entry.error("a requirement needs a key", "key")
        if operator not in OPERATORS:
            raise entry.error(f"{operator!r} is none of {', '.join(OPERATORS)}", "operator")
        if (operator in {"In", "NotIn"}) != bool(values):
            raise entry.error(f"{operator} {'takes no' if values else 'needs'} values", "values")
        expressions.append((key, operator, values))
    return selector(reader.labels("matchLabels"), expressions)


def _kind_of(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", int: "a number"}
    return names.get(type(value), type(value).__name__)
