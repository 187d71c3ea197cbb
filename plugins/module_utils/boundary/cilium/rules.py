# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy, read.

Facts of v1.20.2 (``pkg/policy/api/rule.go``, ``rule_validation.go``, ``pkg/policy/repository.go``,
``pkg/policy/utils/parserules.go``):

- ``spec`` and each of ``specs`` stand for themselves; one that Cilium refuses takes the whole policy with it.
- A list that is left out or empty does nothing. One with an item, be it ``{}``, puts the pods into default deny in its
  direction, deny lists too, unless ``enableDefaultDeny`` says false; a true there does nothing without a list.
- ``{}`` as an item allows nothing.
- ``nodeSelector`` is about nodes and only valid in clusterwide policies.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools

from ..engines.model import ALLOW, DENY, EGRESS, INGRESS, PortName, Rule, Uncertainty, named_ports
from ..engines.rule_source import RuleSource
from ..sets.boxes import EVERYTHING
from ..sets.ports import ALL_PORTS, PortSet, union_of
from ..sets.selectors import Labels, Selector
from ..world.objects import Body, Pod, PolicyRef, World, policy_ref
from ..world.strict_reader import Reader
from .errors import Refused
from .l7 import Layer7
from .peers import Peers, Scope, read_peers
from .ports import PortItem, read_ports
from .selectors import CLUSTER_KEY, NAMESPACE_LABELS, Needs, compiled, subject_needs

KINDS = ("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy")

_SPEC = frozenset(
    {
        "endpointSelector", "nodeSelector", "ingress", "ingressDeny", "egress", "egressDeny", "enableDefaultDeny",
        "labels", "description", "log",
    }
)  # fmt: skip
_LISTS = {
    EGRESS: (("egress", ALLOW), ("egressDeny", DENY)),
    INGRESS: (("ingress", ALLOW), ("ingressDeny", DENY)),
}


