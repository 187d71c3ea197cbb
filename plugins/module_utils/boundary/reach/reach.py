# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Reach: what a pod may connect to and who may connect to it, exactly, over every policy that applies to it.

    from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World, connects

    world = World.read(objects)                       # once; any list of Kubernetes objects will do as well
    reach = Reach.from_objects(world, pod="agents/sandbox-1", engine="core")
    reach.allows("egress", {"ip": "192.0.2.1"}, 443, "TCP")
    verdict = reach.within("public_internet")         # verdict.holds, .findings, .undecided
    verdict = reach.ingress_verdict(agent_port=1024)  # is the agent port closed to everyone else
    print(reach.describe())

``engines/core.py`` and ``cilium/engine.py`` have the semantics of the engines, ``engines/model.py`` what they return.
"""

from __future__ import annotations

import collections.abc as c
import functools
import itertools
import typing as t

from ..engines.compiled import Compiled, Engine
from ..engines.flow import Hit
from ..engines.model import ALLOW, DENY, EGRESS, INGRESS, L7, Tier
from ..errors import QuestionError
from ..sets import boxes
from ..sets.boxes import Box, Region
from ..sets.ports import ECHO, SPACE, PortSet
from ..world.objects import Body, NamedPort, Pod, World
from ..world.peers import Peer, resolve
from .describe import describe
from .excess import BeyondNames, Excess, HitFilter
from .ingress import TooOpen, allowed_region
from .requests import Request, dns_region, names_of
from .verdict import Verdict

#: The engines by name.
ENGINES = ("core", "cilium")

Objects = t.Union[c.Iterable[Body], World]


class Reach:
    """What one pod may reach, and who may reach it.

    Attributes:
        world: what is known of the cluster.
        pod: the pod.
        engine: the engine's name.
        compiled: the engine's reading of the pod's policies.
    """

    def __init__(self, world: World, pod: Pod, engine: str = "core") -> None:
        self.world = world
        self.pod = pod
        self.engine = engine
        self.compiled: Compiled = load_engine(engine).compile(world, pod)

    @classmethod
    def from_objects(cls, objects: Objects, pod: str, engine: str = "core") -> Reach:
        """The reach of a pod that is among the objects.

        Args:
            objects: Kubernetes objects as plain data, or a ``World`` read from them (read it once for many pods).
            pod: ``namespace/name``.
            engine: ``core`` or ``cilium``.

        Raises:
            PolicyError: an object is malformed; its text names object and field.
            QuestionError: there is no such pod or engine.
        """
        world = World.read(objects)
        return cls(world, world.pod(pod), engine)

    @classmethod
    def for_labels(
        cls,
        objects: Objects,
        namespace: str,
        labels: c.Mapping[str, str],
        ports: c.Iterable[NamedPort] | None = None,
        *,
        engine: str = "core",
        service_account: str = "default",
    ) -> Reach:
        """The reach of a pod that is to be created.

        Args:
            objects: as for ``from_objects``.
            namespace: where it will be.
            labels: what it will carry.
            ports: its named container ports; None when they are not known, and an ingress port by name is undecided.
            engine: ``core`` or ``cilium``.
            service_account: what it will run under.
        """
        known = None if ports is None else tuple(ports)
        pod = Pod(namespace, "", dict(labels), ports=known, service_account=service_account)
        return cls(World.read(objects), pod, engine)

    def allows(self, direction: str, peer: Peer, port: int | None, protocol: str = "TCP", l7: L7 | None = None) -> bool:
        """Whether the policies of this pod (not those of the peer) let traffic through.

        Args:
            direction: ``egress`` (to the peer) or ``ingress`` (from the peer).
            peer: see ``peers``. A peer with several addresses is let through when one of them is.
            port: the port on the side that is connected to; for ICMP the message type, None for an echo request.
            protocol: ``TCP``, ``UDP``, ``SCTP``, ``ICMP`` or ``ICMPv6``.
            l7: ``{"dns": name}``, ``{"sni": name}`` or ``{"http": {…}}`` with ``method``, ``path``, ``host`` (texts)
                and ``headers`` (a mapping of texts); None asks about layer 4 alone.

        Returns:
            True also for what cannot be known to be closed.

        Raises:
            QuestionError: the question makes no sense, or names what is not among the objects.
        """
        return bool(self.versions(direction, peer, port, protocol, l7))

    def versions(
        self, direction: str, peer: Peer, port: int | None, protocol: str, l7: L7 | None
    ) -> frozenset[int | None]:
        """The IP versions under which ``allows`` lets traffic through; None stands for an address that is not known."""
        number = _port(port, protocol)
        _check_l7(l7)
        self.compiled.direction(direction)
        endpoints = resolve(self.world, peer, self.pod)
        if any(endpoint.pod is self.pod for endpoint in endpoints):
            return frozenset({None})
        return frozenset(
            endpoint.address and endpoint.address[0]
            for endpoint in endpoints
            if self.compiled.decide(direction, endpoint, number, protocol, l7)
        )

    def within(self, request: object) -> Verdict:
        """Whether the pod's egress stays within a request.

        Args:
            request: what ``requests.Request.of`` takes.

        Returns:
            A verdict that holds only when nothing beyond the request is allowed or may be.
        """
        wanted = Request.of(request)
        keep = BeyondNames(dns_region(wanted.dns), names_of(wanted.dns.names)) if wanted.dns.names else None
        excess = self._excess(wanted, lambda: boxes.minus_all([boxes.EVERYTHING], wanted.region()), keep)
        return self._verdict(EGRESS, str(wanted), excess)

    def ingress_verdict(
        self, agent_port: int, allow_from: list[dict[str, t.Any]] | None = None, protocol: str = "TCP"
    ) -> Verdict:
        """Whether the agent's port is closed to everyone else.

        Args:
            agent_port: the port that the agent listens on.
            allow_from: who may reach it, as peers of a NetworkPolicy rule (``podSelector``, ``namespaceSelector``,
                ``ipBlock``; a ``podSelector`` alone means the pod's own namespace). None: whoever a policy names, but
                not everyone, not every namespace and not the internet.
            protocol: the port's protocol.

        Returns:
            A verdict that holds only when some policy isolates the pod for ingress and nobody else gets in.
        """
        ports = PortSet.of(protocol, _port(agent_port, protocol))
        anyone = functools.partial(boxes.minus_all, [Box(ports=ports)], self.compiled.ingress.always)
        key = ("ingress", self.compiled.ingress.always, protocol, agent_port)
        if allow_from is None:
            request = f"an agent port {protocol} {agent_port} closed to everyone and to every namespace"
            return self._verdict(INGRESS, request, self._excess(key, anyone, TooOpen()))
        allowed = allowed_region(allow_from, self.pod.namespace)
        request = f"an agent port {protocol} {agent_port} open to allow_from alone"
        excess = self._excess((*key, repr(allow_from), self.pod.namespace), lambda: boxes.minus_all(anyone(), allowed))
        return self._verdict(INGRESS, request, excess)

    def within_policies(
        self, direction: str, policies: c.Collection[str], request: str, agent_port: int | None = None
    ) -> Verdict:
        """Whether a direction allows nothing beyond what some of its own policies allow.

        Args:
            direction: ``egress`` or ``ingress``.
            policies: the policies, as ``Kind namespace/name``; what they allow is never a finding. Empty: nothing is.
            request: the text of the verdict's ``request``.
            agent_port: with ``ingress``, the TCP port that is judged; None for every port.

        Returns:
            A verdict whose findings name the other policies that open more.
        """
        rules = self.compiled.direction(direction)
        own = [rule for tier in rules.tiers for rule in tier.rules if rule.policy.text in policies]
        allowed = [box for rule in own if rule.action == ALLOW and rule.l7 is None for box in rule.region]
        judged = boxes.EVERYTHING if agent_port is None else Box(ports=PortSet.of("TCP", _port(agent_port, "TCP")))

        def start() -> Region:
            region = boxes.minus_all([judged], rules.always)
            try:
                return boxes.minus_all(region, allowed)
            except boxes.TooManyBoxes:
                # Then what another policy opens a second time is a finding too.
                return region

        def others(hits: list[Hit], _world: World) -> c.Iterator[Hit]:
            return (hit for hit in hits if hit.rule is None or hit.rule.policy.text not in policies)

        key = ("policies", direction, agent_port, rules.always, tuple(own))
        return self._verdict(direction, request, self._excess(key, start, others))

    def describe(self) -> str:
        """What the pod may reach and who may reach it, in words, rule by rule."""
        return describe(self.world, self.compiled)

    def _excess(self, key: t.Hashable, start: c.Callable[[], Region], keep: HitFilter | None = None) -> Excess:
        """The excess over one request; kept, so that one pod's work serves the next."""
        kept: dict[t.Hashable, Excess] = self.world.memo.setdefault("excess", {})
        if key not in kept:
            kept[key] = Excess(self.world, start(), keep)
        return kept[key]

    def _verdict(self, direction: str, request: str, excess: Excess) -> Verdict:
        rules = self.compiled.direction(direction)
        found = excess.findings(rules, direction)
        certain = tuple(finding for finding in found if finding.reason is None)
        undecided = tuple(finding for finding in found if finding.reason is not None)
        return Verdict(
            holds=not certain and not undecided,
            subject=str(self.pod),
            direction=direction,
            request=request,
            findings=certain,
            undecided=undecided,
            policies=_names(rules.tiers),
            isolated_by=_names([tier for tier in rules.tiers if tier.default == DENY]),
            notes=rules.notes,
            unread=(*self.world.unread, *_ignored(self.world, self.engine)),
        )


def connects(
    objects: Objects,
    source: Peer,
    destination: Peer,
    port: int | None,
    protocol: str = "TCP",
    engine: str = "core",
    l7: L7 | None = None,
) -> bool:
    """Whether a connection is let through at both ends: the egress of the source and the ingress of the destination.

    Args:
        objects: as for ``Reach.from_objects``.
        source, destination: peers; an end that is not a pod has no policies.
        port: the port at the destination.
        protocol, engine, l7: as for ``Reach.allows``.
    """
    world = World.read(objects)
    ends: list[frozenset[int | None]] = []
    for here, there, direction in ((source, destination, EGRESS), (destination, source, INGRESS)):
        pod = _pod_of(world, here)
        if pod is not None:
            ends.append(Reach(world, pod, engine).versions(direction, there, port, protocol, l7))
    if len(ends) < 2 or any(None in versions for versions in ends):
        return all(ends)
    # A connection has one IP version, which both ends must let through.
    return bool(ends[0] & ends[1])


def _pod_of(world: World, peer: Peer) -> Pod | None:
    outside = Pod("", "", {})
    for endpoint in resolve(world, peer, outside):
        if endpoint.pod is not None:
            return endpoint.pod
    return None


def load_engine(name: str) -> Engine:
    """The engine of that name; raises QuestionError when there is none."""
    # An engine is loaded when it is asked for: most programs need one of them.
    if name == "core":
        from ..engines.core import CoreEngine

        return CoreEngine()
    if name == "cilium":
        from ..cilium.engine import CiliumEngine

        return CiliumEngine()
    raise QuestionError(f"An engine is one of {', '.join(ENGINES)}, got {name!r}.")


def _names(tiers: c.Iterable[Tier]) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(tier.policy_names for tier in tiers))


