# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of the results about workspaces. No bind token is in them."""

from __future__ import annotations

import dataclasses
import typing as t

from ...guest.quiescence import QuiesceReport
from ...lifecycle.timestamps import timestamp
from ...workspace.errors import NotSettledError
from ...workspace.inventory import WorkspaceSummary
from ...workspace.request import Opened, Suspended
from .sandboxes import verdict_result


def opened_result(opened: Opened) -> dict[str, t.Any]:
    """A workspace that runs."""
    return {
        "workspace_id": opened.workspace_id,
        "name": opened.name,
        "namespace": opened.namespace,
        "uid": opened.uid,
        "mode": "running",
        "origin": opened.origin,
        "refreshed": opened.refreshed,
        "pod": opened.identity.pod,
        "address": {"host": opened.agent.host, "port": opened.agent.port},
        "identity": opened.identity.as_dict(),
        "template": opened.template,
        "template_current": opened.template_current,
        "holder_epoch": opened.holder_epoch,
        "disks": [dataclasses.asdict(disk) for disk in opened.disks],
        "labels": dict(opened.labels),
        "expires_at": timestamp(opened.expires_at) if opened.expires_at else None,
        "timings": dict(opened.timings),
        "verdict": verdict_result(opened.verdict),
    }


def suspended_result(done: Suspended) -> dict[str, t.Any]:
    """A workspace that is suspended."""
    flushed, quiesced = done.flushed, done.quiesced
    return {
        "workspace_id": done.workspace_id,
        "name": done.name,
        "namespace": done.namespace,
        "uid": done.uid,
        "mode": "suspended",
        "refreshed": done.refreshed,
        "holder_epoch": done.holder_epoch,
        "flushed": None if flushed is None else dataclasses.asdict(flushed),
        "unsettled": [{"reason": error.reason, "msg": error.message} for error in done.unsettled],
        "quiesced": None if quiesced is None else quiesced_result(quiesced),
    }


def quiesced_result(report: QuiesceReport) -> dict[str, t.Any]:
    """What was stopped, and what the agent could not stop or could not see."""
    return {
        "count": report.count,
        "duration": report.duration,
        "scope": report.scope,
        "outside_count": report.outside_count,
        "unseen_containers": list(report.unseen_containers),
    }


def unsettled_warnings(unsettled: t.Sequence[NotSettledError]) -> list[str]:
    """What the guest did not do before its pod was stopped, as warnings of the task."""
    return [
        f"{error.message} The pod was stopped all the same: what was not on its disk is lost." for error in unsettled
    ]


def summary_result(summary: WorkspaceSummary) -> dict[str, t.Any]:
    """A line of the inventory; times as text, lengths of time as whole seconds."""
    result = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    result["labels"] = dict(summary.labels)
    result["disks"] = [dataclasses.asdict(disk) for disk in summary.disks]
    for field in ("mode_since", "created_at", "expires_at"):
        result[field] = timestamp(result[field]) if result[field] else None
    for field in ("age", "mode_for", "stopped_for"):
        result[field] = None if result[field] is None else int(result[field])
    return result
