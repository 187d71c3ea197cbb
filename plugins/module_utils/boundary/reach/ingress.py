# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Who may reach the agent's port: the peers that are asked for, and what is too open when none are named."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ..engines.core import read_peers
from ..engines.flow import Hit
from ..errors import QuestionError
from ..sets import ranges
from ..sets.addresses import ALL_ADDRESSES, AddressSet, union_of
from ..sets.boxes import ADDRESS, NAMESPACE, OUTSIDE, POD, Box, Region, meet_all
from ..world.objects import World
from ..world.strict_reader import Reader

#: From this size on a set of addresses counts as everyone: an IPv4 /8, an IPv6 /32. One's own network is smaller.
EVERYONE_V4 = 1 << 24
EVERYONE_V6 = 1 << 96


def allowed_region(allow_from: list[dict[str, t.Any]], namespace: str) -> Region:
    """The peers of ``allow_from`` as a region; an empty list is nobody.

    Args:
        allow_from: peers as in a NetworkPolicy rule.
        namespace: what a ``podSelector`` alone is about.

    Raises:
        PolicyError: a peer is malformed.
        QuestionError: a peer has a field that no one knows.
    """
    if not allow_from:
        return []
    entry = Reader({"allow_from": allow_from}, "the ingress request")
    peers, uncertain = read_peers(entry, "allow_from", namespace)
    for uncertainty in uncertain:
        raise QuestionError(f"allow_from: {uncertainty.reason}.")
    return peers


class TooOpen:
    """Of all traffic that gets in, the part that comes from everyone, from every namespace or from the internet.

    What no policy closes always counts.
    """

    def __init__(self) -> None:
        self._weights: dict[Hit, tuple[AddressSet, Region] | None] = {}

    def __call__(self, hits: list[Hit], world: World) -> c.Iterator[Hit]:
        """The hits that count, each cut down to what counts."""
        weights = self._weights
        for hit in hits:
            if hit not in weights:
                weights[hit] = self._weigh(hit, world)
        weighed = [(hit, *weight) for hit in hits if (weight := weights[hit]) is not None]
        everyone = _everyone(union_of([outside for _hit, outside, _pods in weighed if not outside.empty]))
        crowd = [] if everyone.empty else [Box(frozenset({OUTSIDE}), {ADDRESS: everyone})]
        for hit, outside, pods in weighed:
            if hit.rule is None:
                yield hit
            elif pods or not outside.meet(everyone).empty:
                yield Hit(hit.rule, [*meet_all(hit.region, crowd), *pods], hit.reason)

    def _weigh(self, hit: Hit, world: World) -> tuple[AddressSet, Region] | None:
        """The outside addresses of a hit, and its pods of any namespace; None for a rule's hit that has neither."""
        outside = union_of([_addresses(box) for box in hit.region if OUTSIDE in box.kinds])
        pods = [
            Box(frozenset({POD}), box.where, box.ports)
            for box in hit.region
            if POD in box.kinds and _any_namespace(box, world) and _every_pod(_addresses(box), world)
        ]
        return None if hit.rule is not None and outside.empty and not pods else (outside, pods)


def _addresses(box: Box) -> AddressSet:
    held = box.where.get(ADDRESS)
    return held if isinstance(held, AddressSet) else ALL_ADDRESSES


def _everyone(held: AddressSet) -> AddressSet:
    """The part of a set that counts as everyone, by IP version."""
    return AddressSet(
        held.v4 if ranges.size(held.v4) >= EVERYONE_V4 else (),
        held.v6 if ranges.size(held.v6) >= EVERYONE_V6 else (),
    )


def _any_namespace(box: Box, world: World) -> bool:
    """Whether pods of a namespace that nobody has named or labelled are among them."""
    fresh = "a-namespace-of-anyone"
    while fresh in world.namespaces:
        fresh += "-else"
    return all(
        held.contains(fresh if (what, key) == NAMESPACE else None)
        for (what, key), held in box.where.items()
        if (what, key) == NAMESPACE or what == "namespace-label"
    )


def _every_pod(held: AddressSet, world: World) -> bool:
    """Whether addresses are those of everyone, or of every pod that is known, in more than one namespace."""
    if not _everyone(held).empty:
        return True
    known = [pod for pod in world.pods.values() if pod.addresses and not pod.host_network]
    return len({pod.namespace for pod in known}) > 1 and all(any(map(held.contains, pod.addresses)) for pod in known)
