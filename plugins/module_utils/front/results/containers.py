# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of results on the container backend; the keys are those of Kubernetes."""

from __future__ import annotations

import dataclasses
import typing as t

from ...container.inventory import ContainerInfo
from ...container.request import ContainerSandbox, ContainerVerdict
from ...lifecycle.timestamps import timestamp
from ...lifecycle.verification.spec import UNVERIFIED
from ..options.backend import CONTAINER
from .privileges import privileges_result


def container_result(sandbox: ContainerSandbox) -> dict[str, t.Any]:
    """A sandbox as the task returns it. The bind token is not in it."""
    return {
        "backend": CONTAINER,
        "name": sandbox.name,
        "namespace": None,
        "uid": sandbox.uid,
        "sandbox": sandbox.container,
        "pod": None,
        "address": None,
        "warm": False,
        "stale": None,
        "labels": dict(sandbox.labels),
        "expires_at": timestamp(sandbox.expires_at),
        "timings": dict(sandbox.timings),
        "verdict": _verdict(sandbox.verdict),
    }


def _verdict(verdict: ContainerVerdict) -> dict[str, t.Any]:
    egress = verdict.egress
    #: Without a network nobody reaches the container; on a bridge its neighbours do.
    ingress: t.Any = UNVERIFIED
    if not egress.networks:
        ingress = {**_boundary("no network"), "holds": True}
    return {
        "privileges": privileges_result(verdict.privileges),
        "isolation": verdict.isolation.as_dict() if verdict.isolation is not None else None,
        "egress": {"policy": None, **_boundary(egress.request), "notes": list(egress.notes)},
        "ingress": ingress,
        "network_probe": None if verdict.network_probe is None else dict(verdict.network_probe),
        "confinement": {**dataclasses.asdict(verdict.confinement), "networks": list(egress.networks)},
    }


def _boundary(request: str) -> dict[str, t.Any]:
    return {"holds": True, "request": request, "policies": [], "isolated_by": [], "notes": [], "unread": []}


def container_info_result(info: ContainerInfo) -> dict[str, t.Any]:
    """A line of the inventory as the task returns it; times as text, lengths of time as whole seconds."""
    return {
        "name": info.name,
        "namespace": None,
        "kind": "direct",
        "uid": info.uid,
        "labels": dict(info.labels),
        "warm_pool": None,
        "template": None,
        "workspace_id": None,
        "sandbox": info.container,
        "pod": None,
        "service": None,
        "pod_ip": None,
        "node": None,
        "warm": False,
        "phase": info.phase,
        "reason": None,
        "message": None,
        "created_at": timestamp(info.created_at) if info.created_at else None,
        "expires_at": timestamp(info.expires_at) if info.expires_at else None,
        "age": None if info.age is None else int(info.age),
        "lease_left": None if info.lease_left is None else int(info.lease_left),
    }
