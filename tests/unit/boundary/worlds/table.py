# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of the tables of small worlds: policies, the documented rule that decides, its source, and questions."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

Body = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Row:
    """One question and its answer.

    Attributes:
        direction, peer, protocol, port: the traffic, as the judged pod sees it.
        allowed: whether the documented rule lets it through.
    """

    direction: str
    peer: str
    protocol: str
    port: int
    allowed: bool


@dataclasses.dataclass(frozen=True)
class Case:
    """A small world.

    Attributes:
        name: what it shows.
        rule: the documented rule that decides it, in our words.
        source: where the rule is written.
        policies: the policies.
        questions: ``direction: peer protocol/port open|closed, …``, several directions separated by semicolons.
        brute: whether the brute-force reading understands the policies.
    """

    name: str
    rule: str
    source: str
    policies: list[Body]
    questions: str
    brute: bool = True

    @property
    def rows(self) -> c.Iterator[Row]:
        """The questions, one by one."""
        for part in self.questions.split(";"):
            direction, _unused, listed = part.strip().partition(": ")
            for question in listed.split(","):
                peer, port, answer = question.split()
                assert answer in {"open", "closed"}, question
                assert direction in {"egress", "ingress"}, part
                protocol, _unused, number = port.partition("/")
                yield Row(direction, peer, protocol, int(number), answer == "open")
