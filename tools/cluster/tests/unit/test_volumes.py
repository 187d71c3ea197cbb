# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creation and deletion of disks, also when the API server has the volume already."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tools.cluster.api import ApiError
from tools.cluster.components import volumes
from tools.cluster.layout import NODE_NAME

CLAIM: dict[str, Any] = {
    "metadata": {
        "namespace": "agents",
        "name": "workspace",
        "uid": "u-1",
        "annotations": {volumes.SELECTED_NODE: NODE_NAME},
    },
    "spec": {
        "storageClassName": volumes.STORAGE_CLASS,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


class Server:
    """Notes requests, and refuses them with a status when it has one."""

    def __init__(self, refuses: int | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.refuses = refuses

    def request(self, method: str, path: str, body: object = None) -> None:
        self.asked.append((method, path))
        if self.refuses is not None:
            raise ApiError(method, path, self.refuses, "refused")


def changed(body: dict[str, Any], *path: str, to: object) -> dict[str, Any]:
    made = copy.deepcopy(body)
    *parents, last = path
    place = made
    for key in parents:
        place = place[key]
    place[last] = to
    return made


def test_a_claim_with_a_waiting_pod_gets_a_folder_and_a_bound_volume(tmp_path: Path) -> None:
    server: Any = Server()
    volumes.provide(server, tmp_path, CLAIM)
    assert (tmp_path / "pvc-u-1").is_dir()
    assert server.asked == [("POST", volumes.VOLUMES)]
    spec = volumes.volume_for(CLAIM, tmp_path)["spec"]
    assert (spec["claimRef"]["namespace"], spec["claimRef"]["name"], spec["claimRef"]["uid"]) == (
        "agents",
        "workspace",
        "u-1",
    )


@pytest.mark.parametrize(
    "claim",
    [
        changed(CLAIM, "spec", "storageClassName", to="another"),
        changed(CLAIM, "spec", "volumeName", to="pvc-u-1"),
        changed(CLAIM, "metadata", "annotations", to=None),
        changed(CLAIM, "metadata", "annotations", to={volumes.SELECTED_NODE: "another"}),
    ],
    ids=["of another class", "bound", "that no pod waits for", "on another node"],
)
def test_a_claim_without_a_waiting_pod_gets_no_disk(claim: dict[str, Any], tmp_path: Path) -> None:
    server: Any = Server()
    volumes.provide(server, tmp_path, claim)
    assert server.asked == []
    assert list(tmp_path.iterdir()) == []


def disk(tmp_path: Path, phase: str) -> dict[str, Any]:
    return {**volumes.volume_for(CLAIM, tmp_path), "status": {"phase": phase}}


def test_a_disk_is_deleted_with_its_claim(tmp_path: Path) -> None:
    (tmp_path / "pvc-u-1").mkdir()
    (tmp_path / "pvc-u-1" / "file").touch()
    server: Any = Server()
    volumes.remove(server, tmp_path, disk(tmp_path, "Released"))
    assert list(tmp_path.iterdir()) == []
    assert server.asked == [("DELETE", f"{volumes.VOLUMES}/pvc-u-1")]


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"phase": "Bound"}},
        {"status": {"phase": "Available"}},
        {"metadata": {"name": "pvc-u-1"}},
        {"spec": {"persistentVolumeReclaimPolicy": "Retain"}},
    ],
    ids=["in use", "not bound yet", "of another provisioner", "reclaim policy Retain"],
)
def test_a_disk_is_retained(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pvc-u-1").mkdir()
    server: Any = Server()
    volumes.remove(server, tmp_path, {**disk(tmp_path, "Released"), **change})
    assert (tmp_path / "pvc-u-1").is_dir()
    assert server.asked == []


def test_repeated_creation_and_deletion_succeed(tmp_path: Path) -> None:
    there: Any = Server(refuses=409)
    volumes.provide(there, tmp_path, CLAIM)
    gone: Any = Server(refuses=404)
    volumes.remove(gone, tmp_path, disk(tmp_path, "Released"))


@pytest.mark.parametrize("status", [403, 500])
def test_a_refusal_is_raised_for_the_next_try(status: int, tmp_path: Path) -> None:
    server: Any = Server(refuses=status)
    with pytest.raises(ApiError):
        volumes.provide(server, tmp_path, CLAIM)
    with pytest.raises(ApiError):
        volumes.remove(server, tmp_path, disk(tmp_path, "Released"))
