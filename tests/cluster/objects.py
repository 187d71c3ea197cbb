# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server has to know before the controller starts: CRDs and the controller's own permissions.

They come from the source of pinned Go modules, prepared once and kept in the cache as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import cache, commands
from .api import Api, ApiError
from .credentials import DNS_USER, FIREWALL_USER, VOLUMES_USER
from .failures import ClusterError
from .layout import CONTROLLER_NAMESPACE, PROGRAM_MODULES
from .programs import go_environment
from .progress import Progress
from .volumes import STORAGE_CLASS, storage_class

Manifest = dict[str, Any]

RECIPE = "3"  # raise it when the preparation below changes
KUBERNETES_MODULE = PROGRAM_MODULES / "kubernetes"
AGENT_SANDBOX = "sigs.k8s.io/agent-sandbox"
CONTROLLER_FILES = ("controller.yaml", "rbac.generated.yaml", "extensions.yaml", "extensions-rbac.generated.yaml")
CONTROLLER_KINDS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{CONTROLLER_NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{CONTROLLER_NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{CONTROLLER_NAMESPACE}/rolebindings",
}
DNS_ROLE = "namzu-coredns"
DNS_RULES = (
    {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
)
FIREWALL_ROLE = "namzu-kube-router"
FIREWALL_RULES = (
    {
        "apiGroups": [""],
        "resources": ["nodes", "pods", "namespaces", "services", "endpoints"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
)
VOLUMES_ROLE = "namzu-volumes"
VOLUMES_RULES = (
    {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["list", "watch", "create", "delete"]},
)
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


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
    policy_crds: tuple[Manifest, ...]  # of network policy engines; nothing acts on these objects
    controller: tuple[Manifest, ...]


def load(cache_folder: Path, progress: Progress) -> Objects:
    """The prepared manifests, made where the cache does not have them."""
    folder = cache.folder(cache_folder / "objects", _key(), lambda into: _prepare(into, progress), progress)
    document = json.loads((folder / "objects.json").read_text(encoding="utf-8"))
    return Objects(tuple(document["crds"]), tuple(document["policy_crds"]), tuple(document["controller"]))


def _key() -> str:
    pins = [f"{source.module}@{source.version} {source.checksum} {source.crds}" for source in SOURCES]
    return cache.key([RECIPE, *pins, (KUBERNETES_MODULE / "go.sum").read_bytes()])


def is_missing(cache_folder: Path) -> bool:
    """Whether `load` needs Go."""
    return not (cache_folder / "objects" / _key()).is_dir()


def _prepare(into: Path, progress: Progress) -> None:
    progress.say("fetching CRDs from their modules")
    agent_sandbox = Path(_download(AGENT_SANDBOX, KUBERNETES_MODULE)["Dir"]) / "k8s"
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
    controller = [manifest for manifest in manifests if manifest["kind"] in CONTROLLER_KINDS]
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


def install_controller_objects(api: Api, objects: Objects) -> None:
    """The controller's namespace, service account and permissions."""
    for manifest in objects.controller:
        api.apply(f"{CONTROLLER_KINDS[manifest['kind']]}/{manifest['metadata']['name']}", manifest)


def install_dns_permissions(api: Api) -> None:
    """What CoreDNS may read; kube-proxy's role is one of those that the API server makes itself."""
    _grant(api, DNS_ROLE, DNS_USER, DNS_RULES)


def install_firewall_permissions(api: Api) -> None:
    """What kube-router may read."""
    _grant(api, FIREWALL_ROLE, FIREWALL_USER, FIREWALL_RULES)


def install_storage(api: Api) -> None:
    """The storage class, and what its provisioner may do."""
    _grant(api, VOLUMES_ROLE, VOLUMES_USER, VOLUMES_RULES)
    api.apply(f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}", storage_class())


def _grant(api: Api, role: str, user: str, rules: Sequence[Manifest]) -> None:
    group = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{group}/v1", "metadata": {"name": role}}
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    for manifest in (
        {**head, "kind": "ClusterRole", "rules": list(rules)},
        {**head, "kind": "ClusterRoleBinding", **bound},
    ):
        api.apply(f"{CONTROLLER_KINDS[str(manifest['kind'])]}/{role}", manifest)


def install_crds(api: Api, crds: Sequence[Manifest], patience: float = 60.0) -> None:
    """Create CRDs and wait until the API server serves them."""
    with ThreadPoolExecutor(max_workers=4) as workers:
        list(workers.map(lambda crd: _create(api, crd), crds))
    deadline = time.monotonic() + patience
    while waiting := not_served(api, crds):
        if time.monotonic() > deadline:
            raise ClusterError(f"not served after {patience:.0f} s: {', '.join(waiting)}")
        time.sleep(0.05)


def _create(api: Api, crd: Manifest) -> None:
    try:
        api.request("POST", CRD_PATH, crd)
    except ApiError as error:
        if error.status != 409:
            raise


def not_served(api: Api, crds: Sequence[Manifest]) -> list[str]:
    """Where the objects of CRDs are not served yet: discovery lists those that are Established.

    Reading the CRDs themselves would cost more than their creation: some are as large as a pod's schema.
    """
    resources: dict[str, set[str]] = {}
    for crd in crds:
        for path in _api_paths(crd):
            resources.setdefault(path, set()).add(crd["spec"]["names"]["plural"])
    missing = [f"{path}/{name}" for path, names in resources.items() for name in names - _listed(api, path)]
    present = [f"{path}/{name}" for path, names in resources.items() for name in names]
    return sorted(missing) or _unreadable(api, present)


def _unreadable(api: Api, paths: Sequence[str]) -> list[str]:
    """The paths whose objects cannot be read yet.

    Whoever reads a kind first is told to come again in a second, while the API server fills its cache. Here that is us,
    and not the first acquire.
    """
    with ThreadPoolExecutor(max_workers=4) as workers:
        readable = workers.map(lambda path: _is_readable(api, path), paths)
        return sorted(path for path, there in zip(paths, readable, strict=True) if not there)


def _is_readable(api: Api, path: str) -> bool:
    try:
        api.request("GET", f"{path}?limit=1")
    except ApiError as error:
        if error.status in (404, 429, 503):
            return False
        raise
    return True


def _api_paths(crd: Manifest) -> list[str]:
    spec = crd["spec"]
    return [f"/apis/{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]


def _listed(api: Api, path: str) -> set[str]:
    try:
        return {resource["name"] for resource in api.request("GET", path)["resources"]}
    except ApiError as error:
        if error.status in (404, 503):
            return set()
        raise
