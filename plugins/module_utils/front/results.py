# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of results."""

from __future__ import annotations

import dataclasses
import typing as t

from ..lifecycle.inventory import Standing
from ..lifecycle.matching import timestamp
from ..lifecycle.request import Acquired, Verdict


def sandbox_result(acquired: Acquired) -> dict[str, t.Any]:
    """A sandbox as the task returns it. The bind token is not in it."""
    return {
        "name": acquired.name,
        "namespace": acquired.namespace,
        "uid": acquired.uid,
        "sandbox": acquired.sandbox,
        "pod": acquired.pod,
        "address": {"host": acquired.agent.host, "port": acquired.agent.port},
        "warm": acquired.warm,
        "labels": dict(acquired.labels),
        "expires_at": timestamp(acquired.expires_at) if acquired.expires_at else None,
        "timings": dict(acquired.timings),
        "verdict": verdict_result(acquired.verdict),
    }


def verdict_result(verdict: Verdict) -> dict[str, t.Any]:
    """What was proven, and what was not."""
    probed = verdict.privileges
    masks = ("inheritable", "permitted", "effective", "bounding", "ambient")
    return {
        "privileges": {
            "none": probed.none,
            "capabilities": {mask: f"{getattr(probed, mask):016x}" for mask in masks},
            "no_new_privs": probed.no_new_privs,
            "uid": probed.uid,
            "seccomp": probed.seccomp,
        },
        "egress": verdict.egress,
        "ingress": verdict.ingress,
    }


def standing_result(standing: Standing) -> dict[str, t.Any]:
    """A line of the inventory as the task returns it; times as text, lengths of time as whole seconds."""
    result = dataclasses.asdict(standing)
    result["labels"] = dict(standing.labels)
    for field in ("created_at", "expires_at"):
        moment = getattr(standing, field)
        result[field] = timestamp(moment) if moment else None
    for field in ("age", "lease_left"):
        length = getattr(standing, field)
        result[field] = None if length is None else int(length)
    return result
