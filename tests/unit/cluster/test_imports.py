# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an import of the core costs: neither the official client nor Ansible, nor what is not needed."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

CORE = "ansible_collections.namzu.sandbox.plugins.module_utils"
ROOT = pathlib.Path(__file__).parents[3]
MODULES = [
    f"{CORE}.cluster.client",
    f"{CORE}.cluster.watch",
    f"{CORE}.lifecycle.acquire.acquire",
    f"{CORE}.lifecycle.release.release",
    f"{CORE}.front.verbs.sandbox",
    f"{CORE}.front.verbs.sandbox_exec",
]


def imported_by(program: str, tmp_path: pathlib.Path) -> set[str]:
    """The names of the modules that a fresh Python has after a program."""
    whole = f"import json, sys\n{program}\nprint(json.dumps(sorted(sys.modules)))"
    environ = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True, env=environ)
    return set(json.loads(done.stdout.splitlines()[-1]))


def boundary_in(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.startswith(f"{CORE}.boundary"))


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
        f"from {CORE}.cluster.auth.access import resolve_access\n"
        f"from {CORE}.cluster.client import Client\n"
        f"Client(resolve_access({{'kubeconfig': {str(path)!r}}}, {{}})).close()"
    )
    modules = imported_by(program, tmp_path)
    assert "yaml" in modules
    assert "kubernetes" not in modules


@pytest.mark.parametrize("module", [f"{CORE}.front.guests", f"{CORE}.front.verbs.sandbox_exec"])
def test_finding_a_sandbox_does_not_bring_what_proves_its_boundary(module: str, tmp_path: pathlib.Path) -> None:
    assert boundary_in(imported_by(f"import {module}", tmp_path)) == []


def test_connection_never_brings_what_proves_a_boundary(tmp_path: pathlib.Path) -> None:
    """Neither when it is loaded, nor when it looks for a sandbox: every task has a process that would do it anew."""
    tree = ast.parse((ROOT / "plugins/plugin_utils/connection/link.py").read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 3]
    loaded = [f"import {CORE.removesuffix('module_utils')}{node.module}" for node in found]
    assert f"import {CORE}.lifecycle.observed.agent_address" in loaded
    assert boundary_in(imported_by("\n".join(loaded), tmp_path)) == []
