# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The result of a verification: whether the boundary holds, and if not, the evidence."""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Traffic that is, or may be, allowed and should not be.

    Attributes:
        direction: ``egress`` or ``ingress``.
        policy: the policy that allows it, as ``Kind namespace/name``, or None when no policy closes it.
        rule: the number of the rule in the policy, or None.
        peers: the excess peers, for people.
        ports: the excess ports, for people.
        example: one peer of them: a pod that exists, else a description.
        address: one address of that peer, where an address says something.
        protocol, port: one port of them; the message type for ICMP.
        reason: why it is undecided, or None when it is certain.
    """

    direction: str
    policy: str | None
    rule: int | None
    peers: str
    ports: str
    example: str
    address: str | None
    protocol: str
    port: int
    reason: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        """The finding as plain data."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        source = "no policy closes it" if self.policy is None else self.policy
        if self.rule is not None:
            source += f", {self.direction} rule {self.rule}"
        place = "to" if self.direction == "egress" else "from"
        text = f"{source}: {place} {self.peers} on {self.ports}"
        text += f", for example {self.example} on {self.protocol} {self.port}"
        return text if self.reason is None else f"{text} (undecided: {self.reason})"


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one direction of a pod's traffic stays within what was asked.

    Attributes:
        holds: True only when there is neither a finding nor an undecided one.
        subject: the pod.
        direction: ``egress`` or ``ingress``.
        request: what was asked, for people.
        findings: certain excess, at most one a rule and reason.
        undecided: traffic that counts as open because it cannot be known to be closed; each says why.
        policies: the policies that apply to the pod in this direction.
        isolated_by: those of them that close what they do not allow.
        notes: what else a reader should know.
        unread: sources of policies that were not read; the verdict says nothing about them.
    """

    holds: bool
    subject: str
    direction: str
    request: str
    findings: tuple[Finding, ...] = ()
    undecided: tuple[Finding, ...] = ()
    policies: tuple[str, ...] = ()
    isolated_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        """The verdict as plain data."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        head = f"{self.direction} of {self.subject} {'stays' if self.holds else 'does not stay'} within {self.request}"
        lines = [*map(str, self.findings), *map(str, self.undecided), *self.notes]
        lines += [f"not read: {source}" for source in self.unread]
        return "\n".join([head, *(f"- {line}" for line in lines)])
