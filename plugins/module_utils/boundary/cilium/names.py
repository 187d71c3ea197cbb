# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""DNS names and the patterns that Cilium matches them with.

Cilium (v1.20.2, ``pkg/fqdn/matchpattern`` and ``pkg/policy/api/fqdn.go``) reads ``matchName``, ``matchPattern`` and
``serverNames`` alike: case does not count, a trailing dot is added, ``*`` stands for any number of the characters of
one label, ``*`` alone for every name, and a leading ``**.`` for one or more whole labels. So ``*.x`` matches neither
``x`` nor ``a.b.x``. Older versions read ``**.`` like ``*.``, which is narrower.

Matching goes label by label with the greedy search for wildcards, so that no pattern can make it slow.
"""

from __future__ import annotations

import re
import typing as t

from ..sets.names import DEEP, NameSet, Pattern

_ALLOWED = frozenset("-_abcdefghijklmnopqrstuvwxyz0123456789")
_EVERYTHING = re.compile(r"[*]+[.]?\Z")
_CHARACTERS = re.compile(r"[-a-zA-Z0-9_.*]*\Z")
LONGEST = 255
"""Cilium refuses longer names and patterns (``matchpattern.MaxFQDNLength``)."""


def _label_matches(pattern: str, label: str) -> bool:
    """Tell whether one label matches one label's pattern."""
    at = back = next_part = 0
    star: int | None = None
    while at < len(label):
        if next_part < len(pattern) and pattern[next_part] == "*":
            star, back = next_part, at
            next_part += 1
        elif next_part < len(pattern) and pattern[next_part] == label[at]:
            next_part, at = next_part + 1, at + 1
        elif star is not None and label[back] in _ALLOWED:
            # The last star takes one character more.
            back += 1
            next_part, at = star + 1, back
        else:
            return False
    return not pattern[next_part:].strip("*")


@t.final
class NamePattern:
    """The names that one ``matchName`` or ``matchPattern`` selects.

    Args:
        text: the name or pattern as the policy gives it.
        exact: whether it is a name (``matchName``), in which ``*`` is no wildcard.

    Raises:
        ValueError: for characters or a length that Cilium refuses.
    """

    __slots__ = ("_labels", "deep", "every", "text", "wildcards")

    def __init__(self, text: str, *, exact: bool = False) -> None:
        pattern = text.strip().lower()
        if not _CHARACTERS.match(pattern) or len(pattern) > LONGEST or (exact and "*" in pattern):
            raise ValueError(f"{text!r} is not a name that Cilium can match")
        self.text = text
        self.every = bool(_EVERYTHING.match(pattern))
        labels = pattern.removesuffix(".").split(".")
        self.deep = len(labels) > 1 and len(labels[0]) > 1 and not labels[0].strip("*")
        self.wildcards = 0 if self.every else len(re.findall(r"[*]+", pattern))
        self._labels = tuple(re.sub(r"[*]+", "*", label) for label in (labels[1:] if self.deep else labels))

    def __repr__(self) -> str:
        return f"NamePattern({self.text!r})"

    def matches(self, name: str) -> bool:
        """Tell whether *name* (with or without the trailing dot) is selected."""
        labels = name.strip().lower().removesuffix(".").split(".")
        if self.every:
            return all(label and set(label) <= _ALLOWED for label in labels)
        if self.deep:
            spare = len(labels) - len(self._labels)
            if spare < 1 or not all(label and set(label) <= _ALLOWED for label in labels[:spare]):
                return False
            labels = labels[spare:]
        return len(labels) == len(self._labels) and all(map(_label_matches, self._labels, labels))

    def as_pattern(self) -> Pattern:
        """Return it as a pattern of the algebra; not for a pattern that selects every name."""
        return Pattern(((DEEP, ".") if self.deep else ()) + tuple(".".join(self._labels)))


def selector_patterns(items: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[NamePattern, ...]:
    """Read a list of ``matchName`` and ``matchPattern`` items.

    Raises:
        ValueError: for an item that Cilium refuses.
    """
    patterns = []
    for item in items:
        name, pattern = item.get("matchName") or "", item.get("matchPattern") or ""
        if not isinstance(name, str) or not isinstance(pattern, str):
            raise ValueError("matchName and matchPattern are strings")  # noqa: TRY004 - fields
        if name and pattern:
            raise ValueError(f"only one of matchName {name!r} and matchPattern {pattern!r} may be in an item")
        # An item without either is the empty pattern, which selects the root alone (fqdn.go: FQDN("") is ".").
        patterns.append(NamePattern(name or pattern, exact=bool(name)))
    return tuple(patterns)


def name_set(patterns: t.Iterable[NamePattern]) -> NameSet:
    """The names that at least one pattern selects, as a set of the algebra."""
    found = []
    for pattern in patterns:
        if pattern.every:
            return NameSet(absent=False, which=None)
        found.append(pattern.as_pattern())
    return NameSet.of(*found)