@dataclasses.dataclass(eq=False)
class LimitedSource:
    """A rule with the limits of its ports.

    Attributes:
        source: its peers and ports.
        layer7: what passes on them.
    """

    source: RuleSource
    layer7: Layer7
    _last: tuple[Rule, Rule] | None = None

    def rule(self, pod: Pod) -> Rule:
        """The rule for one pod; the same object wherever it does not depend on the pod."""
        rule = self.source.rule(pod, None)
        if not self.layer7.limits:
            return rule
        if self._last is None or self._last[0] is not rule:
            self._last = (rule, dataclasses.replace(rule, l7=self.layer7))
        return self._last[1]


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One ``spec``, as Cilium imports it.

    Attributes:
        isolates: the directions that it puts into default deny.
        rules: the rules by direction.
        notes: what a reader of a verdict should know.
        odd: why it cannot be relied on for anything that it closes, or None.
        by_node: whether Cilium refuses it unless ``enable-node-selector-labels`` is on.
    """

    isolates: frozenset[str]
    rules: c.Mapping[str, tuple[LimitedSource, ...]]
    notes: tuple[str, ...] = ()
    odd: str | None = None
    by_node: bool = False


class Spec:
    """One ``spec`` of a policy: whom it is about, and, once somebody asks, its rules.

    Attributes:
        needs: the demands of its ``endpointSelector``; None for one about nodes.
    """

    def __init__(self, policy: CiliumPolicy, reader: Reader) -> None:
        self._policy = policy
        self._reader = reader
        self.needs: Needs | None = None
        endpoints, nodes = reader.mapping("endpointSelector"), reader.mapping("nodeSelector")
        if (endpoints is None) == (nodes is None):
            self.broken: str | None = f"{reader.path} needs an endpointSelector or a nodeSelector, and not both"
        else:
            self.broken = None
        if endpoints is not None:
            self.needs = subject_needs(endpoints, policy.ref.namespace)
        elif nodes is not None and policy.ref.namespace is not None:
            self.broken = f"{reader.at('nodeSelector')} is only valid in a clusterwide policy"

    @functools.cached_property
    def _surely(self) -> Selector:
        return compiled(self.needs or {})

    @functools.cached_property
    def _maybe(self) -> Selector:
        """Without what cannot be known of the cluster."""
        needs = self.needs or {}
        return compiled({key: held for key, held in needs.items() if not key.endswith(":" + CLUSTER_KEY)})

    def selects(self, labels: Labels, whole: Labels, *, namespace_known: bool) -> bool | str:
        """Tell whether it is about a pod: yes, no, or the reason why that is not sure.

        Args:
            labels: the labels of the pod's identity by default.
            whole: with those that other settings of Cilium make a part of it.
            namespace_known: whether the labels of the pod's namespace are known.
        """
        if self.needs is None:
            return False
        if not namespace_known and any(NAMESPACE_LABELS in key for key in self.needs):
            rest = {key: held for key, held in self.needs.items() if NAMESPACE_LABELS not in key}
            return "the labels of the pod's namespace are not known" if compiled(rest).matches(whole) else False
        if self._surely.matches(labels):
            return True
        if self._maybe.matches(whole) and (whole is not labels or self._maybe is not self._surely):
            return "whether the policy selects the pod depends on Cilium's settings (cluster name, identity labels)"
        return False

    def read(self, world: World) -> Part:
        """The rules.

        Raises:
            PolicyError: a field of the wrong type.
            Refused: what Cilium does not import.
        """
        if self.broken:
            raise Refused(self.broken)
        reader, ref = self._reader, self._policy.ref
        scope = Scope(world, ref.namespace, of_init="reserved:init" in (self.needs or {}))
        unknown = reader.unknown(_SPEC)
        odd = f"unknown field {unknown[0]}" if unknown else None
        default_deny = reader.mapping("enableDefaultDeny") or Reader({}, reader.object)
        notes: list[str] = []
        rules: dict[str, tuple[LimitedSource, ...]] = {}
        isolates = set()
        items = 0
        by_node = False
        for direction, lists in _LISTS.items():
            found: list[LimitedSource] = []
            for name, action in lists:
                for index, entry in enumerate(reader.items(name) or ()):
                    items += 1
                    peers = read_peers(entry, scope, ingress=direction == INGRESS, deny=action == DENY)
                    by_node = by_node or peers.by_node
                    notes += peers.notes
                    found += _sources(world, entry, peers, ref, index, direction, action, notes, odd)
                    if default_deny.truth(direction) is not False and odd is None:
                        isolates.add(direction)
            rules[direction] = tuple(found)
        if not items:
            raise Refused(f"{reader.path} has no rule")
        return Part(frozenset(isolates), rules, tuple(notes), odd, by_node)


def numbers_of(world: World, names: c.Iterable[PortName]) -> PortSet:
    """The ports that the pods of a world have under some names."""
    return union_of(named_ports(pod, *name) for name in names for pod in world.pods.values() if pod.ports)


def _sources(
    world: World,
    entry: Reader,
    peers: Peers,
    ref: PolicyRef,
    index: int,
    direction: str,
    action: str,
    notes: list[str],
    odd: str | None,
) -> list[LimitedSource]:
    """What one item of a list says: one source for the ports without limits, and one for each limit."""
    deny = action == DENY
    items = read_ports(entry, ingress=direction == INGRESS, deny=deny)
    if items is None:
        if not peers.given:
            return []
        items = [PortItem(ALL_PORTS)]
    if not peers.given:
        peers = dataclasses.replace(peers, sure=(EVERYTHING,))
    found = []
    for item in items:
        notes += [f"{ref}: {reason}" for reason in item.layer7.undecided]
        source = RuleSource(
            ref,
            index,
            action,
            direction,
            peers.sure,
            item.ports,
            item.names,
            peers.uncertain,
            item.odd,
            fails_closed=not deny,
            elsewhere=numbers_of(world, item.names) if item.names and direction == EGRESS and not deny else None,
        )
        reason = peers.odd or item.odd or odd
        if deny and reason:
            # A field that is not known may narrow it: nothing that it closes is relied on.
            source = dataclasses.replace(
                source, peers=(), uncertain=(*source.uncertain, Uncertainty(reason, source.peers))
            )
        found.append(LimitedSource(source, item.layer7))
    return found


class CiliumPolicy:
    """A policy and its specs.

    Attributes:
        ref: which one.
        specs: ``spec`` and those of ``specs``.
    """

    def __init__(self, body: Body) -> None:
        self.ref = policy_ref(body)
        root = Reader(body, str(self.ref))
        one = root.mapping("spec")
        readers = ([] if one is None else [one]) + (root.items("specs") or [])
        self.specs = tuple(Spec(self, reader) for reader in readers)
        self._valid, self._invalid = _status(root)

    def read(self, world: World) -> dict[Spec, Part] | str:
        """The specs' rules, read once for a world; or why Cilium does not import the policy."""
        parts: dict[Spec, Part] | str | None = world.memo.get(("cilium parts", self.ref))
        if parts is None:
            try:
                parts = self._invalid or {spec: spec.read(world) for spec in self.specs}
            except Refused as exc:
                parts = f"Cilium does not import it: {exc}"
            world.memo["cilium parts", self.ref] = parts
        return parts

    def unconfirmed(self, parts: c.Mapping[Spec, Part]) -> bool:
        """Whether it selects nodes by label, and no status reports that Cilium accepted it."""
        return not self._valid and any(part.by_node for part in parts.values())


