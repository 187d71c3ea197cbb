# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Cilium's label selectors: over what they select, as boxes, and whether they select a pod.

Cilium selects by the labels of an *identity*, each with a source: a pod has ``k8s:`` labels, nodes and the outside have
``reserved:`` ones. A key without a source is read as ``any:``. What policies add of their own (v1.20.2,
``pkg/k8s/apis/cilium.io/utils/utils.go``):

- ``endpointSelector`` of a namespaced policy: ``k8s:io.kubernetes.pod.namespace`` is set to the policy's namespace; a
  value given for that very key is overwritten. Given without ``k8s:`` it is a second demand, which nothing meets.
- a peer selector of a namespaced policy gets the policy's namespace, unless it speaks of the namespace (``k8s:`` or
  ``any:``) or of a namespace's labels (``io.cilium.k8s.namespace.labels.*``) in any way.
- a peer selector of a clusterwide policy demands that there is a namespace, so ``{}`` is every pod and nothing else.
- peer selectors are of the own cluster (``policy-default-local-cluster``, the default since v1.19).
- a selector with a ``reserved:`` key is left as it is.

Not every label of a pod is part of its identity. The keys that ``pkg/labelsfilter/filter.go`` leaves out by default
(``pod-template-hash``, ``*.kubernetes.io``-like ones, …) select nothing, however often a pod carries them.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import re

from ..sets.addresses import ALL_ADDRESSES, AddressSet
from ..sets.boxes import (
    ADDRESS,
    LOCAL,
    NAMESPACE,
    NODE,
    OTHER,
    OUTSIDE,
    POD,
    Box,
    Dimension,
    ValuesOf,
    namespace_label,
    node_label,
    pod_label,
)
from ..sets.selectors import Selector, ValueSet
from ..world.objects import Pod
from ..world.strict_reader import Reader, read_selector

NAMESPACE_KEY = "io.kubernetes.pod.namespace"
NAMESPACE_LABELS = "io.cilium.k8s.namespace.labels."
CLUSTER_KEY = "io.cilium.k8s.policy.cluster"
ACCOUNT_KEY = "io.cilium.k8s.policy.serviceaccount"
CLUSTER_NAME = "default"
"""The name of a cluster that nobody named (``cluster-name``)."""

#: Dimensions of peers that only Cilium asks about.
SERVICE_ACCOUNT: Dimension = ("service-account", "")
ENTITY: Dimension = ("entity", "")

YES = ValueSet(frozenset({"yes"}))
NOT_YES = ValueSet(frozenset({"yes"}), others=True)
EXISTS = ValueSet(frozenset({None}), others=True)

Needs = dict[str, ValueSet]

# pkg/labelsfilter/filter.go: an ignored key is taken back in when an included expression matches more of it.
_INCLUDED = re.compile(
    r"io\.kubernetes\.pod\.namespace|io\.cilium\.k8s\.namespace\.labels|app\.kubernetes\.io"
    r"|io\.cilium\.k8s\.policy\.(cluster|serviceaccount)"
)
_IGNORED = re.compile(
    r"io\.kubernetes|kubernetes\.io|statefulset\.kubernetes\.io/pod-name|apps\.kubernetes\.io/pod-index"
    r"|batch\.kubernetes\.io/(job-completion-index|controller-uid)|.*beta\.kubernetes\.io|k8s\.io"
    r"|pod-template-generation|pod-template-hash|controller-revision-hash|controller-uid|annotation.*|etcd_node"
    r"|topology\.kubernetes\.io"
)


@functools.lru_cache(maxsize=8192)
def in_identity(key: str) -> bool:
    """Whether a pod's label of this key is part of its identity by default."""
    return _INCLUDED.match(key) is not None or _IGNORED.match(key) is None


def one(*values: str) -> ValueSet:
    """Exactly these values."""
    return ValueSet(frozenset(values))


def encoded(key: str) -> str:
    """A key with its source, as ``labels.NewSourceEncodedLabelKey`` has it."""
    if key.startswith("$"):
        return "reserved:" + key[1:]
    source, colon, rest = key.partition(":")
    if not colon:
        return "any:" + key
    return key if source else "any:" + rest


def needs_of(selector: Selector) -> Needs:
    """The demands of a selector by key with source."""
    found: Needs = {}
    for key, held in selector.needs().items():
        add(found, encoded(key), held)
    return found


def add(needs: Needs, key: str, held: ValueSet) -> None:
    """Add a demand."""
    needs[key] = needs[key].meet(held) if key in needs else held


