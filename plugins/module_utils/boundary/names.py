# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sets of DNS names: patterns with wildcards, closed under meet and minus, decided by walking their automata.

A pattern is a sequence of literal characters and wildcards. Two wildcards exist, because the field has two:
``STAR`` is any run of characters of one label (``*`` of Cilium inside a label), ``DEEP`` is one or more whole labels
(``*.`` of ClusterNetworkPolicy's ``domainNames``, ``**.`` of Cilium where supported). Names are lower case without the
final dot. The sets are of names that a peer may have been found under; ``absent`` says whether a peer without any name
is in the set as well.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

#: Any run (also an empty one) of characters that a label may have.
STAR = "*"
#: One or more whole labels, without the dot behind them.
DEEP = "**"

_LABEL = "abcdefghijklmnopqrstuvwxyz0123456789-_"
#: Stands for every label character that no pattern of a question mentions.
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """A name pattern as tokens: one character each, ``STAR`` or ``DEEP``."""

    tokens: tuple[str, ...]

    @classmethod
    def exact(cls, name: str) -> Pattern:
        """The pattern of one name."""
        return cls(tuple(name.lower().rstrip(".")))

    @classmethod
    def glob(cls, text: str, *, leading: str = STAR) -> Pattern:
        """``*`` inside a label is ``STAR``; a leading ``*.`` is ``leading``; ``**`` is ``DEEP``."""
        text = text.lower().rstrip(".")
        tokens: list[str] = []
        if text.startswith("*.") and leading != STAR:
            tokens.append(leading)
            text = text[1:]
        while text:
            token = DEEP if text.startswith(DEEP) else text[0]
            tokens.append(token)
            text = text[len(token) :]
        return cls(tuple(tokens))

    def matches(self, name: str) -> bool:
        """Whether the pattern covers the name."""
        return _regex(self).fullmatch(name.lower().rstrip(".")) is not None

    def __str__(self) -> str:
        return "".join(self.tokens)


@functools.lru_cache(maxsize=4096)
def _regex(pattern: Pattern) -> re.Pattern[str]:
    parts = {STAR: "[a-z0-9_-]*", DEEP: r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"}
    return re.compile("".join(parts.get(token) or re.escape(token) for token in pattern.tokens))


#: A Boolean expression over patterns: a pattern, or ("and", …), ("or", …), ("not", one).
Expression = t.Union[Pattern, tuple[t.Any, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class NameSet:
    """A set of names, and whether "no name is known" is in it.

    Attributes:
        absent: whether a peer without a name is in the set.
        which: the names as an expression; None is every name, ``("or",)`` is none.
    """

    absent: bool
    which: Expression | None

    @classmethod
    def of(cls, *patterns: Pattern) -> NameSet:
        """The names that at least one of the patterns covers."""
        return cls(absent=False, which=("or", *patterns))

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.absent and self.name() is None

    def meet(self, other: NameSet) -> NameSet:
        """What is in both."""
        absent = self.absent and other.absent
        if self.which is None or other.which is None:
            return NameSet(absent, other.which if self.which is None else self.which)
        return NameSet(absent, ("and", self.which, other.which))

    def minus(self, other: NameSet) -> NameSet:
        """What is in this one and not in the other."""
        absent = self.absent and not other.absent
        if other.which is None:
            return NameSet(absent, ("or",))
        rest: Expression = ("not", other.which)
        return NameSet(absent, rest if self.which is None else ("and", self.which, rest))

    def contains(self, value: object) -> bool:
        """Whether a name (None: no name is known) is in it."""
        if not isinstance(value, str):
            return self.absent
        return self.which is None or _holds(self.which, lambda pattern: pattern.matches(value))

    def name(self) -> str | None:
        """The shortest name of the set, or None when it holds no name."""
        return _shortest(self.which) if self.which is not None else "example.com"

    def example(self) -> str | None:
        """A name of the set, or None where a peer without a name will do."""
        return None if self.absent else self.name()

    def __str__(self) -> str:
        if self.which is None:
            return "every name"
        return ", ".join(str(pattern) for pattern in _patterns(self.which)) or "no name"


def _holds(which: Expression, covers: t.Callable[[Pattern], bool]) -> bool:
    if isinstance(which, Pattern):
        return covers(which)
    verb, *parts = which
    if verb == "not":
        return not _holds(parts[0], covers)
    return (all if verb == "and" else any)(_holds(part, covers) for part in parts)


def _patterns(which: Expression) -> list[Pattern]:
    if isinstance(which, Pattern):
        return [which]
    return list(dict.fromkeys(found for part in which[1:] for found in _patterns(part)))


# An automaton's state is a position among the tokens. A DEEP token has a second state while it is inside a label, so
# that it takes whole labels only: "at" (nothing of a label read) and "in" (at least one character read).
_State = tuple[int, bool]


def _closure(pattern: Pattern, states: frozenset[_State]) -> frozenset[_State]:
    found = set(states)
    todo = list(states)
    while todo:
        at, inside = todo.pop()
        if at >= len(pattern.tokens):
            continue
        token = pattern.tokens[at]
        if token == STAR or (token == DEEP and inside):
            step = (at + 1, False)
            if step not in found:
                found.add(step)
                todo.append(step)
    return frozenset(found)


def _step(pattern: Pattern, states: frozenset[_State], char: str) -> frozenset[_State]:
    found: set[_State] = set()
    for at, inside in states:
        if at >= len(pattern.tokens):
            continue
        token = pattern.tokens[at]
        if token == DEEP:
            if char != ".":
                found.add((at, True))
            elif inside:
                found.add((at, False))
        elif token == STAR:
            if char != ".":
                found.add((at, False))
        elif token == char:
            found.add((at + 1, False))
    return _closure(pattern, frozenset(found))


@functools.lru_cache(maxsize=4096)
def _shortest(which: Expression) -> str | None:
    """The shortest valid name for which the expression holds: a breadth-first walk of all automata at once."""
    patterns = _patterns(which)
    used = {token for pattern in patterns for token in pattern.tokens if token in _LABEL}
    fresh = next((char for char in "xyzabcdefghijklmnopqrstuvw0123456789" if char not in used), None)
    alphabet = sorted(used | ({fresh} if fresh else set()))
    start = tuple(_closure(pattern, frozenset({(0, False)})) for pattern in patterns)
    seen = {(start, False)}
    level: list[tuple[tuple[frozenset[_State], ...], bool, str]] = [(start, False, "")]
    while level:
        below: list[tuple[tuple[frozenset[_State], ...], bool, str]] = []
        for states, in_label, name in level:
            if in_label and _accepts(which, patterns, states):
                return name
            for char in [*alphabet, "."] if in_label else alphabet:
                step = tuple(_step(pattern, held, char) for pattern, held in zip(patterns, states, strict=True))
                mark = (step, char != ".")
                if mark not in seen:
                    seen.add(mark)
                    below.append((step, char != ".", name + char))
        level = below
    return None


def _accepts(which: Expression, patterns: list[Pattern], states: tuple[frozenset[_State], ...]) -> bool:
    done = {
        pattern: any(at == len(pattern.tokens) for at, _unused in held)
        for pattern, held in zip(patterns, states, strict=True)
    }
    return _holds(which, done.__getitem__)


def is_name(text: str) -> bool:
    """Whether a text is a plain DNS name (lower or upper case, a final dot allowed)."""
    return _NAME.fullmatch(text.lower().rstrip(".")) is not None
