# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks for pods: a folder of this machine for each claim, made when a pod needs it, removed with the claim.

A process of the instance, `python -m tools.cluster.components.volumes KUBECONFIG FOLDER SOCKET`. It needs the standard
library alone. Sizes are noted and not enforced.
"""

from __future__ import annotations

import shutil
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..api import Api, ApiError, administrator_api
from ..layout import NODE_NAME

Body = dict[str, Any]

STORAGE_CLASS = "namzu-local"
PROVISIONER = "sandbox.namzu.ai/local-folders"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # set by the scheduler when a pod waits for the claim
CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
PAUSE = 0.5  # seconds after a refused or cut request


def storage_class() -> Body:
    """The class of these disks, which is the one of claims that name none."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def wanted(claim: Body) -> bool:
    """Whether a pod waits for a disk of this storage class for this claim."""
    annotations = claim["metadata"].get("annotations") or {}
    return (
        claim["spec"].get("storageClassName") == STORAGE_CLASS
        and not claim["spec"].get("volumeName")
        and annotations.get(SELECTED_NODE) == NODE_NAME
    )


def released(volume: Body) -> bool:
    """Whether this is a disk of this storage class whose claim is deleted."""
    annotations = volume["metadata"].get("annotations") or {}
    return (
        annotations.get(PROVISIONED_BY) == PROVISIONER
        and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        and volume.get("status", {}).get("phase") in ("Released", "Failed")
    )


def volume_for(claim: Body, folder: Path) -> Body:
    """The disk for a claim; named by the claim's uid, so that a second try finds the first."""
    name = f"pvc-{claim['metadata']['uid']}"
    on_this_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": STORAGE_CLASS,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: claim["metadata"][key] for key in ("namespace", "name", "uid")},
            },
            "local": {"path": str(folder / name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_this_node]}]}},
        },
    }


def provide(api: Api, folder: Path, claim: Body) -> None:
    """Make folder and volume for a claim that waits."""
    if not wanted(claim):
        return
    volume = volume_for(claim, folder)
    path = Path(volume["spec"]["local"]["path"])
    path.mkdir(exist_ok=True)
    # Any user of a pod may write, as on the disks of other local provisioners; the folder above is for root alone.
    path.chmod(0o777)
    try:
        api.request("POST", VOLUMES, volume)
    except ApiError as error:
        if error.status != 409:
            raise


def remove(api: Api, folder: Path, volume: Body) -> None:
    """Remove folder and volume once the claim is gone."""
    if not released(volume):
        return
    name = volume["metadata"]["name"]
    shutil.rmtree(folder / name, ignore_errors=True)
    try:
        api.request("DELETE", f"{VOLUMES}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise


def follow(api: Api, path: str, handle: Callable[[Body], None], ready: Callable[[], None]) -> None:
    """Handle every object now and after each change, for ever; `ready` is called after each full round."""
    while True:
        try:
            listed = api.request("GET", path)
            for item in listed["items"]:
                handle(item)
            ready()
            api.wait_for_change(path, listed["metadata"]["resourceVersion"])
        except (ApiError, OSError) as error:
            print(f"{path}: {error}", flush=True)
            time.sleep(PAUSE)


def main(kubeconfig: str, folder: str, socket: str) -> None:
    """Watch claims and volumes; the socket accepts connections once both were listed."""
    api, root = administrator_api(Path(kubeconfig)), Path(folder)
    read = {path: threading.Event() for path in (CLAIMS, VOLUMES)}
    handlers = {CLAIMS: provide, VOLUMES: remove}
    for path, handler in handlers.items():
        arguments = (api, path, lambda body, handler=handler: handler(api, root, body), read[path].set)
        threading.Thread(target=follow, args=arguments, daemon=True).start()
    for event in read.values():
        event.wait()
    with socketserver.UnixStreamServer(socket, socketserver.BaseRequestHandler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
