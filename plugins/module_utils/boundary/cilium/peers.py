# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The peers of a Cilium rule: endpoints, entities, CIDRs, nodes, names, services.

Facts of v1.20.2 (``pkg/policy/api``, ``pkg/policy/utils/parserules.go``, ``pkg/policy/k8s/service.go``):

- One rule has one kind of peer; two are refused. A list that is there and empty selects nothing. Without any list the
  rule is about everyone, if it has ports, else about nothing.
- CIDRs, groups of CIDRs and names select addresses outside alone: never pods, never nodes, wherever their addresses lie
  (``policy-cidr-match-mode`` is off by default). An ``except`` takes away from its own block only.
- ``toServices`` stands for the pods behind the service's selector, on every port. A service without a selector stands
  for its backends' addresses, which are not read here. Where no service matches, nothing is left of the peers, and a
  rule with ports is about everyone.
- Names learned from any DNS answer on the node count ("collected from all DNS responses seen by Cilium on the node",
  ``Documentation/security/policy/layer3.rst``), so a name that a rule selects counts as reachable even where this
  pod's own policies let no DNS proxy see its questions.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ..engines.model import Uncertainty
from ..sets import addresses, boxes
from ..sets.addresses import ALL_ADDRESSES, AddressSet, parse_cidr
from ..sets.boxes import ADDRESS, DNS_NAME, EVERYTHING, LOCAL, NODE, OTHER, OUTSIDE, POD, Box, node_label
from ..sets.names import NameSet
from ..sets.selectors import ValueSet
from ..world.objects import World, identity
from ..world.strict_reader import Reader, read_selector
from .errors import Refused
from .names import name_set, selector_patterns
from .selectors import ENTITY, EXISTS, NOT_YES, YES, encoded, one, peer_needs, selected, selected_nodes

_OUTSIDE = frozenset({OUTSIDE})
MOST_WILDCARDS = 3
"""Sets of names are computed for patterns with up to so many stars; others count as any name."""
ANY_OUTSIDE = Box(_OUTSIDE)
_CONTROL_PLANE = Box(frozenset({NODE}), {node_label("node-role.kubernetes.io/control-plane"): EXISTS})
_API_OUTSIDE = Box(_OUTSIDE, {ENTITY: one("kube-apiserver-external")})
_MEMBERS = ("init", "health", "unmanaged", "ingress")
_CLUSTER = (
    Box(frozenset({POD, NODE})),
    Box(frozenset({OTHER}), {ENTITY: one(*_MEMBERS, "cluster", "cluster-mesh")}),
    _API_OUTSIDE,
)


def _of_family(version: int, other: str) -> Box:
    whole = AddressSet(v4=ALL_ADDRESSES.v4) if version == 4 else AddressSet(v6=ALL_ADDRESSES.v6)
    return Box(_OUTSIDE, {ADDRESS: whole, ENTITY: ValueSet(frozenset({other}), others=True)})