def subject_needs(reader: Reader, namespace: str | None) -> Needs:
    """The demands of an ``endpointSelector``; *namespace* is None in a clusterwide policy."""
    if namespace is None:
        return needs_of(read_selector(reader))
    key = "k8s:" + NAMESPACE_KEY
    labels = {name: value for name, value in reader.labels("matchLabels").items() if encoded(name) != key}
    needs = needs_of(read_selector(Reader({**reader.body, "matchLabels": labels}, reader.object, reader.path)))
    add(needs, key, one(namespace))
    return needs


def peer_needs(selector: Selector, namespace: str | None, *, of_init: bool = False) -> Needs:
    """The demands of an item of ``fromEndpoints`` or ``toEndpoints``.

    Args:
        selector: the item.
        namespace: the policy's namespace, None in a clusterwide policy.
        of_init: whether the policy is about pods that start (``reserved:init``).
    """
    needs = needs_of(selector)
    if any(key.startswith("reserved:") for key in needs):
        return needs
    keys = [f"{source}:{NAMESPACE_KEY}" for source in ("k8s", "any")]
    if not any(key in needs for key in keys):
        if namespace is None:
            if not of_init:
                needs[keys[0]] = EXISTS
        elif not any(key.partition(":")[2].startswith(NAMESPACE_LABELS) for key in needs if _of_kubernetes(key)):
            needs[keys[0]] = one(namespace)
    if not any(f"{source}:{CLUSTER_KEY}" in needs for source in ("k8s", "any")):
        needs["k8s:" + CLUSTER_KEY] = one(CLUSTER_NAME)
    return needs


def _of_kubernetes(key: str) -> bool:
    return key.startswith(("k8s:", "any:"))


@dataclasses.dataclass(frozen=True, slots=True)
class Selected:
    """What a selector selects.

    Attributes:
        sure: with Cilium's defaults.
        possible: what it may select as well, depending on settings that cannot be seen.
        reason: why, for people.
    """

    sure: tuple[Box, ...] = ()
    possible: tuple[Box, ...] = ()
    reason: str = ""


def selected(needs: Needs) -> Selected:
    """What a peer selector's demands select, of every kind of peer."""
    pod = _pod_box(needs, whole=False)
    sure = [] if pod is None else [pod]
    possible: list[Box] = []
    reasons: list[str] = []
    strange = sorted(key for key in needs if _of_kubernetes(key) and not in_identity(key.partition(":")[2]))
    if strange:
        found = _pod_box(needs, whole=True)
        possible += [] if found is None else [found]
        reasons.append(f"whether {strange[0]} is part of a pod's identity depends on Cilium's label settings")
    if _foreign_cluster(needs):
        found = _pod_box({key: held for key, held in needs.items() if not key.endswith(":" + CLUSTER_KEY)}, whole=True)
        possible += [] if found is None else [found]
        reasons.append("the cluster's name is not known")
    if all(held.contains(None) for key, held in needs.items() if _of_kubernetes(key) and key not in _RESERVED_ANY):
        for kind in (NODE, OUTSIDE, OTHER):
            box, known = _reserved_box(kind, needs)
            if box is not None and known:
                sure.append(box)
            elif box is not None:
                possible.append(box)
                reasons.append("which addresses have labels of this source is not known")
    return Selected(tuple(sure), tuple(possible), "; ".join(reasons))


def _foreign_cluster(needs: Needs) -> bool:
    """Whether another cluster's name is asked for, which may be this one's."""
    asked = [needs[key] for key in ("k8s:" + CLUSTER_KEY, "any:" + CLUSTER_KEY) if key in needs]
    return any(not held.contains(CLUSTER_NAME) and not held.meet(EXISTS).empty for held in asked)


def _pod_box(needs: Needs, *, whole: bool) -> Box | None:
    """The pods that meet the demands; *whole* takes every label of a pod for a part of its identity."""
    where: dict[Dimension, ValuesOf] = {}
    for key, held in needs.items():
        source, _unused, name = key.partition(":")
        if source not in {"any", "k8s"}:
            if not held.contains(None):
                return None
            continue
        if name == CLUSTER_KEY:
            if not held.contains(CLUSTER_NAME):
                return None
            continue
        if not whole and not in_identity(name):
            if not held.contains(None):
                return None
            continue
        dimension = _dimension(name)
        where[dimension] = where[dimension].meet(held) if dimension in where else held
    box = Box(frozenset({POD}), where)
    return None if box.empty else box


