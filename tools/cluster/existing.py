# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that the user provides: it is checked and used, never started or stopped."""

from __future__ import annotations

import base64
import json
import os
import shlex
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .api import Api, ApiError
from .failures import CannotRun, ClusterError

REQUIRED: Mapping[str, tuple[str, ...]] = {  # API group -> resources that must be served as v1beta1
    "agents.x-k8s.io": ("sandboxes",),
    "extensions.agents.x-k8s.io": ("sandboxclaims", "sandboxtemplates", "sandboxwarmpools"),
}
VERSION = "v1beta1"
INSTALL = "Install agent-sandbox with its extensions: https://agent-sandbox.sigs.k8s.io/"


@dataclass(frozen=True)
class ExistingCluster:
    """The cluster of a kubeconfig's current context."""

    kubeconfig: Path

    @classmethod
    def named_by(cls, environment: Mapping[str, str]) -> ExistingCluster:
        """The kubeconfig that KUBECONFIG names, else kubectl's default."""
        named = environment.get("KUBECONFIG") or str(Path(environment.get("HOME", "~")).expanduser() / ".kube/config")
        if os.pathsep in named:
            raise CannotRun(
                "KUBECONFIG lists several files; name one, for example from: kubectl config view --flatten."
            )
        return cls(Path(named))

    def up(self, *, bare: bool = False, enforce: bool = True) -> None:
        """Check that the API server answers and serves the kinds that the collection needs."""
        if bare:
            raise CannotRun("--bare starts a local cluster, and this one runs already. Set NAMZU_CLUSTER=local.")
        if not enforce:
            raise CannotRun(
                "--no-enforcement is for a local cluster, and this one runs already. Set NAMZU_CLUSTER=local."
            )
        api, context, server = connect(self.kubeconfig)
        try:
            version = api.request("GET", "/version")["gitVersion"]
            missing = missing_resources(api)
        except OSError as error:
            raise ClusterError(
                f"{server} (context {context} of {self.kubeconfig}) does not answer: {error}. Check that the cluster "
                "runs, or use the local one: NAMZU_CLUSTER=local."
            ) from error
        if missing:
            raise ClusterError(f"{server} does not serve {', '.join(missing)}. {INSTALL}")
        print(f"using the existing cluster {server}, Kubernetes {version}, context {context} of {self.kubeconfig}")

    def down(self) -> None:
        """Leave the cluster alone."""
        print(f"the cluster of {self.kubeconfig} was not started here: left as it is")

    def status(self) -> None:
        """The same checks as `up`."""
        self.up()

    def runner_image(self) -> None:
        """Refuse: a cluster of the user pulls its images from a registry."""
        raise CannotRun(
            "a cluster of your own pulls its images from a registry. Build one with ansible-core and this collection, "
            "push it, and name it in NAMZU_TEST_RUNNER_IMAGE."
        )

    def env(self) -> None:
        """Print the KUBECONFIG in use."""
        if not self.kubeconfig.is_file():
            raise ClusterError(f"{self.kubeconfig} does not exist. Set KUBECONFIG, or NAMZU_CLUSTER=local.")
        print(f"export KUBECONFIG={shlex.quote(str(self.kubeconfig))}")


def missing_resources(api: Api) -> list[str]:
    """The resources of agent-sandbox that the API server does not serve."""
    missing: list[str] = []
    for group, resources in REQUIRED.items():
        try:
            served = {item["name"] for item in api.request("GET", f"/apis/{group}/{VERSION}")["resources"]}
        except ApiError as error:
            if error.status != 404:
                raise
            served = set()
        missing.extend(f"{resource}.{group}/{VERSION}" for resource in resources if resource not in served)
    return missing


def connect(path: Path) -> tuple[Api, str, str]:
    """The API of a kubeconfig's current context, with the names of context and server."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}. Set KUBECONFIG, or NAMZU_CLUSTER=local.") from error
    except yaml.YAMLError as error:
        raise ClusterError(f"kubeconfig {path}: not YAML: {error}") from error
    name = document.get("current-context", "")
    context = _named(document, "contexts", name).get("context", {})
    cluster = _named(document, "clusters", context.get("cluster", "")).get("cluster", {})
    user = _named(document, "users", context.get("user", "")).get("user", {})
    if not cluster.get("server"):
        raise ClusterError(f"{path} has no current context with a server. Set it: kubectl config use-context NAME.")
    credential = _credential(user)
    tls = _tls(cluster, credential) if cluster["server"].startswith("https:") else None
    return Api(cluster["server"], tls, _headers(credential)), name, cluster["server"]


def _named(document: Mapping[str, Any], section: str, name: str) -> dict[str, Any]:
    for entry in document.get(section) or []:
        if entry.get("name") == name:
            return dict(entry)
    return {}


def _credential(user: Mapping[str, Any]) -> dict[str, Any]:
    plugin = user.get("exec")
    if not plugin:
        return dict(user)
    environment = {**os.environ, **{entry["name"]: entry["value"] for entry in plugin.get("env") or []}}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(
        {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
    )
    argv = [plugin["command"], *(plugin.get("args") or [])]
    try:
        output = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
        given = json.loads(output)["status"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise ClusterError(
            f"the credential plugin {argv[0]} returned no credential ({type(error).__name__})"
        ) from error
    return {
        "token": given.get("token"),
        "client-certificate-text": given.get("clientCertificateData"),
        "client-key-text": given.get("clientKeyData"),
    }


def _headers(credential: Mapping[str, Any]) -> dict[str, str]:
    token = credential.get("token")
    if not token and credential.get("tokenFile"):
        token = Path(credential["tokenFile"]).read_text(encoding="utf-8").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _tls(cluster: Mapping[str, Any], credential: Mapping[str, Any]) -> ssl.SSLContext:
    authority = _data(cluster, "certificate-authority")
    tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    certificate, key = _data(credential, "client-certificate"), _data(credential, "client-key")
    if certificate and key:
        # The ssl module reads a key from files only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            tls.load_cert_chain(file.name)
    return tls


def _data(section: Mapping[str, Any], name: str) -> bytes | None:
    if section.get(f"{name}-text"):
        return str(section[f"{name}-text"]).encode()
    if section.get(f"{name}-data"):
        return base64.b64decode(section[f"{name}-data"])
    return Path(section[name]).read_bytes() if section.get(name) else None