#: ``pkg/policy/api/entity.go`` and "Entities based" in ``layer3.rst``.
ENTITIES: dict[str, tuple[Box, ...]] = {
    "all": (EVERYTHING,),
    "world": (ANY_OUTSIDE,),
    "world-ipv4": (_of_family(4, "world-ipv6"),),
    "world-ipv6": (_of_family(6, "world-ipv4"),),
    "cluster": _CLUSTER,
    "cluster-mesh": _CLUSTER,
    "host": (Box(frozenset({NODE}), {LOCAL: YES}),),
    "remote-node": (Box(frozenset({NODE}), {LOCAL: NOT_YES}),),
    "kube-apiserver": (Box(frozenset({NODE}), {ENTITY: one("kube-apiserver")}), _API_OUTSIDE),
    "none": (),
    **{name: (Box(frozenset({OTHER}), {ENTITY: one(name)}),) for name in _MEMBERS},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Peers:
    """Whom a rule is about, on every port.

    Attributes:
        sure: the peers.
        uncertain: who may be meant as well.
        given: whether the rule names peers at all; without any, and with ports, it is about everyone.
        odd: a field that is not known, or None.
        by_node: whether it asks for nodes by label, which Cilium has to be told to offer.
        notes: what a reader of a verdict should know.
    """

    sure: tuple[Box, ...] = ()
    uncertain: tuple[Uncertainty, ...] = ()
    given: bool = True
    odd: str | None = None
    by_node: bool = False
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The place of a rule.

    Attributes:
        world: the cluster.
        namespace: the policy's namespace, None for a clusterwide one.
        of_init: whether the policy is about pods that start.
    """

    world: World
    namespace: str | None
    of_init: bool = False


def read_peers(rule: Reader, scope: Scope, *, ingress: bool, deny: bool) -> Peers:
    """The peers of one item of ``ingress``, ``egress``, ``ingressDeny`` or ``egressDeny``.

    Raises:
        PolicyError: a field of the wrong type.
        Refused: what Cilium does not import.
    """
    side = "from" if ingress else "to"
    names = _INGRESS if ingress else _EGRESS_DENY if deny else tuple(_KINDS)
    lists = {name: rule.sequence(side + name) for name in names if side + name in rule.body}
    used = [name for name, items in lists.items() if items]
    if len(used) > 1:
        raise Refused(f"{rule.path} combines {side}{used[0]} and {side}{used[1]}")
    unknown = rule.unknown({side + name for name in names} | {"toPorts", "icmps", "authentication", side + "Requires"})
    odd = f"unknown field {unknown[0]}" if unknown else None
    uncertain = (Uncertainty(odd, (EVERYTHING,)),) if odd else ()
    notes = []
    if rule.has(side + "Requires"):
        notes.append(f"{rule.object}: {rule.at(side + 'Requires')} is ignored since Cilium v1.19")
    if rule.has("authentication"):
        notes.append(f"{rule.object}: {rule.at('authentication')} is not judged, what it may hold back counts as open")
    if any(lists.get(name) == [] for name in _EMPTY_IS_NOBODY):
        return Peers((), uncertain, given=True, odd=odd, notes=tuple(notes))
    if not used:
        return Peers((), uncertain, given=bool(unknown), odd=odd, notes=tuple(notes))
    if deny and used == ["Services"]:
        # Only the services of allow rules are looked up (service.go); what is left closes something else, or nothing.
        reason = f"Cilium does not look up {rule.at('toServices')} of a deny rule"
        return Peers((), (*uncertain, Uncertainty(reason, (EVERYTHING,))), given=True, odd=odd, notes=tuple(notes))
    found = _KINDS[used[0]](rule, side + used[0], scope)
    return dataclasses.replace(
        found, uncertain=(*found.uncertain, *uncertain), odd=odd or found.odd, notes=tuple(notes)
    )


def _endpoints(rule: Reader, key: str, scope: Scope) -> Peers:
    sure: list[Box] = []
    uncertain: list[Uncertainty] = []
    for item in rule.items(key) or ():
        found = selected(peer_needs(read_selector(item), scope.namespace, of_init=scope.of_init))
        sure.extend(found.sure)
        if found.possible:
            uncertain.append(Uncertainty(found.reason, found.possible, closed=True))
    return Peers(tuple(sure), tuple(uncertain))


def _entities(rule: Reader, key: str, _scope: Scope) -> Peers:
    sure: list[Box] = []
    uncertain: list[Uncertainty] = []
    for name in rule.texts(key) or ():
        if name not in ENTITIES:
            raise Refused(f"{rule.at(key)}: {name!r} is not a valid entity")
        sure.extend(ENTITIES[name])
        if name == "kube-apiserver":
            uncertain.append(Uncertainty("the API server may run on this control plane node", (_CONTROL_PLANE,)))
    return Peers(tuple(sure), tuple(uncertain))


def _cidrs(rule: Reader, key: str, _scope: Scope) -> Peers:
    held = []
    for index, text in enumerate(rule.texts(key) or ()):
        try:
            held.append(parse_cidr(text))
        except ValueError as exc:
            raise Refused(f"{rule.at(key)}[{index}]: {exc}") from exc
    return Peers(_outside(addresses.union_of(held)))


def _outside(held: AddressSet) -> tuple[Box, ...]:
    return tuple(boxes.addresses(held, kinds=_OUTSIDE))


def _cidr_sets(rule: Reader, key: str, scope: Scope) -> Peers:
    sure: list[AddressSet] = []
    uncertain: list[Uncertainty] = []
    for item in rule.items(key) or ():
        given = [
            name for name in ("cidr", "cidrGroupRef", "cidrGroupSelector") if item.has(name) and item.body[name] != ""
        ]
        if len(given) != 1:
            raise Refused(f"{item.path} needs one of cidr, cidrGroupRef and cidrGroupSelector")
        except_ = _excepted(item)
        if given == ["cidr"]:
            held = _block(item, item.text("cidr") or "", "cidr")
            if not except_.within(held):
                raise Refused(f"{item.at('except')} is not inside {item.body['cidr']}")
        else:
            group = _by_ref(item, scope) if given == ["cidrGroupRef"] else _by_selector(item, scope)
            if isinstance(group, str):
                rest = _outside(ALL_ADDRESSES.minus(except_))
                uncertain.append(Uncertainty(group, rest, closed=True))
                continue
            held = group
        sure.append(held.minus(except_))
    unknown = [path for item in rule.items(key) or () for path in item.unknown(_CIDR_FIELDS)]
    uncertain += [Uncertainty(f"unknown field {path}", (ANY_OUTSIDE,)) for path in unknown]
    odd = f"unknown field {unknown[0]}" if unknown else None
    return Peers(_outside(addresses.union_of(sure)), tuple(uncertain), odd=odd)


_CIDR_FIELDS = frozenset({"cidr", "cidrGroupRef", "cidrGroupSelector", "except"})


def _excepted(item: Reader) -> AddressSet:
    texts = item.texts("except") or []
    return addresses.union_of(_block(item, text, f"except[{index}]") for index, text in enumerate(texts))


def _block(item: Reader, text: str, key: str) -> AddressSet:
    if "/" not in text:
        raise Refused(f"{item.at(key)}: {text!r} has no prefix length")
    try:
        return parse_cidr(text)
    except ValueError as exc:
        raise Refused(f"{item.at(key)}: {exc}") from exc


Group = tuple[c.Mapping[str, str], AddressSet]


def cidr_groups(world: World) -> dict[str, Group]:
    """The labels and addresses of the world's CiliumCIDRGroups; blocks that are none are left out, as Cilium does."""
    found: dict[str, Group] | None = world.memo.get("cilium groups")
    if found is None:
        found = {}
        for body in world.policies("CiliumCIDRGroup"):
            name, _unused, labels = identity(body, namespaced=False)
            spec = Reader(body, f"CiliumCIDRGroup {name}").mapping("spec")
            held = []
            for text in (spec.texts("externalCIDRs") if spec else None) or ():
                try:
                    held.append(parse_cidr(text if "/" in text else ""))
                except ValueError:
                    continue
            found[name] = (labels, addresses.union_of(held))
        world.memo["cilium groups"] = found
    return found


def _by_ref(item: Reader, scope: Scope) -> AddressSet | str:
    name = item.text("cidrGroupRef") or ""
    group = cidr_groups(scope.world).get(name)
    return f"the CiliumCIDRGroup {name} is not among the objects" if group is None else group[1]


def _by_selector(item: Reader, scope: Scope) -> AddressSet | str:
    """The addresses of groups by label; a demand that an absent label meets is met by every address outside them."""
    reader = item.mapping("cidrGroupSelector")
    groups = cidr_groups(scope.world)
    if not groups:
        return "no CiliumCIDRGroup is among the objects"
    held = ALL_ADDRESSES
    for key, wanted in (read_selector(reader).needs() if reader is not None else {}).items():
        # With labels as sets, an address that several groups hold may have several values of one key.
        source, _unused, name = encoded(key).partition(":")
        known = source in {"any", "cidrgroup"}
        carrying = [(labels.get(name), block) for labels, block in groups.values() if known and name in labels]
        named = addresses.union_of(block for value, block in carrying if value in wanted.values)
        if None in wanted.values:
            named = named.union(ALL_ADDRESSES.minus(addresses.union_of(block for _unused, block in carrying)))
        held = held.meet(ALL_ADDRESSES.minus(named) if wanted.others else named)
    return held


def _nodes(rule: Reader, key: str, _scope: Scope) -> Peers:
    sure = tuple(box for item in rule.items(key) or () for box in selected_nodes(read_selector(item)))
    return Peers(sure, by_node=True)


def _groups(rule: Reader, key: str, _scope: Scope) -> Peers:
    return Peers(
        (), (Uncertainty(f"{rule.at(key)}: which addresses a cloud's group has is not known", (ANY_OUTSIDE,)),)
    )


def _names(rule: Reader, key: str, _scope: Scope) -> Peers:
    items = rule.items(key) or []
    known = [item for item in items if not item.unknown({"matchName", "matchPattern"})]
    odd = [f"unknown field {path}" for item in items for path in item.unknown({"matchName", "matchPattern"})]
    try:
        patterns = selector_patterns([item.body for item in known])
    except ValueError as exc:
        raise Refused(f"{rule.at(key)}: {exc}") from exc
    simple = [pattern for pattern in patterns if pattern.wildcards <= MOST_WILDCARDS]
    sure = (Box(_OUTSIDE, {DNS_NAME: name_set(simple)}),) if simple else ()
    rest = [pattern.text for pattern in patterns if pattern.wildcards > MOST_WILDCARDS]
    odd += [f"the wildcards of {text} are too many to judge" for text in rest]
    any_name = Box(_OUTSIDE, {DNS_NAME: NameSet(absent=False, which=None)})
    return Peers(sure, tuple(Uncertainty(reason, (any_name,)) for reason in odd))


def _services(rule: Reader, key: str, scope: Scope) -> Peers:
    sure: list[Box] = []
    uncertain: list[Uncertainty] = []
    matched = False
    for item in rule.items(key) or ():
        uncertain += [Uncertainty(f"unknown field {path}", (EVERYTHING,)) for path in _unknown_in_service(item)]
        for body in _matching(item, scope.world):
            matched = True
            name, namespace, _unused = identity(body, namespaced=True)
            spec = Reader(body, f"Service {namespace}/{name}").mapping("spec")
            labels = spec.labels("selector") if spec is not None else {}
            if labels:
                needs = {"k8s:" + name: one(value) for name, value in labels.items()}
                needs["k8s:io.kubernetes.pod.namespace"] = one(namespace)
                found = selected(needs)
                sure.extend(found.sure)
                uncertain += [Uncertainty(found.reason, found.possible, closed=True)] if found.possible else []
            else:
                uncertain.append(
                    Uncertainty(f"the backends of Service {namespace}/{name} are not known", (ANY_OUTSIDE,))
                )
    if not matched:
        reason = f"{rule.at(key)}: no such service is among the objects"
        # Without a service the rule has no peers left, and with ports Cilium takes that for everyone.
        wide = EVERYTHING if rule.body.get("toPorts") or rule.body.get("icmps") else Box(frozenset({POD, OUTSIDE}))
        uncertain.append(Uncertainty(reason, (wide,), closed=wide is not EVERYTHING))
    return Peers(tuple(sure), tuple(uncertain))


def _unknown_in_service(item: Reader) -> list[str]:
    """The fields of an item of ``toServices`` that are not known."""
    found = item.unknown({"k8sService", "k8sServiceSelector"})
    for key, known in (("k8sService", {"serviceName", "namespace"}), ("k8sServiceSelector", {"selector", "namespace"})):
        inner = item.mapping(key)
        found += inner.unknown(known) if inner is not None else []
    return found


def _matching(item: Reader, world: World) -> list[dict[str, object]]:
    """The services that an item of ``toServices`` means; a selector comes before a name."""
    by_label, by_name = item.mapping("k8sServiceSelector"), item.mapping("k8sService")
    if by_label is not None:
        reader = by_label.mapping("selector")
        wanted = read_selector(reader) if reader is not None else None
        namespace = by_label.text("namespace") or ""
    elif by_name is not None:
        wanted, namespace = None, by_name.text("namespace") or ""
    else:
        return []
    found = []
    for body in world.services.values():
        name, where, labels = identity(body, namespaced=True)
        if namespace not in {"", where}:
            continue
        if by_label is None:
            if by_name is None or name != by_name.text("serviceName"):
                continue
        elif wanted is None or not all(
            # The sources of a service's labels do not count (service.go: labelsMatcher).
            held.contains(labels.get(encoded(key).partition(":")[2]))
            for key, held in wanted.needs().items()
        ):
            continue
        found.append(body)
    return found


_KINDS: dict[str, c.Callable[[Reader, str, Scope], Peers]] = {
    "Endpoints": _endpoints,
    "Entities": _entities,
    "CIDR": _cidrs,
    "CIDRSet": _cidr_sets,
    "Nodes": _nodes,
    "Groups": _groups,
    "FQDNs": _names,
    "Services": _services,
}
_INGRESS = ("Endpoints", "Entities", "CIDR", "CIDRSet", "Nodes", "Groups")
_EGRESS_DENY = (*_INGRESS, "Services")
_EMPTY_IS_NOBODY = ("Endpoints", "Entities", "CIDR", "CIDRSet", "Nodes")