def _dimension(name: str) -> Dimension:
    if name == NAMESPACE_KEY:
        return NAMESPACE
    if name.startswith(NAMESPACE_LABELS):
        return namespace_label(name.removeprefix(NAMESPACE_LABELS))
    return SERVICE_ACCOUNT if name == ACCOUNT_KEY else pod_label(name)


V4 = AddressSet(v4=ALL_ADDRESSES.v4)
V6 = AddressSet(v6=ALL_ADDRESSES.v6)

#: What carries a reserved label: the constraint on the peers of a kind that have it.
_RESERVED: dict[tuple[str, str], tuple[Dimension, ValuesOf]] = {
    (NODE, "host"): (LOCAL, YES),
    (NODE, "remote-node"): (LOCAL, NOT_YES),
    (NODE, "kube-apiserver"): (ENTITY, one("kube-apiserver")),
    (OUTSIDE, "kube-apiserver"): (ENTITY, one("kube-apiserver-external")),
    (OUTSIDE, "world-ipv4"): (ADDRESS, V4),
    (OUTSIDE, "world-ipv6"): (ADDRESS, V6),
    **{(OTHER, name): (ENTITY, one(name)) for name in ("init", "health", "unmanaged", "ingress")},
}
_RESERVED_ANY = frozenset(f"any:{name}" for _unused, name in _RESERVED) | {"any:world"}
_OF_ADDRESSES = frozenset({"cidr", "cidrgroup", "fqdn"})


def _reserved_box(kind: str, needs: Needs) -> tuple[Box | None, bool]:
    """The peers of a kind with reserved labels that meet the demands, and whether that is sure."""
    where: dict[Dimension, ValuesOf] = {}
    known = True
    for key, held in needs.items():
        source, _unused, name = key.partition(":")
        present, absent = held.contains(""), held.contains(None)
        if source in {"reserved", "any"} and (kind, name) in _RESERVED:
            if present and absent:
                continue
            if not present and not absent:
                return None, True
            dimension, has = _RESERVED[kind, name]
            limit = has if present else _all_but(has)
            where[dimension] = where[dimension].meet(limit) if dimension in where else limit
        elif source in {"reserved", "any"} and (kind, name) == (OUTSIDE, "world"):
            if not present:
                return None, True
        elif kind == OUTSIDE and source in _OF_ADDRESSES:
            known = False
        elif not absent:
            return None, True
    box = Box(frozenset({kind}), where)
    return (None if box.empty else box), known


def _all_but(held: ValuesOf) -> ValuesOf:
    if isinstance(held, ValueSet):
        return ValueSet(held.values, others=not held.others)
    return ALL_ADDRESSES.minus(held) if isinstance(held, AddressSet) else held


def selected_nodes(selector: Selector) -> tuple[Box, ...]:
    """What an item of ``fromNodes`` or ``toNodes`` selects: other nodes, by their labels; never the pod's own."""
    where: dict[Dimension, ValuesOf] = {LOCAL: NOT_YES}
    for key, held in needs_of(selector).items():
        source, _unused, name = key.partition(":")
        if name == CLUSTER_KEY and source in {"any", "k8s"}:
            continue
        if source in {"any", "node"}:
            dimension = node_label(name)
            where[dimension] = where[dimension].meet(held) if dimension in where else held
        elif not held.contains(None) and key != "reserved:remote-node":
            return ()
    box = Box(frozenset({NODE}), where)
    return () if box.empty else (box,)


def compiled(needs: Needs) -> Selector:
    """The demands as a selector over ``identity_labels``."""
    equal, other = [], []
    for key, held in needs.items():
        value = next(iter(held.values)) if len(held.values) == 1 and not held.others else None
        if value is None:
            other.append((key, held))
        else:
            equal.append((key, value))
    return Selector(frozenset(equal), tuple(other))


def identity_labels(pod: Pod, namespace_labels: c.Mapping[str, str], *, whole: bool) -> dict[str, str]:
    """A pod's labels under ``k8s:`` and ``any:``; *whole* with those that are by default no part of its identity."""
    labels = {key: value for key, value in pod.labels.items() if whole or in_identity(key)}
    labels |= {NAMESPACE_LABELS + key: value for key, value in namespace_labels.items()}
    labels |= {NAMESPACE_KEY: pod.namespace, CLUSTER_KEY: CLUSTER_NAME, ACCOUNT_KEY: pod.service_account}
    return {f"{source}:{key}": value for source in ("k8s", "any") for key, value in labels.items()}