def _status(root: Reader) -> tuple[bool, str | None]:
    """Whether Cilium's operator calls a policy valid, and what it says of one that is not."""
    status = root.mapping("status")
    valid = False
    for condition in (status.items("conditions") if status is not None else None) or ():
        if condition.text("type") == "Valid":
            valid = condition.text("status") == "True"
            if condition.text("status") == "False":
                return (
                    False,
                    f"Cilium does not import it: {condition.text('message') or 'its condition Valid is False'}",
                )
    return valid, None


class Index:
    """Specs by a label that they demand, so that a pod meets only those that may select it."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[tuple[int, CiliumPolicy, Spec]]] = {}
        self._others: list[tuple[int, CiliumPolicy, Spec]] = []
        self._count = 0

    def add(self, policy: CiliumPolicy) -> None:
        """Take in a policy's specs."""
        for spec in policy.specs:
            self._count += 1
            entry = (self._count, policy, spec)
            key = _key(spec.needs)
            if key is None:
                self._others.append(entry)
            else:
                self._by_label.setdefault(key, []).append(entry)

    def candidates(self, labels: Labels) -> list[tuple[CiliumPolicy, Spec]]:
        """The specs that may select a pod with these labels, in the order of the objects."""
        found = list(self._others)
        for item in labels.items():
            found += self._by_label.get(item, ())
        return [(policy, spec) for _unused, policy, spec in sorted(found, key=lambda entry: entry[0])]


def _key(needs: Needs | None) -> tuple[str, str] | None:
    """A label of the pod itself that the demands ask for."""
    for key, held in (needs or {}).items():
        if (
            len(held.values) == 1
            and not held.others
            and not key.partition(":")[2].startswith(("io.cilium.", "io.kubernetes."))
        ):
            (value,) = held.values
            if value is not None and key.startswith(("any:", "k8s:")):
                return key, value
    return None


def policies(world: World, namespace: str | None) -> Index:
    """The policies of a namespace, or the clusterwide ones, read once; raises PolicyError when one is malformed."""
    by_namespace: dict[str | None, list[Body]] | None = world.memo.get("cilium bodies")
    if by_namespace is None:
        by_namespace = world.memo["cilium bodies"] = {}
        for kind in KINDS:
            for body in world.policies(kind):
                by_namespace.setdefault(policy_ref(body).namespace, []).append(body)
    found: Index | None = world.memo.get(("cilium index", namespace))
    if found is None:
        found = world.memo["cilium index", namespace] = Index()
        for body in by_namespace.get(namespace, ()):
            found.add(CiliumPolicy(body))
    return found
