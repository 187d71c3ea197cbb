# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""All pods of a namespace against all of their peers: who may reach whom, on which ports, and which policy says so.

Rows are groups of pods (``groups``). Columns are the same groups, the groups of pods elsewhere, the nodes, and the
addresses outside by what they are. A cell has both directions, each with the rules that open it. Between two judged
pods a direction is open on the ports that both ends let through.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import typing as t

from ..engines.flow import Hit, Memo, allowed_with, flow
from ..engines.model import DENY, EGRESS, INGRESS, Direction, Rule
from ..sets import boxes
from ..sets.addresses import ALL_ADDRESSES, AddressSet
from ..sets.boxes import ADDRESS, LOCAL, NODE, OTHER, OUTSIDE, Box, Region
from ..sets.ports import NO_PORTS, PortSet, union_of
from ..sets.selectors import ValueSet
from ..world.objects import Pod, World
from ..world.peers import of_pod
from .groups import Group, grouped
from .requests import public
from .witness import realizable, show_peers

#: What a cloud tells a machine about itself, also its keys.
METADATA = AddressSet.of("169.254.169.254/32", "168.63.129.16/32", "fd00:ec2::254/128")

#: Rules that a cell names; of the others it has the number.
MOST_EVIDENCE = 20

#: Why a pod on its node's network may get in whatever policies say.
OWN_NODE = "where it runs on the pod's own node, which no policy closes"

#: Peers of one rule that are shown.
MOST_PEERS = 6

