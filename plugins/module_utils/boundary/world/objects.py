# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The cluster as plain objects describe it: namespaces, pods, nodes, and the policies by kind, each read once.

A ``World`` is read once from any number of objects and shared by the ``Reach`` of every pod. Engines keep what they
parsed and compiled in ``World.memo``, so that fifty pods under five thousand policies cost five thousand readings.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import typing as t

from ..errors import PolicyError, QuestionError
from ..sets.addresses import Address, parse_address, show_address
from ..sets.boxes import NAMESPACE_NAME_LABEL
from .strict_reader import Reader

Body = dict[str, t.Any]

#: The groups and kinds of policies that engines of this package judge.
POLICY_KINDS: dict[str, frozenset[str]] = {
    "networking.k8s.io": frozenset({"NetworkPolicy"}),
    "policy.networking.k8s.io": frozenset({"ClusterNetworkPolicy", "AdminNetworkPolicy", "BaselineAdminNetworkPolicy"}),
    "cilium.io": frozenset({"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy", "CiliumCIDRGroup"}),
}

_FINISHED = frozenset({"Succeeded", "Failed"})
_NODE_ADDRESSES = frozenset({"InternalIP", "ExternalIP"})


@dataclasses.dataclass(frozen=True)
class NamedPort:
    """A container port with a name.

    Attributes:
        name, protocol, number: of the port.
        sidecar: whether an init container with ``restartPolicy: Always`` has it. Some network plugins do not find such
            a port by its name (projectcalico/calico#8885), so a rule about the name may or may not match it.
    """

    name: str
    protocol: str
    number: int
    sidecar: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Pod:
    """A pod that exists, or one that is to be created.

    Attributes:
        namespace, name: the name is empty for a pod to be created.
        labels: its labels.
        addresses: its IPs, none for a pod without one yet.
        ports: its named container ports; None when they are not known.
        node: the node it runs on, or None.
        host_network: whether it shares the node's network.
        service_account: the service account it runs under.
    """

    namespace: str
    name: str
    labels: c.Mapping[str, str]
    addresses: tuple[Address, ...] = ()
    ports: tuple[NamedPort, ...] | None = None
    node: str | None = None
    host_network: bool = False
    service_account: str = "default"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name or '(to be created)'}"


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A node: its name, labels and addresses."""

    name: str
    labels: c.Mapping[str, str]
    addresses: tuple[Address, ...]


@dataclasses.dataclass(frozen=True)
class PolicyRef:
    """Which policy: kind, namespace (None for a cluster's) and name; as text ``Kind namespace/name``."""

    kind: str
    namespace: str | None
    name: str

    @functools.cached_property
    def text(self) -> str:
        """The policy as text."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def __str__(self) -> str:
        return self.text


class World:
    """What is known of a cluster.

    Attributes:
        namespaces: labels by name; the name label is always there.
        pods: by ``namespace/name``.
        nodes: by name.
        services: bodies by ``namespace/name``.
        unread: policy sources that nobody could read or that no engine judges, for people.
        memo: what engines keep about this world, by a key of their own.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, c.Mapping[str, str]] = {}
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.services: dict[str, Body] = {}
        self.unread: tuple[str, ...] = ()
        self.memo: dict[t.Hashable, t.Any] = {}
        self._policies: dict[str, list[Body]] = {}
        self._pod_at: dict[Address, Pod] = {}
        self._node_at: dict[Address, Node] = {}

    @classmethod
    def read(cls, objects: c.Iterable[Body] | World, *, unread: c.Iterable[str] = ()) -> World:
        """The world of these objects; a World is returned as it is.

        Args:
            objects: Kubernetes objects as plain data, in any order. Lists (``kind: List``, ``NetworkPolicyList``) are
                opened. Kinds that have nothing to do with the network are ignored.
            unread: policy sources that the caller could not read, which every verdict must name.

        Raises:
            PolicyError: an object is malformed, or two policies have one kind and name.
        """
        if isinstance(objects, World):
            return objects
        world = cls()
        seen: set[tuple[str, str, str]] = set()
        strange: dict[str, None] = dict.fromkeys(unread)
        for body in _opened(objects):
            world._add(body, seen, strange)
        world.unread = tuple(strange)
        return world

    def policies(self, kind: str) -> list[Body]:
        """The bodies of all policies of a kind (one of ``POLICY_KINDS``)."""
        return self._policies.get(kind, [])

    def pod(self, name: str) -> Pod:
        """A pod by ``namespace/name``; raises QuestionError when there is none."""
        found = self.pods.get(name)
        if found is None:
            raise QuestionError(f"There is no pod {name} among the objects.", object=f"Pod {name}")
        return found

    def node(self, name: str) -> Node:
        """A node by name; raises QuestionError when there is none."""
        found = self.nodes.get(name)
        if found is None:
            raise QuestionError(f"There is no node {name} among the objects.", object=f"Node {name}")
        return found

    def pod_at(self, address: Address) -> Pod | None:
        """The pod that has this address as its own."""
        return self._pod_at.get(address)

    def node_at(self, address: Address) -> Node | None:
        """The node that has this address."""
        return self._node_at.get(address)

    def namespace_labels(self, name: str) -> c.Mapping[str, str] | None:
        """A namespace's labels, or None when nothing is known about it but its name."""
        return self.namespaces.get(name)

    def _add(self, body: object, seen: set[tuple[str, str, str]], strange: dict[str, None]) -> None:
        if not isinstance(body, dict):
            raise PolicyError("expected a mapping", object="an object without a kind")
        kind, api_version = body.get("kind"), body.get("apiVersion")
        if not isinstance(kind, str) or not kind:
            raise PolicyError("expected a text", object="an object without a kind", field="kind")
        if not isinstance(api_version, str) or not api_version:
            raise PolicyError("expected a text", object=kind, field="apiVersion")
        group = api_version.partition("/")[0] if "/" in api_version else ""
        reader = self._reader(kind) if group == "" else None
        if reader is not None:
            reader(body)
        elif kind in POLICY_KINDS.get(group, ()):
            ref = policy_ref(body)
            key = (kind, ref.namespace or "", ref.name)
            if key in seen:
                raise PolicyError("the same object twice", object=str(ref))
            seen.add(key)
            self._policies.setdefault(kind, []).append(body)
        elif "NetworkPolic" in kind or "AdminPolic" in kind:
            strange[f"{kind} of {group or 'the core group'} (no engine here judges it)"] = None

    def _reader(self, kind: str) -> c.Callable[[Body], None] | None:
        readers = {
            "Namespace": self._add_namespace,
            "Pod": self._add_pod,
            "Node": self._add_node,
            "Service": self._add_service,
        }
        return readers.get(kind)

    def _add_namespace(self, body: Body) -> None:
        name, _unused, labels = identity(body, namespaced=False)
        self.namespaces[name] = {**labels, NAMESPACE_NAME_LABEL: name}

    def _add_pod(self, body: Body) -> None:
        pod = read_pod(body)
        self.pods[str(pod)] = pod
        if not pod.host_network and (body.get("status") or {}).get("phase") not in _FINISHED:
            for address in pod.addresses:
                self._pod_at.setdefault(address, pod)

    def _add_node(self, body: Body) -> None:
        name, _unused, labels = identity(body, namespaced=False)
        status = Reader(body, f"Node {name}").mapping("status")
        found = [
            _address(entry, "address")
            for entry in (status.items("addresses") if status else None) or ()
            if entry.text("type") in _NODE_ADDRESSES
        ]
        node = Node(name, labels, tuple(found))
        self.nodes[name] = node
        for address in found:
            self._node_at.setdefault(address, node)

    def _add_service(self, body: Body) -> None:
        name, namespace, _unused = identity(body, namespaced=True)
        self.services[f"{namespace}/{name}"] = body


