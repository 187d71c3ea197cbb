# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks for the tests of workspaces: local volumes of a StorageClass of their own, made and removed by the tests."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import typing as t
import uuid

Body = dict[str, t.Any]

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
NODES = "/api/v1/nodes"

#: Folders of the cluster's node, which is this machine.
FOLDERS = pathlib.Path("/var/tmp/namzu-test-volumes")


@dataclasses.dataclass(frozen=True)
class Storage:
    """A StorageClass without a provisioner, and volumes that wait for their first user."""

    kube: t.Any
    name: str
    folder: pathlib.Path

    @classmethod
    def make(cls, kube: t.Any, volumes: int) -> t.Self:
        """Make the class and so many volumes."""
        made = cls(kube, name := f"namzu-test-{uuid.uuid4().hex[:8]}", FOLDERS / name)
        metadata = {"name": name}
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
        kube.request(
            "POST",
            CLASSES,
            {**kind, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
        )
        for number in range(volumes):
            made.add(number)
        return made

    def add(self, number: int) -> None:
        """Make one more volume; its folder belongs to the user of the template role."""
        folder = self.folder / str(number)
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        node = self.kube.items(NODES)[0]["metadata"]["labels"]["kubernetes.io/hostname"]
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": self.name,
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        metadata = {"name": f"{self.name}-{number}", "labels": {"namzu-test": self.name}}
        self.kube.request(
            "POST", VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
        )

    def remove(self) -> None:
        """Remove everything again."""
        for volume in self.kube.items(f"{VOLUMES}?labelSelector=namzu-test%3D{self.name}"):
            self.kube.delete(f"{VOLUMES}/{volume['metadata']['name']}")
        self.kube.delete(f"{CLASSES}/{self.name}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def entry(self, name: str = "workspace", storage_class: str | None = None) -> Body:
        """A volumeClaimTemplates entry that takes one of these volumes."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class or self.name,
            "resources": {"requests": {"storage": "100Mi"}},
        }
        return {"metadata": {"name": name}, "spec": spec}
