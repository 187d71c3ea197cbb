# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of a workspace, and what is handed out: plain data on both sides."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ..cluster.resources import ObjectRef
from ..guest.agent import AgentAddress
from ..guest.isolation import Isolation
from ..guest.quiescence import FlushReport, QuiesceReport
from ..lifecycle.acquire.request import (
    DEFAULT_READY_TIMEOUT,
    MINIMUM_TTL,
    AcquireRequest,
    OnStale,
    Verdict,
)
from ..lifecycle.durations import seconds
from ..lifecycle.names import check_choice, check_name, check_port
from ..lifecycle.observed.agent_address import DEFAULT_AGENT_PORT, AddressMode
from ..lifecycle.verification.spec import EgressBoundary, IngressBoundary, Unverified
from .disks import Disk
from .errors import NotSettledError
from .fencing import check_epoch
from .identity import Identity
from .names import workspace_ref

#: What a suspend does when the guest does not flush or quiesce: fail and let the pod run, or stop it and report that.
OnFlushFailure = t.Literal["refuse", "suspend"]

#: ``created``: it is new, with an empty disk. ``adopted``: it ran already. ``resumed``: its pod was started on its
#: disk. ``recovered``: the same, after its pod had ended by itself.
Origin = t.Literal["created", "adopted", "resumed", "recovered"]


@dataclasses.dataclass(frozen=True)
class WorkspaceRequest:
    """A workspace that shall run.

    Attributes:
        namespace: where its template is; its Sandbox is made there.
        workspace_id: its name for as long as its disk shall be found again (1 to 253 printable characters).
        template: the SandboxTemplate's name; None takes only one that is there already.
        holder_epoch: this holder's number (0 to 2**53 - 1), or None for a workspace that nobody fences.
        refresh: whether an older pod template is replaced by the template's, which restarts a running pod.
        on_stale: what becomes of a workspace whose template was edited since, without ``refresh``: ``ignore``,
            ``report`` or ``refuse``.
        flush: whether a restart for a refresh flushes before.
        on_flush_failure: what such a restart does when the flush fails; see ``SuspendRequest``.
        ttl: seconds (at least 10) after which the controller stops the pod by itself, the disk stays; None for never.
        labels: labels of its Sandbox.
        pod_labels: labels of its pod.
        runtime_class: the RuntimeClass of its pod, or None for the template's.
        carry_over: whether pod labels, runtime class, egress and ingress that an earlier call asked for stay in force
            when this one does not repeat them. With False only this request counts, and a refresh removes the rest.
        ready_timeout: seconds for everything (at least 1).
        agent_port, agent_address, egress, ingress, network_probe, isolation: as for ``AcquireRequest``.
    """

    namespace: str
    workspace_id: str
    template: str | None = None
    holder_epoch: int | None = None
    refresh: bool = False
    on_stale: OnStale = "refuse"
    flush: bool = True
    on_flush_failure: OnFlushFailure = "refuse"
    ttl: float | None = None
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    pod_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    runtime_class: str | None = None
    carry_over: bool = True
    ready_timeout: float = DEFAULT_READY_TIMEOUT
    agent_port: int = DEFAULT_AGENT_PORT
    agent_address: AddressMode = "service"
    egress: EgressBoundary | None = None
    ingress: IngressBoundary | Unverified = dataclasses.field(default_factory=IngressBoundary)
    network_probe: bool = False
    isolation: Isolation = "any"

    def __post_init__(self) -> None:
        check_epoch(self.holder_epoch)
        check_choice("on_flush_failure", self.on_flush_failure, t.get_args(OnFlushFailure))
        if self.ttl is not None:
            object.__setattr__(self, "ttl", seconds("ttl", self.ttl, MINIMUM_TTL))
        # An acquire of such a sandbox has the same checks.
        checked = self.acquire(self.template or "any", self.ref)
        for field in ("ready_timeout", "egress", "ingress"):
            object.__setattr__(self, field, getattr(checked, field))

    @property
    def ref(self) -> ObjectRef:
        """The Sandbox that it is."""
        return workspace_ref(self.namespace, self.workspace_id)

    def acquire(self, template: str, ref: ObjectRef) -> AcquireRequest:
        """What would be asked of a sandbox of that template, by which its start is proven."""
        return AcquireRequest(
            namespace=self.namespace,
            template=template,
            runtime_class=self.runtime_class,
            name=ref.name,
            labels=self.labels,
            pod_labels=self.pod_labels,
            ready_timeout=self.ready_timeout,
            agent_port=self.agent_port,
            agent_address=self.agent_address,
            egress=self.egress,
            ingress=self.ingress,
            network_probe=self.network_probe,
            on_stale=self.on_stale,
            isolation=self.isolation,
        )


