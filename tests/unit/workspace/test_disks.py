# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A claim that is Pending is the cause of a failed start only where the failure is about volumes."""

from __future__ import annotations

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.disks import Disk, raise_if_unbound
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspaceDiskError

REF = SANDBOX.ref("agents", "workspace-a")


def disk(phase: str | None) -> Disk:
    return Disk("workspace", "workspace-a", "uid", phase, "1Gi", "standard", None, deleting=False, replaced=False)


def failure(reason: str, message: str) -> AcquireError:
    return AcquireError(message, reason=reason, retryable=True)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("quota", "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0"),
        ("capacity", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
        ("capacity", "0/1 nodes are available: 1 Insufficient memory"),
    ],
)
@pytest.mark.parametrize("phase", ["Pending", None])
def test_quota_and_capacity_keep_their_reason(reason: str, message: str, phase: str | None) -> None:
    raise_if_unbound(REF, [disk(phase)], failure(reason, message))


@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims",
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind",
        "0/1 nodes are available: 1 node(s) had volume node affinity conflict",
        'storageclass.storage.k8s.io "fast" not found',
    ],
)
def test_scheduler_that_waits_for_a_volume_names_the_disk(message: str) -> None:
    with pytest.raises(WorkspaceDiskError) as caught:
        raise_if_unbound(REF, [disk("Pending")], failure("capacity", message))
    assert caught.value.reason == "disk"
    assert message in str(caught.value)


def test_lost_volume_is_the_cause_whatever_else_is_reported() -> None:
    with pytest.raises(WorkspaceDiskError):
        raise_if_unbound(REF, [disk("Lost")], failure("capacity", "1 Insufficient memory"))