def identity(body: Body, *, namespaced: bool) -> tuple[str, str, dict[str, str]]:
    """Name, namespace (``default`` when it is left out, as kubectl has it) and labels of an object."""
    kind = str(body.get("kind"))
    metadata = Reader(body, kind).mapping("metadata")
    name = metadata.text("name") if metadata else None
    if metadata is None or not name:
        raise PolicyError("expected a name", object=kind, field="metadata.name")
    namespace = (metadata.text("namespace") or "default") if namespaced else ""
    named = Reader(metadata.body, f"{kind} {namespace}/{name}" if namespaced else f"{kind} {name}", "metadata")
    return name, namespace, named.labels("labels")


def policy_ref(body: Body) -> PolicyRef:
    """Which policy a body is; clusterwide kinds have no namespace."""
    kind = str(body.get("kind"))
    namespaced = kind in {"NetworkPolicy", "CiliumNetworkPolicy"}
    name, namespace, _unused = identity(body, namespaced=namespaced)
    return PolicyRef(kind, namespace if namespaced else None, name)


def read_pod(body: Body) -> Pod:
    """A Pod object; raises PolicyError when it is malformed."""
    name, namespace, labels = identity(body, namespaced=True)
    root = Reader(body, f"Pod {namespace}/{name}")
    spec, status = root.mapping("spec"), root.mapping("status")
    addresses: list[Address] = []
    if status is not None:
        addresses.extend(_address(entry, "ip") for entry in status.items("podIPs") or ())
        if status.has("podIP"):
            addresses.append(_address(status, "podIP"))
    return Pod(
        namespace=namespace,
        name=name,
        labels=labels,
        addresses=tuple(dict.fromkeys(addresses)),
        ports=None if spec is None else read_ports(spec),
        node=spec.text("nodeName") if spec else None,
        host_network=bool(spec and spec.truth("hostNetwork")),
        service_account=(spec.text("serviceAccountName") if spec else None) or "default",
    )


def read_ports(spec: Reader) -> tuple[NamedPort, ...]:
    """The named ports of a pod's containers and sidecars; other init containers end before the pod is ready."""
    sidecars = [one for one in spec.items("initContainers") or () if one.text("restartPolicy") == "Always"]
    found: list[NamedPort] = []
    for containers, sidecar in ((spec.items("containers") or (), False), (sidecars, True)):
        for container in containers:
            for entry in container.items("ports") or ():
                name, number = entry.text("name"), entry.number("containerPort", 1, 65535)
                protocol = entry.protocol("protocol") or "TCP"
                if name and number is not None:
                    found.append(NamedPort(name, protocol, number, sidecar))
    return tuple(found)


def _address(reader: Reader, key: str) -> Address:
    try:
        return parse_address(reader.text(key))
    except ValueError as exc:
        raise reader.error(str(exc), key) from exc


def _opened(objects: c.Iterable[object]) -> c.Iterator[object]:
    """The objects, and those inside lists."""
    if isinstance(objects, (str, bytes, c.Mapping)):
        raise QuestionError("Objects must be a list of Kubernetes objects.")
    for body in objects:
        kind = body.get("kind") if isinstance(body, dict) else None
        if isinstance(body, dict) and isinstance(kind, str) and kind.endswith("List") and "items" in body:
            for item in Reader(body, kind).sequence("items") or ():
                if isinstance(item, dict) and kind != "List":
                    yield {"kind": kind.removesuffix("List"), "apiVersion": body.get("apiVersion"), **item}
                else:
                    yield item
        else:
            yield body


def show_pod(pod: Pod) -> str:
    """A pod with its first address, for people."""
    return f"pod {pod} ({show_address(pod.addresses[0])})" if pod.addresses else f"pod {pod}"
