# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an import of the core costs: neither the official client nor Ansible, nor what is not needed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

CORE = "ansible_collections.namzu.sandbox.plugins.module_utils"
MODULES = [
    f"{CORE}.cluster.client",
    f"{CORE}.cluster.watch",
    f"{CORE}.lifecycle.acquire",
    f"{CORE}.lifecycle.release",
    f"{CORE}.front.verbs.sandbox",
    f"{CORE}.front.verbs.sandbox_exec",
]


def imported_by(program: str, tmp_path: pathlib.Path) -> set[str]:
    """The names of the modules that a fresh Python has after a program."""
    whole = f"import json, sys\n{program}\nprint(json.dumps(sorted(sys.modules)))"
    environ = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True, env=environ)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", MODULES)
def test_import_brings_neither_the_official_client_nor_ansible(module: str, tmp_path: pathlib.Path) -> None:
    modules = imported_by(f"import {module}", tmp_path)
    assert module in modules
    assert modules.isdisjoint({"kubernetes", "ansible", "requests"})


def test_reading_a_static_kubeconfig_does_not_bring_the_official_client(tmp_path: pathlib.Path) -> None:
    config = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
        "users": [{"name": "u", "user": {"token": "tok"}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    program = (
        f"from {CORE}.cluster.access import resolve_access\n"
        f"from {CORE}.cluster.client import Client\n"
        f"Client(resolve_access({{'kubeconfig': {str(path)!r}}}, {{}})).close()"
    )
    modules = imported_by(program, tmp_path)
    assert "yaml" in modules
    assert "kubernetes" not in modules


def test_finding_a_sandbox_for_a_connection_does_not_bring_what_proves_its_boundary(tmp_path: pathlib.Path) -> None:
    modules = imported_by(f"import {CORE}.lifecycle.address", tmp_path)
    assert not [name for name in modules if name.startswith(f"{CORE}.boundary")]