State = t.Literal["open", "perhaps", "closed", "self"]


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One rule that opens traffic, or that nothing closes it.

    Attributes:
        end: the pods that its policy selects, by the name of their group.
        direction: ``egress`` or ``ingress`` of that end.
        policy: ``Kind namespace/name``, or None when no policy closes it.
        rule: the number of the rule, or None.
        peers, ports: what the rule opens of this cell, for people.
        reason: why it is not sure, or None.
    """

    end: str
    direction: str
    policy: str | None
    rule: int | None
    peers: str
    ports: str
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Side:
    """One direction of a cell.

    Attributes:
        state: ``open``, ``perhaps`` (only by rules that cannot be known to match), ``closed``, or ``self`` for a group
            of one pod, which reaches itself whatever policies say.
        ports: what is open, for people.
        perhaps: what else may be open, for people; empty when nothing is.
        evidence: the rules that open it, at most ``MOST_EVIDENCE``.
        more: how many rules beyond these.
        closed_by: the policies that close what nothing opens, at the ends that do; at most ``MOST_EVIDENCE``.
    """

    state: State
    ports: str
    perhaps: str = ""
    evidence: tuple[Evidence, ...] = ()
    more: int = 0
    closed_by: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Cell:
    """The traffic between one group of pods and one peer: ``egress`` to the peer, ``ingress`` from the peer."""

    row: str
    peer: str
    egress: Side
    ingress: Side


@dataclasses.dataclass(frozen=True)
class Column:
    """A peer: name, kind (``pods``, ``outside``, ``nodes`` or ``entities``), and its number of pods."""

    name: str
    kind: str
    pods: int = 0


@dataclasses.dataclass(frozen=True)
class Matrix:
    """All cells, and what the rows and columns are.

    Attributes:
        rows: the groups of judged pods.
        peers: the columns.
        cells: one for each row and column, row by row.
        unread: sources of policies that were not read.
    """

    rows: tuple[Group, ...]
    peers: tuple[Column, ...]
    cells: tuple[Cell, ...]
    unread: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        """The matrix as plain data."""
        return {
            "rows": [
                {
                    "name": row.name,
                    "namespace": row.namespace,
                    "labels": row.labels,
                    "pods": [pod.name for pod in row.pods],
                    "policies": {
                        way: sorted({name for tier in side.tiers for name in tier.policy_names})
                        for way, side in _sides(row).items()
                    },
                    "isolated": {way: side.isolated for way, side in _sides(row).items()},
                    "notes": sorted({note for side in _sides(row).values() for note in side.notes}),
                }
                for row in self.rows
            ],
            "peers": [dataclasses.asdict(peer) for peer in self.peers],
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
            "unread": list(self.unread),
        }


def matrix(world: World, judged: c.Collection[Pod], engine: str = "core") -> Matrix:
    """The matrix of some pods.

    Args:
        world: all that is known; every pod in it becomes a peer.
        judged: the pods of the rows; they are in the world.
        engine: ``core`` or ``cilium``.

    Raises:
        PolicyError: a policy that selects a judged pod is malformed.
        QuestionError: there is no such engine.
    """
    groups = grouped(world, judged, engine)
    rows = [group for group in groups if group.reach is not None]
    places = _places(engine)
    cells: list[Cell] = []
    for row in rows:
        cells.extend(_between(world, row, peer) for peer in groups)
        cells.extend(_with_place(world, row, name, start) for name, (_kind, start) in places.items())
    peers = [Column(group.name, "pods", len(group.pods)) for group in groups]
    peers += [Column(name, kind) for name, (kind, _start) in places.items()]
    return Matrix(tuple(rows), tuple(peers), tuple(cells), world.unread)


def _places(engine: str) -> dict[str, tuple[str, Region]]:
    """The columns that are no pods."""
    internet = public()
    private = ALL_ADDRESSES.minus(internet).minus(METADATA)
    outside = frozenset({OUTSIDE})
    elsewhere = ValueSet(frozenset({"yes"}), others=True)
    found: dict[str, tuple[str, Region]] = {
        "The internet": ("outside", [Box(outside, {ADDRESS: internet})]),
        "Private and special addresses": ("outside", [Box(outside, {ADDRESS: private})]),
        "Cloud metadata services": ("outside", [Box(outside, {ADDRESS: METADATA})]),
        "Nodes other than its own": ("nodes", [Box(frozenset({NODE}), {LOCAL: elsewhere})]),
    }
    if engine == "cilium":
        found["Other entities of Cilium"] = ("entities", [Box(frozenset({OTHER}))])
    return found


def _sides(group: Group) -> dict[str, Direction]:
    if group.reach is None:
        return {}
    return {EGRESS: group.reach.compiled.egress, INGRESS: group.reach.compiled.ingress}


def _between(world: World, row: Group, peer: Group) -> Cell:
    if peer is row and len(peer.pods) == 1:
        itself = Side("self", "every port and protocol")
        return Cell(row.name, peer.name, itself, itself)
    there = peer.pods[1] if peer is row else peer.pod
    here = there if peer is row else row.pod
    ends = {direction: _end(world, row, there, direction) for direction in (EGRESS, INGRESS)}
    others = {direction: _end(world, peer, here, direction) for direction in (EGRESS, INGRESS)}

    def way(source: _End | None, target: _End | None) -> Side:
        return _joined([end for end in (source, target) if end is not None])

    return Cell(row.name, peer.name, way(ends[EGRESS], others[INGRESS]), way(others[EGRESS], ends[INGRESS]))


@dataclasses.dataclass(frozen=True)
class _End:
    """What one end of a connection lets through.

    Attributes:
        ports: what is open, and what may be open, for each IP version of the peer; None for an unknown address.
        evidence, closed_by: as in ``Side``.
    """

    ports: c.Mapping[int | None, tuple[PortSet, PortSet]]
    evidence: list[Evidence]
    closed_by: tuple[str, ...]


def _end(world: World, group: Group, peer: Pod, direction: str) -> _End | None:
    """What the policies of a group let through to or from a pod; None when the group is not judged."""
    if group.reach is None:
        return None
    compiled = group.reach.compiled
    rules = compiled.direction(direction)
    hits: dict[int | None, list[Hit]] = {}
    for endpoint in of_pod(world, peer, group.pod):
        found = hits.setdefault(endpoint.address and endpoint.address[0], [])
        # The pods of a group are on several nodes, and so may be those of the other.
        found.extend(allowed_with(rules, dataclasses.replace(compiled.seen(endpoint), local=False)))
        if endpoint.kind == NODE and rules.always:
            found.append(Hit(None, [boxes.EVERYTHING], OWN_NODE))
    return _made(world, group, direction, rules, hits)


def _with_place(world: World, row: Group, name: str, start: Region) -> Cell:
    sides = []
    for direction, rules in _sides(row).items():
        hits = list(flow(rules.tiers, Memo(start)))
        sides.append(_joined([_made(world, row, direction, rules, {None: hits})]))
    return Cell(row.name, name, sides[0], sides[1])


def _made(world: World, group: Group, direction: str, rules: Direction, hits: c.Mapping[int | None, list[Hit]]) -> _End:
    held: dict[int | None, tuple[PortSet, PortSet]] = {}
    evidence: dict[Evidence, None] = {}
    words = _words(world, rules)
    for version, found in hits.items():
        sure, perhaps = [NO_PORTS], [NO_PORTS]
        for hit in found:
            real = [box for box in (realizable(box, world) for box in hit.region) if box is not None]
            if not real:
                continue
            ports = union_of(box.ports for box in real)
            (sure if hit.reason is None else perhaps).append(ports)
            policy = None if hit.rule is None else str(hit.rule.policy)
            number = None if hit.rule is None else hit.rule.index
            peers = "anything" if hit.rule is None else words.get((policy, number), "")
            evidence[Evidence(group.name, direction, policy, number, peers, str(ports), hit.reason)] = None
        held[version] = (union_of(sure), union_of([*sure, *perhaps]))
    closed_by = tuple(name for tier in rules.tiers if tier.default == DENY for name in tier.policy_names)
    return _End(held, list(evidence), closed_by)


def _words(world: World, rules: Direction) -> dict[tuple[str | None, int | None], str]:
    """The peers of each rule in words, by policy and number."""
    kept: dict[t.Hashable, dict[tuple[str | None, int | None], str]] = world.memo.setdefault("rules in words", {})
    if rules.tiers not in kept:
        kept[rules.tiers] = {
            (str(rule.policy), rule.index): _peers_of(rule, world) for tier in rules.tiers for rule in tier.rules
        }
    return kept[rules.tiers]


def _peers_of(rule: Rule, world: World) -> str:
    held = [*rule.region, *(named.peers for named in rule.named)]
    held += [box for uncertainty in rule.uncertain for box in uncertainty.region]
    real = [box for box in held[: 2 * MOST_PEERS] if realizable(box, world) is not None]
    words = list(dict.fromkeys(map(show_peers, real)))
    return "; ".join(words[:MOST_PEERS]) + ("; and more" if len(held) > MOST_PEERS else "")


def _joined(ends: list[_End]) -> Side:
    """A direction that is open on what all of its ends let through, under one IP version."""
    held = ends[0].ports
    for end in ends[1:]:
        pairs = itertools.product(held.items(), end.ports.items())
        both = [(one, other) for (mine, one), (its, other) in pairs if mine == its or None in {mine, its}]
        held = dict(enumerate((one[0].meet(other[0]), one[1].meet(other[1])) for one, other in both))
    sure, may = (union_of([NO_PORTS, *(pair[place] for pair in held.values())]) for place in (0, 1))
    closed_by = tuple(dict.fromkeys(name for end in ends for name in end.closed_by))[:MOST_EVIDENCE]
    if may.empty:
        return Side("closed", "no port", closed_by=closed_by)
    evidence = [one for end in ends for one in end.evidence]
    beyond = may.minus(sure)
    return Side(
        "perhaps" if sure.empty else "open",
        str(sure),
        "" if beyond.empty else str(beyond),
        tuple(evidence[:MOST_EVIDENCE]),
        max(0, len(evidence) - MOST_EVIDENCE),
        closed_by,
    )
