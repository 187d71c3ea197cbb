# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of results."""

from __future__ import annotations

import dataclasses
import typing as t

from ...boundary.reach import verdict as boundary_verdict
from ...lifecycle.acquire.request import Acquired, Verdict
from ...lifecycle.observed.inventory import SandboxInfo
from ...lifecycle.timestamps import timestamp
from ...lifecycle.verification.spec import UNVERIFIED, Proven
from ..options.backend import KUBERNETES
from .privileges import privileges_result


def sandbox_result(acquired: Acquired) -> dict[str, t.Any]:
    """A sandbox as the task returns it. The bind token is not in it."""
    return {
        "backend": KUBERNETES,
        "name": acquired.name,
        "namespace": acquired.namespace,
        "uid": acquired.uid,
        "sandbox": acquired.sandbox,
        "pod": acquired.pod,
        "address": {"host": acquired.agent.host, "port": acquired.agent.port},
        "warm": acquired.warm,
        "stale": acquired.stale,
        "labels": dict(acquired.labels),
        "expires_at": timestamp(acquired.expires_at) if acquired.expires_at else None,
        "timings": dict(acquired.timings),
        "verdict": verdict_result(acquired.verdict),
    }


def verdict_result(verdict: Verdict) -> dict[str, t.Any]:
    """What was proven, and what was not."""
    return {
        "privileges": privileges_result(verdict.privileges),
        "isolation": verdict.isolation.as_dict() if verdict.isolation is not None else None,
        "egress": _egress(verdict.boundary),
        "ingress": UNVERIFIED if verdict.boundary.ingress is None else boundary_result(verdict.boundary.ingress),
        "network_probe": verdict.network.as_dict() if verdict.network is not None else None,
    }


def _egress(boundary: Proven) -> str | dict[str, t.Any]:
    if boundary.policy is None:
        return UNVERIFIED
    named = {"policy": boundary.policy}
    return named if boundary.egress is None else {**named, **boundary_result(boundary.egress)}


def boundary_result(verdict: boundary_verdict.Verdict) -> dict[str, t.Any]:
    """A verdict on one direction as the task returns it, without the pod's name."""
    shown = ("holds", "request", "policies", "isolated_by", "notes", "unread")
    whole = verdict.as_dict()
    return {key: list(whole[key]) if isinstance(whole[key], tuple) else whole[key] for key in shown}


def info_result(info: SandboxInfo) -> dict[str, t.Any]:
    """A line of the inventory as the task returns it; times as text, lengths of time as whole seconds."""
    result = dataclasses.asdict(info)
    result["labels"] = dict(info.labels)
    for field in ("created_at", "expires_at"):
        moment = getattr(info, field)
        result[field] = timestamp(moment) if moment else None
    for field in ("age", "lease_left"):
        length = getattr(info, field)
        result[field] = None if length is None else int(length)
    return result
