# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent on gVisor's kernel, in a sandbox of ``runsc do`` on this machine. No cluster is needed."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNSC = shutil.which("runsc")
SECONDS = 120.0

pytestmark = pytest.mark.skipif(RUNSC is None, reason="runsc is not installed (Debian package runsc)")

#: Runs inside gVisor: an agent without privileges, and its client.
PROBE = """
import dataclasses, json, sys
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestError, PrivilegeError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.privileges import probe_privileges
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import running_agent, within, without_privileges

drop, patch = json.loads(sys.argv[1]), sys.argv[2] or None
with running_agent(prefix=without_privileges() if drop else [], patch=patch) as agent:
    try:
        found = probe_privileges(agent.client, within(), "sandbox test/one")
        print(json.dumps({**dataclasses.asdict(found), "user_namespace": found.user_namespace}))
    except (PrivilegeError, GuestError) as error:
        print(json.dumps(error.fields()))
"""

#: An agent from before it asked prctl(2).
STATUS_ALONE = """
import operations, privileges, wire
def status_alone(context, peer, body):
    peer.send(wire.encode_json({"status": {"text": privileges.read_text(privileges.STATUS)}}))
operations.LOADED["privileges"] = status_alone
"""


def in_gvisor(state: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    # The platform ptrace needs neither a device nor a privilege of the machine.
    flags = ["--platform=ptrace", "--network=none", "--ignore-cgroups", f"--root={state}"]
    run = [str(RUNSC), *flags, "do", "--cwd", str(ROOT), *command]
    return subprocess.run(run, capture_output=True, check=True, text=True, timeout=SECONDS)


def probe(state: pathlib.Path, *, drop: bool = True, patch: str = "") -> dict[str, t.Any]:
    done = in_gvisor(state, sys.executable, "-c", PROBE, json.dumps(drop), patch)
    return t.cast("dict[str, t.Any]", json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def state(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "runsc"


def test_sandbox_without_privileges_passes_and_names_the_kernel(state: pathlib.Path) -> None:
    found = probe(state)
    masks = [found[mask] for mask in ("inheritable", "permitted", "effective", "bounding", "ambient")]
    assert (masks, found["no_new_privs"]) == ([0] * 5, True)
    assert (found["kernel"], found["user_namespace"]) == ("gvisor", False)


def test_sandbox_with_privileges_is_refused(state: pathlib.Path) -> None:
    found = probe(state, drop=False)
    assert found["reason"] == "privileged"
    # gVisor answers PR_GET_NO_NEW_PRIVS with 1 in every process.
    assert set(found["excess"]) == {"CapInh", "CapPrm", "CapEff", "CapBnd"}


@pytest.mark.parametrize("patch", [STATUS_ALONE, "import sys; sys.modules['ctypes'] = None"])
def test_agent_that_cannot_ask_the_kernel_is_refused(state: pathlib.Path, patch: str) -> None:
    found = probe(state, patch=patch)
    assert (found["reason"], found["excess"]) == ("privileged", {})
