# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Checking boundaries without changing anything: of pods that run, of pods that a template will have, of manifests.

Nothing here is kept between two checks: whoever asks wants to know how it is now.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
import typing as t
import urllib.parse

from ...boundary.engines.model import EGRESS, INGRESS
from ...boundary.policies.named import Named, look_for, policy_labels, policy_name
from ...boundary.reach.reach import Reach
from ...boundary.reach.verdict import Finding, Verdict
from ...boundary.sets.selectors import Selector
from ...boundary.world.objects import Pod, World
from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import TEMPLATE, TEMPLATE_LABEL, WARM_POOL, Body
from ...deadline import Deadline
from ...errors import GoneError, InputError
from ..observed.agent_address import locate
from ..verification.policies import read_live
from ..verification.spec import EgressBoundary, IngressBoundary, Unverified, one_engine
from .planned import managed_policy, planned_pod_of, stands
from .template_boundary import within_template


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is asked of each pod.

    Attributes:
        egress: what it may reach, or None.
        ingress: who may reach its agent's port, or ``unverified``.
        agent_port: that port.
        host: the address that this machine is seen under, or None when that is not known.
        template_boundary: whether a pod is judged against the boundary of its template where nothing else is asked.
    """

    egress: EgressBoundary | None
    ingress: IngressBoundary | Unverified
    agent_port: int = 1024
    host: str | None = None
    template_boundary: bool = False

    @property
    def engine(self) -> str:
        """Who enforces policies."""
        return one_engine(self.egress, self.ingress)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A pod to check.

    Attributes:
        name: for people: the sandbox, pod or template that was asked for.
        pod: the pod, or what it will be.
        template: its template's name, where that is known.
        pods: the names of all pods that it stands for; empty for one that is to be created.
    """

    name: str
    pod: Pod
    template: str | None = None
    pods: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Checked:
    """What was found about one pod.

    Attributes:
        subject: which one.
        egress: the verdict on what it reaches; None when nothing was asked of it.
        named: the policy that should grant its egress; None when it is not known which one that is.
        ingress: the verdict on who reaches its agent's port; None when nothing was asked of it.
        reached_by: everybody who gets to that port, a rule each.
        host_allowed: whether this machine gets to it; None when its address is not known.
    """

    subject: Subject
    egress: Verdict | None
    named: Named | None
    ingress: Verdict | None
    reached_by: tuple[Finding, ...]
    host_allowed: bool | None

    @property
    def holds(self) -> bool:
        """Whether everything that was asked for holds."""
        return all(part.holds for part in (self.egress, self.named, self.ingress) if part is not None)

    @property
    def problems(self) -> list[str]:
        """What does not hold, a line each."""
        named = [f"{self.named.policy}: {self.named.problem}"] if self.named and not self.named.holds else []
        verdicts = [verdict for verdict in (self.egress, self.ingress) if verdict is not None]
        return named + [str(found) for one in verdicts for found in (*one.findings, *one.undecided)]


def check(world: World, subject: Subject, asked: Asked) -> Checked:
    """Check one pod against what is asked of it.

    Raises:
        PolicyError: a policy that selects the pod is malformed.
    """
    reach = Reach(world, subject.pod, asked.engine)
    egress = named = ingress = None
    if asked.egress is not None:
        named = _named(reach, subject, asked.egress)
        if asked.egress.verify == "union":
            egress = reach.within(asked.egress.request)
    elif asked.template_boundary:
        egress = within_template(reach, EGRESS)
    if isinstance(asked.ingress, IngressBoundary):
        ingress = reach.ingress_verdict(asked.agent_port, asked.ingress.peers)
        if asked.template_boundary and asked.ingress.peers is None and ingress.holds:
            ingress = within_template(reach, INGRESS, asked.agent_port)
    everybody = reach.ingress_verdict(asked.agent_port, [])
    host = None if asked.host is None else reach.allows("ingress", {"ip": asked.host}, asked.agent_port)
    return Checked(subject, egress, named, ingress, (*everybody.findings, *everybody.undecided), host)


def _named(reach: Reach, subject: Subject, egress: EgressBoundary) -> Named | None:
    template = subject.template or subject.pod.labels.get(TEMPLATE_LABEL)
    if egress.name is None and template is None:
        if egress.verify == "union":
            return None
        raise InputError(
            f"{subject.name} names no template, so it is not known which policy should grant its egress.",
            next_step="Give egress.name, or egress.verify: union.",
        )
    name = egress.name or policy_name(str(template), egress.profile)
    return look_for(reach, egress.request, name, policy_labels(str(template), egress.profile))


