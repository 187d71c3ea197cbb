# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Label selectors, and the exact sets of label values that they stand for.

A label's value is a text, or ``None`` where the object does not carry the key. So ``NotIn`` and ``DoesNotExist`` hold
for an absent key without a special case, and a selector is a conjunction of one ``ValueSet`` a key.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ..errors import QuestionError

Labels = c.Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class ValueSet:
    """A finite set of values, or everything but a finite set. ``None`` is "not there".

    Attributes:
        values: the values named.
        others: False when the set is exactly ``values``; True when it is everything else.
    """

    values: frozenset[str | None]
    others: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is in it; a co-finite set never is."""
        return not self.others and not self.values

    def meet(self, other: ValueSet) -> ValueSet:
        """What is in both."""
        if self.others and other.others:
            return ValueSet(self.values | other.values, others=True)
        if self.others:
            return ValueSet(other.values - self.values)
        return ValueSet(self.values - other.values if other.others else self.values & other.values)

    def minus(self, other: ValueSet) -> ValueSet:
        """What is in this one and not in the other."""
        return self.meet(ValueSet(other.values, others=not other.others))

    def contains(self, value: object) -> bool:
        """Whether a value (None: the key is absent) is in it."""
        return (value in self.values) != self.others

    def example(self) -> str | None:
        """One value: absent where that is allowed, a named one before a made-up one."""
        if self.contains(None):
            return None
        if not self.others:
            return min(value for value in self.values if value is not None)
        made = "any"
        while made in self.values:
            made += "-other"
        return made

    def __str__(self) -> str:
        return ("not " if self.others else "") + "|".join(sorted("absent" if v is None else v for v in self.values))


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    """A compiled ``LabelSelector``: every requirement must hold. No requirement at all selects everything.

    Attributes:
        equal: the ``matchLabels``, and ``In`` with one value, for the fast way.
        other: the remaining requirements by key.
    """

    equal: frozenset[tuple[str, str]] = frozenset()
    other: tuple[tuple[str, ValueSet], ...] = ()

    @property
    def everything(self) -> bool:
        """Whether it is the empty selector."""
        return not self.equal and not self.other

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        return self.matches_items(labels.items(), labels)

    def matches_items(self, items: c.Set[tuple[str, str]], labels: Labels) -> bool:
        """``matches`` with the label items at hand, for many selectors over one pod."""
        if not self.equal <= items:
            return False
        return all(held.contains(labels.get(key)) for key, held in self.other)

    def needs(self) -> dict[str, ValueSet]:
        """The requirement on each key, several on one key met; a contradiction is an empty set."""
        found: dict[str, ValueSet] = {}
        for key, value in self.equal:
            only = ValueSet(frozenset({value}))
            found[key] = found[key].meet(only) if key in found else only
        for key, held in self.other:
            found[key] = found[key].meet(held) if key in found else held
        return found

    def __str__(self) -> str:
        if self.everything:
            return "any"
        return ", ".join(f"{key}={held}" for key, held in sorted(self.needs().items()))


EVERYTHING = Selector()

#: matchExpressions operators and the set of values each stands for.
OPERATORS: dict[str, t.Callable[[frozenset[str | None]], ValueSet]] = {
    "In": ValueSet,
    "NotIn": lambda values: ValueSet(values, others=True),
    "Exists": lambda _: ValueSet(frozenset({None}), others=True),
    "DoesNotExist": lambda _: ValueSet(frozenset({None})),
}


def selector(match_labels: c.Mapping[str, str], expressions: c.Iterable[tuple[str, str, c.Iterable[str]]]) -> Selector:
    """A selector from ``matchLabels`` and ``(key, operator, values)``; operators are those of ``OPERATORS``."""
    equal = set(match_labels.items())
    other: list[tuple[str, ValueSet]] = []
    for key, operator, values in expressions:
        held = OPERATORS[operator](frozenset(values))
        if operator == "In" and len(held.values) == 1:
            equal.add((key, t.cast("str", next(iter(held.values)))))
        else:
            other.append((key, held))
    return Selector(frozenset(equal), tuple(other))


_REQUIREMENT = re.compile(
    r"\s*(?:(?P<absent>!\s*)?(?P<key>[\w./-]+)\s*(?:(?P<equal>==?|!=)\s*(?P<value>[\w.-]*)"
    r"|\s(?P<operator>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)


def parse_selector(text: str) -> Selector:
    """A label selector as kubectl takes it (``a=b,c!=d,e in (f, g),!h``); an empty text selects everything.

    Raises:
        QuestionError: it is not one.
    """
    expressions: list[tuple[str, str, list[str]]] = []
    place = 0
    while place < len(text.rstrip()):
        found = _REQUIREMENT.match(text, place)
        if found is None or (found["absent"] and (found["equal"] or found["operator"])):
            raise QuestionError(
                f"{text!r} is not a label selector.", next_step="Write it as kubectl takes it: a=b,c!=d."
            )
        if found["equal"]:
            expressions.append((found["key"], "NotIn" if found["equal"] == "!=" else "In", [found["value"]]))
        elif found["operator"]:
            values = [value.strip() for value in found["values"].split(",")]
            expressions.append((found["key"], "In" if found["operator"] == "in" else "NotIn", values))
        else:
            expressions.append((found["key"], "DoesNotExist" if found["absent"] else "Exists", []))
        place = found.end()
    return selector({}, expressions)
