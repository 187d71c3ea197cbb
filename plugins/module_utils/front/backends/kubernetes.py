# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of Kubernetes: claims on warm pools, and Sandboxes from templates."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.client import Client
from ...deadline import Cancellation, Deadline
from ...errors import SandboxError
from ...guest.agent import Agent
from ...lifecycle.durations import seconds
from ...lifecycle.names import check_name
from ...lifecycle.observed.agent_address import AddressMode, locate
from ...lifecycle.observed.prerequisites import check_namespace
from ...numbering import OnFailure, numbered
from ..options.labels import labels_of
from ..options.specs import Params
from ..results.host_vars import host_vars
from ..verb import namespace_of
from .protocol import RENEW_SECONDS, Acquisition, Batch, Guest, Renewed

if t.TYPE_CHECKING:
    from ...lifecycle.acquire.request import Acquired, AcquireRequest
    from ...lifecycle.lease.lease import Lease

#: Seconds for the lists of an inventory, retries included.
READ_SECONDS = 60.0
#: Seconds for renewing a lease, retries included.

_SHOWN = ("namespace", "warm_pool", "template", "runtime_class", "labels", "pod_labels", "per_sandbox_egress")


class KubernetesBackend:
    """See ``Backend``."""

    name = "kubernetes"

    def __init__(self, client: Client, params: Params, environ: t.Mapping[str, str]) -> None:
        self.client = client
        self.place = namespace_of(params, client)
        self.namespace: str | None = self.place
        self._params = params
        self._environ = environ
        self._acquired: dict[str, Acquired] = {}

    def request(self, params: t.Mapping[str, t.Any]) -> AcquireRequest:
        from ...lifecycle.acquire.request import AcquireRequest
        from ...lifecycle.verification.spec import EgressBoundary, IngressBoundary

        agent = params.get("agent") or {}
        return AcquireRequest(
            namespace=self.place,
            warm_pool=params.get("warm_pool"),
            template=params.get("template"),
            runtime_class=params.get("runtime_class"),
            name=params.get("name"),
            labels=labels_of("labels", params),
            pod_labels=labels_of("pod_labels", params),
            ttl=seconds("ttl", params["ttl"]),
            ready_timeout=seconds("ready_timeout", params["ready_timeout"]),
            agent_port=agent.get("port", 1024),
            agent_address=agent.get("address", "service"),
            wait_for_template=params["wait_for_template"],
            on_stale=params["on_stale"],
            egress=EgressBoundary.of(params["egress"]) if params.get("egress") else None,
            ingress=IngressBoundary.of(params.get("ingress")),
            network_probe=params["network_probe"],
            per_sandbox_egress=params["per_sandbox_egress"],
            isolation=params["isolation"],
        )

    def described(self, request: AcquireRequest) -> dict[str, t.Any]:
        asked = dataclasses.asdict(request)
        return {key: asked[key] for key in _SHOWN if asked[key]}

    def acquire(self, request: AcquireRequest, cancellation: Cancellation | None = None) -> Acquisition:
        from ...lifecycle.acquire.acquire import acquire

        return self._handed_out(acquire(self.client, request, cancellation=cancellation))

    def acquire_many(self, request: AcquireRequest, count: int, on_failure: OnFailure) -> Batch:
        from ...lifecycle.batch import PartialAcquireError, acquire_many

        try:
            return Batch([self._handed_out(one) for one in acquire_many(self.client, request, count, on_failure)])
        except PartialAcquireError as error:
            acquired = [self._handed_out(one.acquired) for one in error.outcomes if one.acquired is not None]
            failures = {one.name: one.error for one in error.outcomes if one.error is not None}
            return Batch(acquired, failures, error)

    def planned(self, request: AcquireRequest, count: int | None) -> list[tuple[str, bool]]:
        from ...lifecycle.acquire.acquire import would_acquire

        requests = [request] if count is None else numbered(request, count)
        found = [would_acquire(self.client, one) for one in requests]
        return [(ref.name, body is not None) for ref, body in found]

    def leases(self, request: AcquireRequest, acquired: t.Sequence[Acquisition]) -> t.Mapping[str, Lease]:
        from ...lifecycle.lease.lease import lease_of

        is_direct = request.template is not None
        return {one.name: lease_of(self._acquired[one.uid], request.ttl, direct_sandbox=is_direct) for one in acquired}

    def release_created(self, created: t.Mapping[str, str]) -> t.Iterable[str]:
        from ...lifecycle.release.many import release_all

        return release_all(self.client, self.place, created)

    def names_matching(self, label_selector: str, deadline: Deadline) -> t.Mapping[str, str | None]:
        from ...lifecycle.release.many import names_matching

        return names_matching(self.client, self.place, label_selector, deadline)

    def release(
        self, names: t.Mapping[str, str | None], deadline: Deadline, *, wait: bool, dry_run: bool
    ) -> tuple[list[str], dict[str, SandboxError]]:
        from ...lifecycle.release.many import release_many

        released, failures = release_many(self.client, self.place, names, deadline, wait=wait, dry_run=dry_run)
        return [one.name for one in released if one.existed], dict(failures)

    def check_exists(self, namespace: str | None = None) -> None:
        check_namespace(self.client, namespace or self.place)

    def find(self, name: str, deadline: Deadline, *, uid: str | None, heartbeat: float) -> Guest:
        check_name("name", name)
        options = self._params.get("agent") or {}
        mode: AddressMode = options.get("address", "service")
        port: int = options.get("port", 1024)
        found = locate(self.client, self.place, name, port=port, mode=mode, deadline=deadline, uid=uid)
        agent = Agent(found.agent, subject=f"sandbox {self.place}/{name}", heartbeat=heartbeat)
        return Guest(name, found.pod, agent, f"sandbox {name}")

    def list(
        self, *, name: str | None, label_selector: str | None, namespace: str | None = None
    ) -> list[dict[str, t.Any]]:
        from ...lifecycle.observed.inventory import list_sandboxes
        from ..results.sandboxes import info_result

        deadline = Deadline(READ_SECONDS, self.client.clock)
        found = list_sandboxes(self.client, namespace or self.place, deadline, name=name, label_selector=label_selector)
        return [info_result(one) for one in found]

    def renew(
        self, name: str, remaining: float, *, uid: str | None, dry_run: bool, within: float = RENEW_SECONDS
    ) -> Renewed:
        from ...lifecycle.lease.lease import find_lease

        check_name("name", name)
        return self.renew_lease(
            lambda limit: find_lease(self.client, self.place, name, limit),
            remaining,
            uid=uid,
            dry_run=dry_run,
            within=within,
        )

    def renew_lease(
        self,
        find: t.Callable[[Deadline], Lease],
        remaining: float,
        *,
        uid: str | None,
        dry_run: bool,
        within: float = RENEW_SECONDS,
    ) -> Renewed:
        """Extend the lease that ``find`` reads."""
        from ...lifecycle.lease.lease import ensure_left

        deadline = Deadline(within, self.client.clock)
        renewal = ensure_left(self.client, find, remaining, deadline, uid=uid, dry_run=dry_run)
        lease, end = renewal.lease, renewal.lease.expires_at
        left = (end - self.client.server_time.now().earliest).total_seconds() if end else None
        return Renewed(lease.ref.name, lease.ref.namespace, lease.uid, renewal.before, end, renewal.changed, left)

    def host_vars(self, sandbox: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        return host_vars(sandbox, self._params, self._environ)

    def _handed_out(self, acquired: Acquired) -> Acquisition:
        from ..results.sandboxes import sandbox_result

        self._acquired[acquired.uid] = acquired
        return Acquisition(
            name=acquired.name,
            namespace=acquired.namespace,
            uid=acquired.uid,
            agent=acquired.agent,
            expires_at=acquired.expires_at,
            created=acquired.created,
            stale=acquired.stale,
            result=sandbox_result(acquired),
        )
