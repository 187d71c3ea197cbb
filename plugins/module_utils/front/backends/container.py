# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a container engine."""

from __future__ import annotations

import typing as t

from ...container.acquire import acquire_container
from ...container.batch import acquire_containers
from ...container.inventory import held_containers, list_containers, locate_container
from ...container.lease import renew_lease
from ...container.names import check_name
from ...container.planned import planned_acquires
from ...container.release import release_container
from ...container.request import ContainerRequest, ContainerSandbox
from ...deadline import Cancellation, Deadline
from ...engine.client import EngineClient
from ...errors import InputError, SandboxError
from ...guest.agent import Agent
from ...lifecycle.durations import seconds
from ...lifecycle.verification.spec import EgressBoundary
from ...numbering import OnFailure, numbered
from ..options.engine import engine_client
from ..options.labels import labels_of
from ..options.sizes import size
from ..results.containers import container_info_result, container_result
from ..results.host_vars import container_host_vars
from .protocol import RENEW_SECONDS, Acquisition, Batch, Guest, Renewed

if t.TYPE_CHECKING:
    from ...lifecycle.lease.lease import Lease

#: Seconds for a list, retries included.
READ_SECONDS = 60.0
RELEASE_SECONDS = 60.0

#: Options of the egress that choose among network policies.
_OF_POLICIES = ("name", "profile")

_SHOWN = ("image", "runtime", "user", "cpus", "memory", "pids", "network", "outputs", "labels")