class Live:
    """The pods and policies of a namespace, read once.

    Args:
        client: who asks.
        namespace: the namespace.
        deadline: bounds all requests.
        engine: who enforces policies.
        required: kinds of policies that must be readable, beyond those of ``live.REQUIRED``.
        peers_in: further namespaces whose pods count as peers.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        deadline: Deadline,
        *,
        engine: str,
        required: t.Collection[str] = (),
        peers_in: t.Iterable[str] = (),
    ) -> None:
        self._client, self._namespace, self._deadline = client, namespace, deadline
        places = dict.fromkeys([namespace, *peers_in])
        live = read_live(client, namespace, deadline, engine=engine, required=required, pods=places)
        self._objects, self._unread = [body for body in live.objects if not _ended(body)], live.unread
        self.world = World.read(self._objects, unread=live.unread)

    def sandbox(self, name: str) -> Subject:
        """The pod of the sandbox that a claim of this name holds, or of the direct Sandbox of this name."""
        where = (self._client, self._namespace, name)
        found = locate(*where, port=1024, mode="pod_ip", deadline=self._deadline)
        return dataclasses.replace(self.pod(found.pod), name=f"sandbox {self._namespace}/{name}")

    def pod(self, name: str) -> Subject:
        """A pod by name."""
        found = self.world.pods.get(f"{self._namespace}/{name}")
        if found is None:
            raise GoneError(
                f"There is no Pod {self._namespace}/{name} that can be read.",
                status=404,
                object=f"Pod {self._namespace}/{name}",
                next_step="Check the name, and that pods of the namespace may be listed.",
            )
        return Subject(f"pod {found}", found, pods=(found.name,))

    def pooled(self, pool: str, labels: t.Mapping[str, str]) -> Subject:
        """A pod that a warm pool will have."""
        spec = self._read(WARM_POOL.ref(self._namespace, pool)).get("spec") or {}
        template = self._read(TEMPLATE.ref(self._namespace, str((spec.get("sandboxTemplateRef") or {}).get("name"))))
        return self._planned(template, labels, pooled=True)

    def direct(self, template: str, labels: t.Mapping[str, str]) -> Subject:
        """A pod that a Sandbox which is made directly from a template will have."""
        return self._planned(self._read(TEMPLATE.ref(self._namespace, template)), labels, pooled=False)

    def _read(self, ref: t.Any) -> Body:
        return read(self._client, ref, self._deadline)

    def _planned(self, template: Body, labels: t.Mapping[str, str], *, pooled: bool) -> Subject:
        subject, self.world = planned(self.world, self._objects, self._unread, template, labels, pooled=pooled)
        return subject


class Offline:
    """Pods and policies out of manifests.

    Args:
        objects: the objects.
        namespace: where the pods are, or will be.
    """

    def __init__(self, objects: list[Body], namespace: str) -> None:
        self._objects, self._namespace = objects, namespace
        self.world = World.read(objects)

    def pod(self, name: str) -> Subject:
        """A pod by name."""
        found = self.world.pod(f"{self._namespace}/{name}")
        return Subject(f"pod {found}", found, pods=(found.name,))

    def pooled(self, pool: str, labels: t.Mapping[str, str]) -> Subject:
        """A pod that a warm pool among the manifests will have."""
        spec = self._object("SandboxWarmPool", pool).get("spec") or {}
        template = self._object("SandboxTemplate", str((spec.get("sandboxTemplateRef") or {}).get("name")))
        subject, self.world = planned(self.world, self._objects, (), template, labels, pooled=True)
        return subject

    def direct(self, template: str, labels: t.Mapping[str, str]) -> Subject:
        """A pod that a Sandbox which is made directly from a template among the manifests will have."""
        body = self._object("SandboxTemplate", template)
        subject, self.world = planned(self.world, self._objects, (), body, labels, pooled=False)
        return subject

    def _object(self, kind: str, name: str) -> Body:
        for body in self._objects:
            metadata = body.get("metadata") or {}
            if (body["kind"], metadata.get("namespace"), metadata.get("name")) == (kind, self._namespace, name):
                return body
        raise InputError(
            f"There is no {kind} {self._namespace}/{name} among the manifests.",
            next_step="Add its file to manifests, or correct name and namespace.",
        )


def planned(
    world: World,
    objects: list[Body],
    unread: t.Iterable[str],
    template: Body,
    labels: t.Mapping[str, str],
    *,
    pooled: bool,
) -> tuple[Subject, World]:
    """A pod that a template will have, and the world with the policy that the controller will add to it."""
    policy = managed_policy(template)
    if policy is not None and not stands(world, policy):
        world = World.read([*objects, policy], unread=unread)
    pod = planned_pod_of(template, labels, pooled=pooled)
    name = str(template["metadata"]["name"])
    way = "out of a pool" if pooled else "made directly"
    return Subject(f"a pod of template {pod.namespace}/{name}, {way}", pod, name), world


def _ended(body: Body) -> bool:
    """Whether it is a pod that has ended, and has no network any more."""
    return body.get("kind") == "Pod" and (body.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def matching(world: World, namespace: str, selector: Selector) -> list[Pod]:
    """The pods of a namespace whose labels match."""
    return [pod for pod in world.pods.values() if pod.namespace == namespace and selector.matches(pod.labels)]


def own_address(target: str) -> str | None:
    """The address under which this machine sends to a target, or None when there is no route.

    Args:
        target: an address, or a URL with a host. Nothing is sent; a name that is no address is looked up.
    """
    host = urllib.parse.urlsplit(target).hostname if "://" in target else target
    try:
        found = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[0][4])
            return str(ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0]))
    except (OSError, ValueError):
        return None
