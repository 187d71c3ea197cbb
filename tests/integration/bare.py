# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server with nothing of agent-sandbox, and upstream's release to install on it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t

import pytest
import yaml

from .conftest import Kube, Play

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ROOT / "tools" / "cluster" / "build" / "go"
MODULE = "sigs.k8s.io/agent-sandbox"
IMAGE = re.compile(r"ko://\S+.*")
ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def cluster(instance: str, *words: str) -> str:
    """A command of tools/cluster for an instance of our own."""
    environment = {**os.environ, "NAMZU_CLUSTER": "local", "NAMZU_CLUSTER_INSTANCE": instance}
    done = subprocess.run(
        [sys.executable, "-m", "tools.cluster", *words],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"tools.cluster {words} says:\n{done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def bare_cluster(instance: str, folder: pathlib.Path) -> t.Iterator[tuple[Kube, Play]]:
    """etcd and an API server alone: no CRD, and nothing that runs pods or takes namespaces away."""
    if os.environ.get("NAMZU_CLUSTER") == "existing":
        pytest.skip("a cluster of one's own is needed, and this machine's is not to be started")
    cluster(instance, "up", "--bare")
    try:
        exports = dict(word.split("=", 1) for word in shlex.split(cluster(instance, "env")) if "=" in word)
        kubeconfig = exports["KUBECONFIG"].rstrip(";")
        kube = Kube(kubeconfig)
        yield kube, Play(kubeconfig, folder)
        kube.close()
    finally:
        cluster(instance, "down")


def write_release(folder: pathlib.Path, *, whole: bool) -> tuple[pathlib.Path, pathlib.Path]:
    """sandbox.yaml and extensions.yaml of the pinned release, put together as upstream's release tool does.

    Both have the Deployment, and the second one counts. Unless they are to be whole, the kinds take any field, since
    upstream's own schemas cost seconds with every request.
    """
    listed = subprocess.run(
        ["go", "list", "-m", "-json", MODULE], cwd=MODULES, capture_output=True, text=True, check=True
    )
    module = json.loads(listed.stdout)
    sources = [path for path in pathlib.Path(module["Dir"], "k8s").rglob("*.yaml") if path.name != "kustomization.yaml"]
    image = f"registry.k8s.io/agent-sandbox/agent-sandbox-controller:{module['Version']}"
    files = folder / "sandbox.yaml", folder / "extensions.yaml"
    for file, extension in zip(files, (False, True), strict=True):
        texts = [path.read_text() for path in sorted(sources) if ("extensions" in path.name) is extension]
        if not whole:
            texts = [text if "\nkind: CustomResourceDefinition" not in text else with_any_field(text) for text in texts]
        file.write_text("---\n".join(IMAGE.sub(image, text) for text in texts))
    return files


def with_any_field(text: str) -> str:
    """The CRD with a schema that takes anything."""
    crd = yaml.load(text, Loader=yaml.CSafeLoader)
    for version in crd["spec"]["versions"]:
        version["schema"] = ANYTHING
    return yaml.safe_dump(crd)
