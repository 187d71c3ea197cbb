# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox for the time of a block, and the programs of docs/reference/python.md as they stand there."""

from __future__ import annotations

import math
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.context import held
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from ...unit.guest.running_agent import running_agent
from ..egress import ground as egress_ground
from ..fake.agent import POD_UID
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE, POOL
from ..fake.plan import Fault, How, status
from ..fake.server import TOKEN
from ..traffic import CREATE, DELETE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
_FIRST, _ASYNC, EXAMPLE, BLOCK, MANY, OWN_POLICY, SERVED = EXAMPLES


class Broken(Exception):
    """What goes wrong in a block."""


def test_sandbox_is_there_in_the_block_and_gone_after_it(cluster: FakeCluster, client: Client) -> None:
    with held(client, cluster.request()) as sandbox:
        assert cluster.claims() == [sandbox.acquired.name]
        assert sandbox.agent.execute(["echo", "hi"], deadline=Deadline(5.0)).stdout == b"echo hi\n"
    assert cluster.claims() == []


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_sandbox_is_gone_after_a_block_that_raised(
    cluster: FakeCluster, client: Client, error: type[BaseException]
) -> None:
    with pytest.raises(error), held(client, cluster.request()):
        raise error
    assert cluster.claims() == []


def test_direct_sandbox_is_gone_after_the_block(cluster: FakeCluster, client: Client) -> None:
    template = {"metadata": {"name": "python"}, "spec": {"podTemplate": {"spec": {}}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, template)
    with held(client, cluster.request(warm_pool=None, template="python")) as sandbox:
        assert cluster.store.names("sandboxes") == [sandbox.acquired.name]
    assert cluster.store.names("sandboxes") == []


def test_block_does_not_begin_without_a_sandbox(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(403), CREATE)
    with pytest.raises(AcquireError), held(client, cluster.request()):
        pytest.fail("the block began")
    assert cluster.claims() == []


def test_sandbox_that_stood_there_stays(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    with held(client, cluster.request(name="build-1")) as sandbox:
        assert not sandbox.acquired.created
    assert cluster.claims() == ["build-1"]


def test_another_one_that_took_the_name_is_left_alone(cluster: FakeCluster, client: Client) -> None:
    with held(client, cluster.request(name="build-1")):
        cluster.controller.ready = None
        cluster.store.replace(cluster.key("sandboxclaims", "build-1"), {"spec": {}})
    assert cluster.claims() == ["build-1"]


def test_sandbox_that_has_expired_meanwhile_is_no_error(cluster: FakeCluster, client: Client) -> None:
    with held(client, cluster.request(name="build-1")):
        cluster.store.delete(cluster.key("sandboxclaims", "build-1"))


@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_BEFORE), Fault(How.CUT_AFTER), Fault(How.HANG)], ids=str)
def test_fault_that_passes_does_not_keep_it_from_being_released(
    cluster: FakeCluster, client: Client, fault: Fault
) -> None:
    cluster.plan.add(fault, DELETE)
    with held(client, cluster.request()):
        pass
    assert cluster.claims() == []


def test_release_that_fails_names_the_leftover(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(403), DELETE, times=math.inf)
    with pytest.raises(CredentialError) as caught, held(client, cluster.request(name="build-1")):
        pass
    assert caught.value.fields()["leftover"] == "SandboxClaim team-a/build-1"


def test_error_of_the_block_is_not_hidden_by_one_of_the_release(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(403), DELETE, times=math.inf)
    with pytest.raises(Broken) as caught, held(client, cluster.request(name="build-1")):
        raise Broken
    (note,) = caught.value.__notes__
    assert note.startswith("SandboxClaim team-a/build-1 could not be released")


def run(cluster: FakeCluster, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the page against the fake cluster."""
    where = {"K8S_AUTH_HOST": cluster.server.url, "K8S_AUTH_API_KEY": TOKEN, "SANDBOX_NAMESPACE": NAMESPACE}
    sandbox = {"SANDBOX_POOL": POOL, "SANDBOX_PORT": str(cluster.agent.port)}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("K8S_", "KUBE"))}
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(
        command, env={**clean, **where, **sandbox, **environ}, capture_output=True, text=True, timeout=60, check=False
    )


def test_example_runs_and_leaves_nothing(cluster: FakeCluster) -> None:
    done = run(cluster, EXAMPLE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "echo hello\n", "")
    assert cluster.claims() == []


def test_example_of_what_runs_in_a_sandbox(cluster: FakeCluster, client: Client, tmp_path: pathlib.Path) -> None:
    acquire(client, cluster.request(name="build-1"))
    with running_agent(workspace=tmp_path, token=POD_UID) as agent:
        done = run(cluster, SERVED, SANDBOX_NAME="build-1", SANDBOX_PORT=str(agent.port))
        assert agent.children() == {}
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("served 200\n")
    assert "40 120" in done.stdout
    assert done.stdout.endswith("ended with 3\n")


def test_example_of_a_policy_of_its_own_sets_it_and_takes_it_away(bounded: FakeCluster, client: Client) -> None:
    egress_ground.fence(bounded)
    egress_ground.hold(bounded, client)
    done = run(bounded, OWN_POLICY, SANDBOX_NAME=egress_ground.HELD)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(rf"NetworkPolicy {NAMESPACE}/namzu-egress-\S+ True \S", done.stdout), done.stdout
    assert egress_ground.own_policies(bounded) == {}


def test_example_says_what_went_wrong_in_words_and_fields(cluster: FakeCluster) -> None:
    cluster.plan.add(status(403), CREATE)
    done = run(cluster, EXAMPLE)
    assert (done.returncode, done.stdout) == (1, "")
    assert "'reason': 'forbidden', 'retryable': False" in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stderr


def test_example_of_a_block_runs_and_leaves_nothing(cluster: FakeCluster) -> None:
    done = run(cluster, BLOCK)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"namzu-task-\S+ 0 echo hello\n", done.stdout)
    assert cluster.claims() == []


def test_example_of_many_keeps_what_could_be_had_and_releases_it(cluster: FakeCluster) -> None:
    cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": "build-2"}, "spec": {}})
    done = run(cluster, MANY)
    assert (done.returncode, done.stderr) == (0, "")
    refused, holding, released = done.stdout.splitlines()
    assert refused.startswith("build-2 conflict ")
    assert (holding, released) == ("holding build-0 build-1 build-3", "released 3 failed 0")
    assert cluster.claims() == ["build-2"]