@dataclasses.dataclass(frozen=True)
class SuspendRequest:
    """A workspace that shall be suspended.

    Attributes:
        namespace, workspace_id, holder_epoch: as for ``WorkspaceRequest``.
        flush: whether the guest must have put everything on its disk before.
        quiesce: whether it must have stopped every process before that.
        on_flush_failure: ``refuse`` lets the pod run when the guest does not flush or quiesce; ``suspend`` tries for at
            most half of the time, stops the pod, and reports what was not done.
        timeout: seconds for everything up to the stopped pod (at least 1).
        resource_version: suspend only what is still exactly at this version, or None.
        agent_port, agent_address: where its agent answers.
    """

    namespace: str
    workspace_id: str
    holder_epoch: int | None = None
    flush: bool = True
    quiesce: bool = False
    on_flush_failure: OnFlushFailure = "refuse"
    timeout: float = DEFAULT_READY_TIMEOUT
    resource_version: str | None = None
    agent_port: int = DEFAULT_AGENT_PORT
    agent_address: AddressMode = "service"

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeout", checked_timeout(self.namespace, self.holder_epoch, self.timeout))
        check_port("agent.port", self.agent_port)
        check_choice("on_flush_failure", self.on_flush_failure, t.get_args(OnFlushFailure))
        check_choice("agent.address", self.agent_address, t.get_args(AddressMode))

    @property
    def ref(self) -> ObjectRef:
        """The Sandbox that it is."""
        return workspace_ref(self.namespace, self.workspace_id)


def checked_timeout(namespace: str, holder_epoch: int | None, timeout: float) -> float:
    """The timeout in seconds, after namespace and holder epoch were checked.

    Raises:
        InputError: the namespace is not a valid name, the epoch is not valid, or the timeout is below one second.
    """
    check_name("namespace", namespace)
    check_epoch(holder_epoch)
    return seconds("wait_timeout", timeout, 1.0)


@dataclasses.dataclass(frozen=True)
class Opened:
    """A workspace that runs, reachable and proven.

    Attributes:
        workspace_id, name, namespace, uid: which it is; ``name`` is its Sandbox's.
        origin: how it came to run; see ``Origin``.
        changed: whether this call changed anything.
        refreshed: whether its pod template was replaced.
        identity: the guest that answers.
        pod_ip: its pod's address.
        agent: where its agent answers, with the bind token, which shows in no text form.
        template: its template's name.
        template_current: whether it is what its template says now; None when that is not known.
        stale: the parts of its pod template that differ from the template, when it was looked.
        holder_epoch: the epoch that it carries now.
        disks: its disks.
        labels: its pod's labels.
        expires_at: when the controller stops its pod, or None.
        timings: milliseconds a stage.
        verdict: what was proven.
        unsettled: as for ``Suspended``, of the restart for a refresh.
    """

    workspace_id: str
    name: str
    namespace: str
    uid: str
    origin: Origin
    changed: bool
    refreshed: bool
    identity: Identity
    pod_ip: str | None
    agent: AgentAddress
    template: str | None
    template_current: bool | None
    stale: tuple[str, ...]
    holder_epoch: int | None
    disks: tuple[Disk, ...]
    labels: t.Mapping[str, str]
    expires_at: datetime.datetime | None
    timings: t.Mapping[str, float]
    verdict: Verdict
    unsettled: tuple[NotSettledError, ...] = ()


@dataclasses.dataclass(frozen=True)
class Suspended:
    """A workspace that is suspended: its pod has stopped, its disks are there.

    Attributes:
        workspace_id, name, namespace, uid: which it is.
        changed: whether this call changed anything.
        flushed: what the guest said about its flush; None when there was none.
        quiesced: the same about stopping its processes.
        holder_epoch: the epoch that it carries now.
        refreshed: whether its pod template was replaced.
        unsettled: why the guest did not flush or quiesce, when the workspace was suspended all the same; what was not
            on the disk is lost.
    """

    workspace_id: str
    name: str
    namespace: str
    uid: str
    changed: bool
    flushed: FlushReport | None
    quiesced: QuiesceReport | None
    holder_epoch: int | None
    refreshed: bool = False
    unsettled: tuple[NotSettledError, ...] = ()
