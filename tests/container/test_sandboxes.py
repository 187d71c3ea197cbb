# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole life of a sandbox on real engines."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import Request
from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.errors import (
    ContainerBoundaryError,
    ContainerLeaseError,
    ContainerMismatchError,
    NotReadyError,
    UnsupportedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.container.inventory import list_containers, locate_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.lease import renew_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine import containers
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.images import ImagePullError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent

from .conftest import IMAGE, PATIENCE, ROOT, Way, make_way, run, until


def test_sandbox_from_acquire_to_release(way: Way, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    volumes = way.volumes()
    request = way.request(
        **way.limits(pids=64, memory=256 << 20, cpus=1.0), env={"GREETING": "hello"}, labels={"team": "a"},
        writable_paths=("/data",), network_probe=True,
    )  # fmt: skip
    first = acquire_container(way.client, request)
    try:
        assert first.created
        assert first.verdict.privileges.none
        assert first.verdict.privileges.uid == 1000
        assert first.verdict.privileges.kernel == ("gvisor" if way.runtime == "runsc" else "linux")
        assert first.verdict.egress.networks == ()
        assert first.verdict.network_probe is not None
        assert first.labels["team"] == "a"
        done = run(first, "sh", "-c", 'echo "$GREETING"; id -u; pwd; touch /data/a /tmp/b c && ! touch /d 2>/dev/null')
        assert (done.rc, done.stdout) == (0, b"hello\n1000\n/workspace\n")
        # The same request finds it; another one is refused.
        again = acquire_container(way.client, request)
        assert (again.uid, again.created) == (first.uid, False)
        with pytest.raises(ContainerMismatchError):
            acquire_container(way.client, way.request(name=first.name))
        limits = first.verdict.confinement.limits
        assert limits == (
            {"cpus": None, "memory": None, "pids": None}
            if way.runtime == "runsc"
            else {"cpus": 1.0, "memory": 256 << 20, "pids": 64}
        )
        located = locate_container(way.client, first.name, Deadline(PATIENCE), uid=first.uid)
        data = os.urandom(2 * 1024 * 1024)
        copied = Agent(located.agent).execute(["cat"], stdin=data, max_output=len(data), deadline=Deadline(PATIENCE))
        assert copied.stdout == data
        (listed,) = list_containers(way.client, Deadline(PATIENCE), name=first.name)
        assert (listed.uid, listed.phase, listed.labels["team"]) == (first.uid, "ready", "a")
        assert listed.expires_at is not None
        assert abs((listed.expires_at - first.expires_at).total_seconds()) <= 2
    finally:
        assert release_container(way.client, first.name, Deadline(PATIENCE)).existed
    until(lambda: first.name not in way.names())
    assert not release_container(way.client, first.name, Deadline(PATIENCE)).existed
    until(lambda: way.volumes() == volumes)


@pytest.mark.parametrize("limit", [{"pids": 64}, {"memory": 256 << 20}, {"cpus": 1.0}], ids=str)
def test_limit_that_gvisor_without_cgroups_does_not_enforce_is_refused(
    request: pytest.FixtureRequest, limit: dict[str, t.Any]
) -> None:
    way = make_way(request, "docker-runsc-auto")
    with pytest.raises(UnsupportedError, match="--ignore-cgroups"):
        acquire_container(way.client, way.request(**limit))


def test_lease_ends_the_container_unless_it_is_renewed(engine_way: Way) -> None:
    with engine_way.sandbox(ttl=10.0) as renewed:
        ending = acquire_container(engine_way.client, engine_way.request(ttl=10.0))
        renewal = renew_lease(engine_way.client, renewed.name, 120.0, Deadline(PATIENCE), uid=renewed.uid)
        assert renewal.changed
        assert (renewal.expires_at - renewed.expires_at).total_seconds() > 60
        until(lambda: ending.name not in engine_way.names())
        with pytest.raises(ContainerLeaseError):
            renew_lease(engine_way.client, ending.name, 120.0, Deadline(PATIENCE), uid=ending.uid)
        # Past its first end, with a tick of PID 1's.
        time.sleep(max(0.0, renewed.expires_at.timestamp() + 12.0 - time.time()))
        assert run(renewed, "true").rc == 0


def test_container_ends_with_its_lease_when_its_holder_was_killed(usual: Way) -> None:
    program = (
        "import sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container\n"
        "from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerRequest\n"
        "from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import EngineAccess\n"
        "from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient\n"
        f"client = EngineClient(EngineAccess({usual.client.access.docker_host!r}))\n"
        f"acquired = acquire_container(client, ContainerRequest(image={IMAGE!r}, name='killed', ttl=15))\n"
        "print(acquired.uid, flush=True)\n"
        "time.sleep(600)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline().strip()
    assert "killed" in usual.names()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    until(lambda: "killed" not in usual.names())


def test_lease_is_renewed_while_the_sandbox_has_no_process_left(usual: Way) -> None:
    with usual.sandbox(pids=24, ttl=12.0) as sandbox:
        bomb = "import os, time\nwhile True:\n try:\n  os.fork()\n except OSError:\n  time.sleep(0.05)\n"
        agent = Agent(sandbox.agent)
        with agent.stream(["python3", "-c", bomb], deadline=Deadline(PATIENCE)):
            time.sleep(3)
            assert renew_lease(usual.client, sandbox.name, 120.0, Deadline(PATIENCE)).changed
            time.sleep(max(0.0, sandbox.expires_at.timestamp() + 2.0 - time.time()))
            assert sandbox.name in usual.names()


def test_outputs_are_collected_from_a_folder(usual: Way, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o777)
    with usual.sandbox(outputs=str(tmp_path)) as sandbox:
        assert run(sandbox, "sh", "-c", 'echo done > "$NAMZU_OUTPUTS/result"').rc == 0
    assert (tmp_path / "result").read_text() == "done\n"


def test_root_that_can_be_written_to(usual: Way) -> None:
    with usual.sandbox(read_only_rootfs=False) as sandbox:
        assert run(sandbox, "sh", "-c", "touch /tmp/a /workspace/b").rc == 0
        assert not sandbox.verdict.confinement.read_only_rootfs


def test_network_of_the_engine_is_open_and_reported_so(usual: Way) -> None:
    body = {"Name": "namzu-test", "Driver": "bridge", "Internal": True}
    usual.client.request("POST", "/networks/create", Deadline(PATIENCE), subject="Network", body=body)
    try:
        with pytest.raises(ContainerBoundaryError):
            acquire_container(usual.client, usual.request(network="namzu-test"))
        with usual.sandbox(network="namzu-test", egress=Request.of("allow_all")) as sandbox:
            assert sandbox.verdict.egress.networks == ("namzu-test",)
            assert b"eth0" in run(sandbox, "cat", "/proc/net/dev").stdout
    finally:
        usual.client.request("DELETE", "/networks/namzu-test", Deadline(PATIENCE), subject="Network")


def test_image_without_python_is_named(usual: Way, tmp_path: pathlib.Path) -> None:
    name = "localhost/namzu/empty:1"
    empty = b"\0" * 1024
    query = {"fromSrc": "-", "repo": name.rpartition(":")[0], "tag": "1"}
    usual.client.request("POST", "/images/create", Deadline(PATIENCE), subject=name, query=query, content=empty)
    try:
        with pytest.raises(NotReadyError) as raised:
            acquire_container(usual.client, usual.request(image=name))
        assert not raised.value.retryable
        assert "python3" in raised.value.message
    finally:
        usual.client.request("DELETE", f"/images/{name}", Deadline(PATIENCE), subject=name)


def test_image_that_cannot_be_pulled_is_named(usual: Way) -> None:
    with pytest.raises(ImagePullError) as raised:
        acquire_container(usual.client, usual.request(image="127.0.0.1:1/nowhere:1"))
    assert raised.value.reason == "image-pull"
    assert raised.value.retryable


def test_container_that_is_stopped_by_its_engine_ends_at_once(usual: Way) -> None:
    sandbox = acquire_container(usual.client, usual.request())
    began = time.monotonic()
    containers_path = f"/containers/{sandbox.uid}/stop"
    usual.client.request("POST", containers_path, Deadline(PATIENCE), subject="Container", query={"t": 60})
    until(lambda: sandbox.name not in usual.names())
    # Without a handler of SIGTERM, PID 1 would be killed after the 60 s.
    assert time.monotonic() - began < 50
    with pytest.raises(ContainerLeaseError):
        renew_lease(usual.client, sandbox.name, 60.0, Deadline(PATIENCE), uid=sandbox.uid)


def test_inspect_shows_no_more_than_was_asked_for(engine_way: Way) -> None:
    with engine_way.sandbox() as sandbox:
        host = containers.inspect(engine_way.client, sandbox.uid, Deadline(PATIENCE))["HostConfig"]
        assert not host["Privileged"]
        assert not host["PortBindings"]
