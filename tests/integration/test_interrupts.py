# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play that is interrupted in the middle of an acquire leaves no claim."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import pytest
import yaml

pytestmark = pytest.mark.each_ansible

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"
TEMPLATES = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxtemplates"
POOLS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxwarmpools"

#: Seconds for a claim to appear after the play was started, and to be gone after it was interrupted.
APPEAR, GONE = 60.0, 60.0

AS_MODULE = {"become": True, "become_method": "ansible.builtin.su"}


@pytest.fixture
def endless_pool(kube, namespace, image):
    """A pool that can give nothing: its pods ask for more than any node has, so that an acquire waits."""
    container = {
        "name": "agent",
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"requests": {"memory": "100Ti"}},
    }
    bodies: list[tuple[str, str, dict[str, t.Any]]] = [
        (TEMPLATES, "SandboxTemplate", {"podTemplate": {"spec": {"containers": [container]}}}),
        (POOLS, "SandboxWarmPool", {"replicas": 0, "sandboxTemplateRef": {"name": "endless"}}),
    ]
    for path, kind, spec in bodies:
        metadata = {"name": "endless", "namespace": namespace}
        body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
        kube.request("POST", path.format(namespace), body)
    return "endless"


@pytest.mark.parametrize("front", [{}, AS_MODULE], ids=["action", "module"])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_play_interrupted_in_the_middle_of_an_acquire_leaves_no_claim(
    kube, kubeconfig, namespace, endless_pool, tmp_path, signum, front
):
    task = {
        "namzu.sandbox.sandbox": {"warm_pool": endless_pool, "namespace": namespace, "ready_timeout": "5m"},
        **front,
    }
    file = tmp_path / "play.yml"
    file.write_text(
        yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}])
    )
    with started(kubeconfig, file, tmp_path) as ansible:
        path = CLAIMS.format(namespace)
        kube.until(path, lambda body: (body or {}).get("items"), APPEAR)
        ansible.send_signal(signum)
        assert ansible.wait(GONE) != 0
        kube.until(path, lambda body: not (body or {}).get("items"), GONE)


def started(kubeconfig: str, file: pathlib.Path, folder: pathlib.Path) -> subprocess.Popen[bytes]:
    program = pathlib.Path(sys.executable).parent / "ansible-playbook"
    environment = {
        **os.environ,
        "KUBECONFIG": kubeconfig,
        "ANSIBLE_HOME": str(folder / "home"),
    }
    return subprocess.Popen(
        [str(program), str(file)], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
