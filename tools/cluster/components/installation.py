# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance installs through its API server: CRDs, permissions of components, and the storage class."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..api import Api, ApiError
from ..build.objects import PATHS, Manifest, Objects
from ..failures import ClusterError
from ..layout import RUNTIME_HANDLER
from .credentials import DNS_USER, FIREWALL_USER, VOLUMES_USER
from .volumes import STORAGE_CLASS, storage_class

DNS_ROLE = "namzu-coredns"
DNS_RULES = (
    {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
)
FIREWALL_ROLE = "namzu-kube-router"
FIREWALL_RULES = (
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list", "watch"]},
)
VOLUMES_ROLE = "namzu-volumes"
VOLUMES_RULES = (
    {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["list", "watch", "create", "delete"]},
)
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_controller_objects(api: Api, objects: Objects) -> None:
    """The controller's namespace, service account and permissions."""
    for manifest in objects.controller:
        api.apply(f"{PATHS[manifest['kind']]}/{manifest['metadata']['name']}", manifest)


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


def install_runtime_class(api: Api) -> None:
    """The RuntimeClass of gVisor; the overhead is that of an idle sandbox."""
    manifest = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME_HANDLER},
        "handler": RUNTIME_HANDLER,
        "overhead": {"podFixed": {"memory": "64Mi"}},
    }
    api.apply(f"/apis/node.k8s.io/v1/runtimeclasses/{RUNTIME_HANDLER}", manifest)


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
        api.apply(f"{PATHS[str(manifest['kind'])]}/{role}", manifest)


def install_crds(api: Api, crds: Sequence[Manifest], timeout: float = 60.0) -> None:
    """Create CRDs and wait until the API server serves them."""
    with ThreadPoolExecutor(max_workers=4) as workers:
        list(workers.map(lambda crd: _create(api, crd), crds))
    deadline = time.monotonic() + timeout
    while waiting := not_served(api, crds):
        if time.monotonic() > deadline:
            raise ClusterError(f"not served after {timeout:.0f} s: {', '.join(waiting)}")
        time.sleep(0.05)


def _create(api: Api, crd: Manifest) -> None:
    try:
        api.request("POST", CRD_PATH, crd)
    except ApiError as error:
        if error.status != 409:
            raise


def not_served(api: Api, crds: Sequence[Manifest]) -> list[str]:
    """The API paths of CRDs that are not served yet: discovery lists CRDs that are Established.

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

    The API server answers the first read of a kind with 429 while it fills its cache. This read gets that answer, and
    the first acquire does not.
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
