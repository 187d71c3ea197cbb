# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRDs and the controller's own permissions: read from pinned Go modules, prepared once, cached as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..failures import ClusterError
from ..host import commands
from ..layout import CONTROLLER_NAMESPACE, PROGRAM_MODULE
from ..progress import Progress
from . import cache
from .programs import go_environment

Manifest = dict[str, Any]

RECIPE = "3"  # raise it when the preparation below changes
AGENT_SANDBOX = "sigs.k8s.io/agent-sandbox"
CONTROLLER_FILES = ("controller.yaml", "rbac.generated.yaml", "extensions.yaml", "extensions-rbac.generated.yaml")
#: Kinds of the controller's files, and their API paths. The Deployment is left out: the controller is a local process.
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{CONTROLLER_NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{CONTROLLER_NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{CONTROLLER_NAMESPACE}/rolebindings",
}


@dataclass(frozen=True)
class Source:
    """A Go module that is only read, pinned by the checksum that a go.sum would carry."""

    module: str
    version: str
    checksum: str
    crds: str


SOURCES = (
    Source(
        "github.com/cilium/cilium",
        "v1.20.2",
        "h1:dqiEGIcXc+gqCLYG/l7VCFJ8GHyb4HUrwbZOpkX5dL8=",
        "pkg/k8s/apis/cilium.io/client/crds/v2/*.yaml",
    ),
    Source(
        "sigs.k8s.io/network-policy-api",
        "v0.3.0",
        "h1:RL6fVXiix9IW1pj0ImkW645m+EWmb3dBGCiW19bg5+k=",
        "config/crd/standard/policy.networking.k8s.io_*.yaml",
    ),
)


@dataclass(frozen=True)
class Objects:
    """Prepared manifests."""

    crds: tuple[Manifest, ...]  # agent-sandbox's own
    policy_crds: tuple[Manifest, ...]  # of network policy engines; no engine acts on these objects
    controller: tuple[Manifest, ...]


def load(cache_folder: Path, progress: Progress) -> Objects:
    """The prepared manifests, made when the cache does not have them."""
    folder = cache.folder(cache_folder / "objects", _key(), lambda into: _prepare(into, progress), progress)
    document = json.loads((folder / "objects.json").read_text(encoding="utf-8"))
    return Objects(tuple(document["crds"]), tuple(document["policy_crds"]), tuple(document["controller"]))


def _key() -> str:
    pins = [f"{source.module}@{source.version} {source.checksum} {source.crds}" for source in SOURCES]
    return cache.key([RECIPE, *pins, (PROGRAM_MODULE / "go.sum").read_bytes()])


def is_missing(cache_folder: Path) -> bool:
    """Whether `load` needs Go."""
    return not (cache_folder / "objects" / _key()).is_dir()


def _prepare(into: Path, progress: Progress) -> None:
    progress.report("fetching CRDs from their modules")
    agent_sandbox = Path(_download(AGENT_SANDBOX, PROGRAM_MODULE)["Dir"]) / "k8s"
    crds = [served_without_webhook(crd) for crd in _documents(sorted(agent_sandbox.glob("crds/*.yaml")))]
    policy_crds: list[Manifest] = []
    for source in SOURCES:
        answer = _download(f"{source.module}@{source.version}", into)
        if answer.get("Sum") != source.checksum:
            raise ClusterError(
                f"{source.module}@{source.version} has checksum {answer.get('Sum')}, not {source.checksum}"
            )
        policy_crds.extend(_documents(sorted(Path(answer["Dir"]).glob(source.crds))))
    manifests = _documents(agent_sandbox / name for name in CONTROLLER_FILES)
    controller = [manifest for manifest in manifests if manifest["kind"] in PATHS]
    prepared = {"crds": crds, "policy_crds": policy_crds, "controller": controller}
    (into / "objects.json").write_text(json.dumps(prepared), encoding="utf-8")


def served_without_webhook(crd: Manifest) -> Manifest:
    """The CRD without conversion: v1alpha1 stays in the schema list but is not served."""
    spec = {**crd["spec"], "conversion": {"strategy": "None"}}
    spec["versions"] = [
        {**version, "served": False} if version["name"] == "v1alpha1" else version for version in spec["versions"]
    ]
    return {**crd, "spec": spec}


def _download(module: str, folder: Path) -> dict[str, str]:
    answer: dict[str, str] = json.loads(
        commands.run(["go", "mod", "download", "-json", module], cwd=folder, environment=go_environment(), timeout=300)
    )
    return answer


def _documents(files: Iterable[Path]) -> Iterator[Manifest]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=loader):
            if document:
                yield document
