# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sets of DNS names: patterns with wildcards, closed under meet and minus, decided by walking their automata.

Deciding this is hard for patterns that somebody builds to make it hard. For those as people write them it is quick, and
for the others it is bounded: a set that is not decided counts as holding a name, so what may be open is reported.

A pattern is a sequence of literal characters and wildcards. Two wildcards exist, because the field has two:
``STAR`` is any run of characters of one label (``*`` of Cilium inside a label), ``DEEP`` is one or more whole labels
(``*.`` of ClusterNetworkPolicy's ``domainNames``, ``**.`` of Cilium where supported). Names are lower case without the
final dot. The sets are of names that a peer may have been found under; ``absent`` says whether a peer without any name
is in the set as well.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import typing as t

#: Any run (also an empty one) of characters that a label may have.
STAR = "*"
#: One or more whole labels, without the dot behind them.
DEEP = "**"

_LABEL = "abcdefghijklmnopqrstuvwxyz0123456789-_"
#: The same in the order in which they are taken where any will do.
_FRESH = "xyzabcdefghijklmnopqrstuvw0123456789_-"
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
        """A name of the set, or None when it holds no name."""
        return _some_name(self.which) if self.which is not None else "example.com"

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


#: Patterns that a name must match, and patterns that it must not match.
_Conjunction = tuple[frozenset[Pattern], frozenset[Pattern]]

#: Above this many states of one search the set counts as holding a name: what is open is then reported, not missed.
MOST_STATES = 2_000
#: Above this many conjunctions the same holds.
MOST_CONJUNCTIONS = 500


@functools.lru_cache(maxsize=4096)
def _some_name(which: Expression) -> str | None:
    """A valid name for which the expression holds.

    The expression becomes a disjunction of conjunctions, in which those that hold no name are left out as early as
    possible: most patterns of a policy have no name in common, so few are left. Each of them is then decided alone.
    """
    found = (_name_of(*one) for one in _conjunctions(which, negated=False))
    return next((name for name in found if name is not None), None)


def _conjunctions(which: Expression, *, negated: bool) -> list[_Conjunction]:
    """The expression as conjunctions of which one must hold."""
    if isinstance(which, Pattern):
        one = frozenset({which})
        return [(frozenset(), one) if negated else (one, frozenset())]
    verb, *parts = which
    if verb == "not":
        return _conjunctions(parts[0], negated=not negated)
    inner = [_conjunctions(part, negated=negated) for part in parts]
    if (verb == "or") != negated:
        return list(dict.fromkeys(one for part in inner for one in part))
    # Parts without a choice first: they cut down what the others are multiplied with.
    held: list[_Conjunction] = [(frozenset(), frozenset())]
    for part in sorted(inner, key=len):
        pairs = (_both(one, other) for one in held for other in part)
        held = list(dict.fromkeys(both for both in pairs if both is not None))
        if len(held) > MOST_CONJUNCTIONS:
            # Fewer demands hold more names, so what is left out here can only make the set larger.
            return [*held[:MOST_CONJUNCTIONS], (frozenset(), frozenset())]
    return held


def _both(one: _Conjunction, other: _Conjunction) -> _Conjunction | None:
    """Two conjunctions as one without what follows from the rest, or None when no name can be in both."""
    if any(_apart(mine, its) for mine in one[0] for its in other[0]):
        return None
    wanted, unwanted = one[0] | other[0], one[1] | other[1]
    for broad in wanted:
        if any(_covers(broad, narrow) for narrow in wanted - {broad}):
            wanted -= {broad}
    if any(_covers(broad, narrow) for broad in unwanted for narrow in wanted):
        return None
    return wanted, unwanted


def _apart(one: Pattern, other: Pattern) -> bool:
    """Whether two patterns surely have no name in common: they differ before the first or behind the last wildcard."""
    return _differ(one.tokens, other.tokens) or _differ(one.tokens[::-1], other.tokens[::-1])


def _differ(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    for mine, its in itertools.zip_longest(one, other):
        if mine in {STAR, DEEP} or its in {STAR, DEEP}:
            return False
        if mine != its:
            return True
    return False


@functools.lru_cache(maxsize=65536)
def _covers(broad: Pattern, narrow: Pattern) -> bool:
    """Whether every name of the narrow pattern is one of the broad pattern; False where it takes more to know."""
    if broad == narrow:
        return True
    fills = _fills(narrow, [broad])
    return fills is not None and all(map(broad.matches, fills))


def _name_of(wanted: frozenset[Pattern], unwanted: frozenset[Pattern]) -> str | None:
    """A valid name that all wanted patterns cover and no unwanted one."""
    # What has no name in common with the wanted patterns takes nothing away from them.
    near = [one for one in unwanted if not any(_apart(one, other) for other in wanted)]
    for pattern in sorted(wanted, key=str):
        fills = _fills(pattern, [*wanted, *near])
        for name in fills or ():
            if all(one.matches(name) for one in wanted) and not any(one.matches(name) for one in near):
                return name
        if fills is not None and len(wanted) == 1:
            return None
    return _walk(wanted, frozenset(near))


def _fills(pattern: Pattern, others: t.Sequence[Pattern]) -> list[str] | None:
    """Names of a pattern of which some other pattern covers each only when these patterns cover all of its names.

    A character that no pattern names is taken by their wildcards alone, and these take any other text in its place. So
    a name with such a character for each wildcard stands for all names of as many labels. And from some number of
    labels on, more of them make no difference.

    Returns:
        The names, none when the pattern has no valid name; None when there is no such character, or more than one DEEP.
    """
    taken = {token for one in others for token in one.tokens}
    fresh = next((char for char in _FRESH if char not in taken), None)
    if fresh is None or pattern.tokens.count(DEEP) > 1:
        return None
    most = 1
    if DEEP in pattern.tokens:
        most = 2 + max((one.tokens.count(".") + 1 for one in others), default=0)
    found = []
    for labels in range(1, most + 1):
        words = {STAR: fresh, DEEP: ".".join([fresh] * labels)}
        found.append("".join(words.get(token, token) for token in pattern.tokens))
    return list(filter(is_name, found))


@dataclasses.dataclass(frozen=True, slots=True)
class _Automaton:
    """A pattern as an automaton whose set of states is one number: bit n is "before place n of the tokens".

    A DEEP token has two places, at the beginning of a label and inside of one, so that it takes whole labels only.

    Attributes:
        literal: for each character, the places that take it and lead to the next place.
        star: the places that take any character of a label and stay.
        deep: the first places of the DEEP tokens; the second ones are one bit above.
        skip: the places that may be left without taking anything.
        end: the bit behind the last place.
    """

    literal: t.Mapping[str, int]
    star: int
    deep: int
    skip: int
    end: int

    @property
    def start(self) -> int:
        """The states before the first character."""
        return self._closed(1)

    def step(self, states: int, char: str) -> int:
        """The states after one character more."""
        found = (states & self.literal.get(char, 0)) << 1
        inside = self.deep << 1
        if char == ".":
            found |= (states & inside) >> 1
        else:
            found |= (states & (self.star | inside)) | ((states & self.deep) << 1)
        return self._closed(found)

    def takes(self, states: int, labels: t.Sequence[str]) -> t.Sequence[str]:
        """The characters among these and the dot that lead on from the states."""
        if states & (self.star | self.deep | (self.deep << 1)):
            return [*labels, "."]
        return [char for char, places in self.literal.items() if places & states]

    def _closed(self, states: int) -> int:
        while (wider := states | ((states & self.skip) << 1)) != states:
            states = wider
        return states


@functools.lru_cache(maxsize=4096)
def _automaton(pattern: Pattern) -> _Automaton:
    literal: dict[str, int] = {}
    star = deep = skip = 0
    place = 1
    for token in pattern.tokens:
        if token == STAR:
            star |= place
            skip |= place
        elif token == DEEP:
            deep |= place
            place <<= 1
            skip |= place
        else:
            literal[token] = literal.get(token, 0) | place
        place <<= 1
    return _Automaton(literal, star, deep, skip, place)


@functools.lru_cache(maxsize=65536)
def _walk(wanted: frozenset[Pattern], unwanted: frozenset[Pattern]) -> str | None:
    """The shortest valid name that all wanted patterns cover and no unwanted one, by walking all automata at once.

    Ways on which a wanted pattern cannot hold any more are left. What the rest comes to is small for patterns as people
    write them; a search that grows beyond ``MOST_STATES`` ends with a name of the wanted patterns, or of one of them.
    """
    patterns = sorted(wanted, key=str) + sorted(unwanted, key=str)
    machines = [_automaton(pattern) for pattern in patterns]
    needed = len(wanted)
    used = {char for machine in machines for char in machine.literal}
    fresh = next((char for char in _FRESH if char not in used), None)
    labels = sorted({char for char in used if char in _LABEL} | ({fresh} if fresh else set()))
    states = tuple(machine.start for machine in machines)
    seen = {(states, False)}
    level: list[tuple[tuple[int, ...], bool, str]] = [(states, False, "")]
    while level:
        below: list[tuple[tuple[int, ...], bool, str]] = []
        for states, in_label, name in level:
            if in_label and all(
                bool(held & machine.end) == (index < needed)
                for index, (held, machine) in enumerate(zip(states, machines, strict=True))
            ):
                return name
            for char in machines[0].takes(states[0], labels) if needed else [*labels, "."]:
                if char == "." and not in_label:
                    continue
                step = tuple([machine.step(held, char) for held, machine in zip(states, machines, strict=True)])
                mark = (step, char != ".")
                if mark not in seen and 0 not in step[:needed]:
                    seen.add(mark)
                    below.append((step, char != ".", name + char))
        if len(seen) > MOST_STATES and len(patterns) > 1:
            return _walk(wanted if unwanted else frozenset(patterns[:1]), frozenset())
        level = below
    return None


def is_name(text: str) -> bool:
    """Whether a text is a plain DNS name (lower or upper case, a final dot allowed)."""
    return _NAME.fullmatch(text.lower().rstrip(".")) is not None