def _port(port: int | None, protocol: str) -> int:
    if protocol not in SPACE:
        raise QuestionError(f"A protocol is one of {', '.join(SPACE)}, got {protocol!r}.")
    if port is None and protocol in ECHO:
        return ECHO[protocol]
    low, high = SPACE[protocol]
    if not isinstance(port, int) or isinstance(port, bool) or not low <= port <= high:
        raise QuestionError(f"A {protocol} port is a number from {low} to {high}, got {port!r}.")
    return port


def _check_l7(l7: L7 | None) -> None:
    """Raise QuestionError for an application request that no rule could be compared with."""
    if l7 is None:
        return
    body: object = l7
    if not isinstance(body, c.Mapping) or len(body) != 1 or not body.keys() <= {"dns", "http", "sni"}:
        raise QuestionError(f"A layer 7 request has one of dns, http and sni, got {l7!r}.")
    ((kind, value),) = body.items()
    if kind != "http":
        if not isinstance(value, str) or not value:
            raise QuestionError(f"The {kind} of a layer 7 request is a name, got {value!r}.")
        return
    fields = {"method", "path", "host", "headers"}
    if not isinstance(value, c.Mapping) or not value.keys() <= fields:
        raise QuestionError(f"An HTTP request is a mapping with {', '.join(sorted(fields))}, got {value!r}.")
    headers = value.get("headers", {})
    texts = [item for pair in headers.items() for item in pair] if isinstance(headers, c.Mapping) else [None]
    if not all(isinstance(item, str) for item in texts):
        raise QuestionError(f"The headers of an HTTP request are a mapping of texts, got {headers!r}.")
    for field in fields - {"headers"}:
        if not isinstance(value.get(field, ""), str):
            raise QuestionError(f"The {field} of an HTTP request is a text, got {value[field]!r}.")


def _ignored(world: World, engine: str) -> list[str]:
    """Policies among the objects that the engine does not read."""
    if engine != "core":
        return []
    kinds = ("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy")
    return [
        f"{len(world.policies(kind))} {kind} objects (engine core does not judge them)"
        for kind in kinds
        if world.policies(kind)
    ]