class ContainerBackend:
    """See ``Backend``."""

    name = "container"
    namespace: str | None = None

    def __init__(self, client: EngineClient, params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> None:
        self.client = client
        self.place = client.name
        self._params = params
        self._environ = environ

    @classmethod
    def of(cls, params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> ContainerBackend:
        """The engine that options name, completed from the variables of Docker.

        Raises:
            AccessError, InputError: they name no engine that can be used.
        """
        timeout = seconds("request_timeout", params.get("request_timeout") or "30s")
        return cls(engine_client(params, environ, timeout), params, environ)

    def request(self, params: t.Mapping[str, t.Any]) -> ContainerRequest:
        chosen = {
            "image": params.get("image"),
            "name": params.get("name"),
            "runtime": params.get("runtime"),
            "user": params.get("user"),
            "cpus": params.get("cpus"),
            "memory": None if params.get("memory") is None else size("memory", params["memory"]),
            "pids": params.get("pids"),
            "read_only_rootfs": params.get("read_only_rootfs"),
            "writable_paths": tuple(params.get("writable_paths") or ()),
            "env": {str(key): str(value) for key, value in (params.get("env") or {}).items()},
            "labels": labels_of("labels", params),
            "network": params.get("network"),
            "outputs": params.get("outputs"),
            "seccomp": params.get("seccomp"),
            "egress": _egress(params["egress"]) if params.get("egress") else None,
            "network_probe": params["network_probe"],
            "isolation": params.get("isolation"),
            "ttl": seconds("ttl", params["ttl"]),
            "ready_timeout": seconds("ready_timeout", params["ready_timeout"]),
        }
        return ContainerRequest(**{name: value for name, value in chosen.items() if value is not None})

    def described(self, request: ContainerRequest) -> dict[str, t.Any]:
        asked = {name: getattr(request, name) for name in _SHOWN}
        return {**{name: value for name, value in asked.items() if value}, "egress": request.egress.kind}

    def acquire(self, request: ContainerRequest, cancellation: Cancellation | None = None) -> Acquisition:
        return _handed_out(acquire_container(self.client, request, cancellation))

    def acquire_many(self, request: ContainerRequest, count: int, on_failure: OnFailure) -> Batch:
        outcomes, first = acquire_containers(self.client, request, count, on_failure)
        acquired = [_handed_out(one.acquired) for one in outcomes if one.acquired is not None]
        failures = {one.name: one.error for one in outcomes if one.error is not None}
        if first is None:
            return Batch(acquired)
        had = sum(one.error is None for one in outcomes)
        text = f"{had} of {len(outcomes)} sandboxes were acquired. The first failure: {first.message}"
        return Batch(acquired, failures, first.replace(message=text))

    def planned(self, request: ContainerRequest, count: int | None) -> list[tuple[str, bool]]:
        requests = [request] if count is None else numbered(request, count)
        return planned_acquires(self.client, requests)

    def leases(self, request: ContainerRequest, acquired: t.Sequence[Acquisition]) -> t.Mapping[str, Lease]:
        from .engine_lease import ENGINE_SANDBOX, ContainerLease

        return {
            one.name: ContainerLease(ENGINE_SANDBOX.ref("", one.name), one.uid, request.ttl, one.expires_at)
            for one in acquired
        }

    def release_created(self, created: t.Mapping[str, str]) -> t.Iterable[str]:
        _released, failures = self.release(
            dict(created), Deadline(RELEASE_SECONDS, self.client.clock), wait=True, dry_run=False
        )
        return failures

    def names_matching(self, label_selector: str, deadline: Deadline) -> t.Mapping[str, str | None]:
        found = held_containers(self.client, deadline, labels=equalities(label_selector))
        return dict(sorted(found.items()))

    def release(
        self, names: t.Mapping[str, str | None], deadline: Deadline, *, wait: bool, dry_run: bool
    ) -> tuple[list[str], dict[str, SandboxError]]:
        del wait  # an engine answers when the container is gone
        released, failures = [], {}
        for name, uid in names.items():
            try:
                if release_container(self.client, name, deadline, uid=uid, dry_run=dry_run).existed:
                    released.append(name)
            except SandboxError as error:
                failures[name] = error
        return released, failures

    def check_exists(self, namespace: str | None = None) -> None:
        """An engine that answered is there."""

    def find(self, name: str, deadline: Deadline, *, uid: str | None, heartbeat: float) -> Guest:
        check_name(name)
        found = locate_container(self.client, name, deadline, uid=uid)
        agent = Agent(found.agent, subject=f"sandbox {name}", heartbeat=heartbeat)
        return Guest(name, found.container, agent, f"sandbox {name}")

    def list(
        self, *, name: str | None, label_selector: str | None, namespace: str | None = None
    ) -> list[dict[str, t.Any]]:
        del namespace  # an engine has none
        labels = equalities(label_selector) if label_selector is not None else None
        deadline = Deadline(READ_SECONDS, self.client.clock)
        return [container_info_result(one) for one in list_containers(self.client, deadline, name=name, labels=labels)]

    def renew(
        self, name: str, remaining: float, *, uid: str | None, dry_run: bool, within: float = RENEW_SECONDS
    ) -> Renewed:
        check_name(name)
        deadline = Deadline(within, self.client.clock)
        done = renew_lease(self.client, name, remaining, deadline, uid=uid, dry_run=dry_run)
        left = (done.expires_at - self.client.now()).total_seconds()
        return Renewed(name, None, done.uid, done.before, done.expires_at, done.changed, left)

    def host_vars(self, sandbox: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        return container_host_vars(sandbox, self._params, self._environ)


def equalities(label_selector: str) -> dict[str, str]:
    """The labels of a selector that is made of equalities alone (``a=b,c=d``).

    Raises:
        InputError: it is empty, or has another operator.
    """
    pairs = [part.strip().partition("=") for part in label_selector.split(",")]
    labels = {key.strip(): value.lstrip("=").strip() for key, _equals, value in pairs}
    if any(not key or not equals or set(key) & set("! ()") for key, equals, _value in pairs):
        raise InputError(
            f"label_selector is {label_selector!r}; on the container backend it is made of equalities.",
            next_step="Use for example job=4711,team=search.",
        )
    return labels


def _egress(value: t.Any) -> t.Any:
    """The request of option ``egress``; what chooses among network policies is refused."""
    for option in _OF_POLICIES:
        if isinstance(value, dict) and value.get(option) is not None:
            raise InputError(
                f"egress.{option} chooses a network policy, and the container backend has none.",
                next_step=f"Leave out egress.{option}; use network for the network of the sandbox.",
            )
    return EgressBoundary.of(value).request


def _handed_out(sandbox: ContainerSandbox) -> Acquisition:
    return Acquisition(
        name=sandbox.name,
        namespace=None,
        uid=sandbox.uid,
        agent=sandbox.agent,
        expires_at=sandbox.expires_at,
        created=sandbox.created,
        stale=None,
        result=container_result(sandbox),
    )
