# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workspaces with a ttl on a real controller: kept by a play, and suspended at its end, however it ends."""

from __future__ import annotations

import subprocess
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import LeaseLostError, renew
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.lease import WorkspaceLease, workspace_lease_of
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.open import open_workspace

from .kept_play import Body, started
from .workspace_ground import ADDRESS_OPTION, TEMPLATE, Ground

#: Seconds after which the pods would be stopped, and for which a play works on: more than two of those.
TTL = 10
LONG = 2 * TTL + 3


def workspace(ground: Ground, workspace_id: str, **options: t.Any) -> Body:
    base = {**ground.access, "namespace": ground.namespace, "workspace_id": workspace_id, **ADDRESS_OPTION}
    return {"namzu.sandbox.workspace": {**base, "template": TEMPLATE, **options}}


def execute(ground: Ground, workspace_id: str, command: str) -> Body:
    base = {**ground.access, "namespace": ground.namespace, "workspace_id": workspace_id, **ADDRESS_OPTION}
    return {"namzu.sandbox.sandbox_exec": {**base, "command": command}}


@pytest.fixture(scope="module")
def long_play(ground, kubeconfig, tmp_path_factory) -> t.Iterator[subprocess.Popen[str]]:
    """A play that works in a workspace for longer than two of its ttls, beside the other tests."""
    lease = {**ground.access, "namespace": ground.namespace, "workspace_id": "long", "holder_epoch": 7}
    tasks = [
        workspace(ground, "long", ttl=TTL, release_on_end=True, holder_epoch=7),
        execute(ground, "long", "echo kept > kept; echo kept > /tmp/mark"),
        {"ansible.builtin.wait_for": {"timeout": LONG}},
        {"namzu.sandbox.sandbox_lease": {**lease, "remaining": "1s"}},
        {**execute(ground, "long", "cat kept /tmp/mark"), "register": "read"},
        {"ansible.builtin.assert": {"that": "read.stdout == 'kept\\nkept\\n'"}},
    ]
    with started(kubeconfig, tmp_path_factory.mktemp("long"), tasks) as process:
        yield process


def is_suspended(body: Body | None) -> bool:
    return bool(body and body["spec"].get("operatingMode") == "Suspended")


def test_killed_play_suspends_what_it_started_within_two_seconds_and_the_disk_is_whole(
    ground, kubeconfig, tmp_path, long_play
) -> None:
    written = "head -c 3000000 /dev/urandom > kept; sha256sum kept > sum; touch done"
    tasks = [
        workspace(ground, "killed", ttl="10m", release_on_end=True),
        execute(ground, "killed", written),
        workspace(ground, "marker", ttl="10m"),
        {"ansible.builtin.wait_for": {"timeout": 120}},
    ]
    with started(kubeconfig, tmp_path, tasks) as process:
        ground.kube.until(ground.sandbox("marker"), lambda body: body is not None)
        disk = ground.kube.get(ground.claim("killed"))["metadata"]["uid"]
        process.kill()
        ground.kube.until(ground.sandbox("killed"), is_suspended, 2.0)
    assert not is_suspended(ground.kube.get(ground.sandbox("marker")))
    with ground.open("killed", ttl=600.0) as again:
        assert again.opened.origin == "resumed"
        assert again.execute(["sha256sum", "-c", "sum"], deadline=Deadline(30.0)).rc == 0
        assert ground.kube.get(ground.claim("killed"))["metadata"]["uid"] == disk
    assert is_suspended(ground.kube.get(ground.sandbox("killed")))
    for workspace_id in ("killed", "marker"):
        ground.delete(workspace_id)


def test_older_holder_extends_nothing_and_suspends_nothing(ground, long_play) -> None:
    def held(epoch: int) -> WorkspaceLease:
        request = ground.request("passed-on", ttl=600.0, holder_epoch=epoch)
        return workspace_lease_of(open_workspace(ground.client, request), request)

    lease, newer_lease = held(7), held(8)
    before = ground.kube.get(ground.sandbox("passed-on"))
    with pytest.raises(LeaseLostError) as lost:
        renew(ground.client, lease, Deadline(10.0), at_least=3600.0)
    assert lost.value.reason == "overtaken"
    with pytest.raises(LeaseLostError, match="held under the epoch 8"):
        lease.release(ground.client, Deadline(10.0))
    assert ground.kube.get(ground.sandbox("passed-on"))["spec"] == before["spec"]
    assert renew(ground.client, newer_lease, Deadline(10.0), at_least=3600.0).changed
    ground.delete("passed-on")


def test_play_longer_than_two_ttls_keeps_its_pod_and_leaves_the_workspace_asleep_on_its_disk(ground, long_play) -> None:
    said, _nothing = long_play.communicate(timeout=LONG + 60)
    assert long_play.returncode == 0, said
    (summary,) = [line for line in said.splitlines() if line.startswith("lease_keeper:")]
    assert int(summary.split(" held, ")[1].split(" ")[0]) >= 3, summary
    assert summary.endswith("1 suspended at the end")
    assert is_suspended(ground.kube.get(ground.sandbox("long")))
    with ground.open("long", holder_epoch=7) as again:
        assert again.execute(["cat", "kept"], deadline=Deadline(30.0)).stdout == b"kept\n"
    ground.delete("long")
