# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play with the lease keeper, under way."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import typing as t
import uuid

import yaml

Body = dict[str, t.Any]

ENABLED = {"ANSIBLE_CALLBACKS_ENABLED": "namzu.sandbox.lease_keeper"}


@contextlib.contextmanager
def started(kubeconfig: str, folder: pathlib.Path, tasks: list[Body]) -> t.Iterator[subprocess.Popen[str]]:
    """A play under way."""
    file = folder / f"{uuid.uuid4().hex}.yml"
    file.write_text(
        yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}])
    )
    config = folder / "ansible.cfg"
    config.touch()
    program = pathlib.Path(sys.executable).parent / "ansible-playbook"
    # No home and no terminal, as in an execution environment.
    environ = {**os.environ, **ENABLED, "KUBECONFIG": kubeconfig, "ANSIBLE_HOME": str(folder / "home")}
    environ.update({"ANSIBLE_CONFIG": str(config), "HOME": "/nonexistent"})
    process = subprocess.Popen(
        [str(program), str(file)], cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
