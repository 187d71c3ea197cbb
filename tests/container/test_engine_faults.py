# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real dockerd is killed at every step: errors have a reason and a bound, and the next use is not held up."""

from __future__ import annotations

import os
import tempfile
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.errors import ContainerLeaseError
from ansible_collections.namzu.sandbox.plugins.module_utils.container.inventory import list_containers, locate_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.lease import renew_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine import containers
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, SandboxError
from tools.engine.private import PrivateEngine

from .conftest import PATIENCE, Way, run, until
from .dockerd import OF_A_MODULE, own_engine

REASONS = {"api-unreachable", "api-timeout"}
#: Requests of an acquire, by the function that sends them.
STEPS = (
    "list_labelled",
    "create",
    "put_archive",
    "start",
    "create_exec",
    "start_exec",
    "inspect",
)

Killed = tuple[PrivateEngine, Way]


@pytest.fixture(scope="module")
def own() -> t.Iterator[Killed]:
    with own_engine(OF_A_MODULE) as (engine, docker_host):
        # Each request is bounded, so that one to an engine that was killed ends soon.
        access = engine_access({"docker_host": docker_host, "timeout": 20.0}, {})
        yield engine, Way(EngineClient(access), "runc", "auto")


@pytest.fixture
def killed(own: Killed) -> Killed:
    """The engine, which runs, with no sandbox in it."""
    engine, way = own
    if not engine.is_running():
        engine.start_again()
    for name in way.names():
        release_container(way.client, name, Deadline(PATIENCE))
    return own


@pytest.fixture(autouse=True)
def short_cleanup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquire_module, "CLEANUP_SECONDS", 2.0)


def error_of(work: t.Callable[[], object]) -> SandboxError | None:
    try:
        work()
    except SandboxError as error:
        return error
    return None


def kill_at(monkeypatch: pytest.MonkeyPatch, engine: PrivateEngine, step: str, *, after: bool) -> None:
    """Kill dockerd once, before or after a request of an acquire."""
    send, left = getattr(containers, step), [1]

    def killing(*arguments: t.Any, **options: t.Any) -> t.Any:
        if after:
            answer = send(*arguments, **options)
        if left and left.pop():
            engine.kill_daemon()
        return answer if after else send(*arguments, **options)

    monkeypatch.setattr(containers, step, killing)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_acquire(killed: Killed, monkeypatch: pytest.MonkeyPatch, step: str, after: bool) -> None:
    engine, way = killed
    asked = way.request(name="one", ready_timeout=30.0)
    with monkeypatch.context() as patched:
        kill_at(patched, engine, step, after=after)
        limit = Deadline(PATIENCE)
        error = error_of(lambda: acquire_container(way.client, asked))
        assert not limit.expired
    if (step, after) == ("inspect", True):
        # Over its socket the agent is reached without the engine.
        assert error is None
    else:
        assert error is not None
        assert (error.reason in REASONS, error.retryable) == (True, True), error
        assert error.leftover in (None, "Container namzu-one")
        assert STEPS.index(step) < 2 or error.leftover is not None
    engine.start_again()
    again = acquire_container(way.client, asked)
    assert run(again, "true").rc == 0
    assert way.names() == {"one"}


def test_acquire_whose_request_is_carried_out_by_an_engine_that_dies(killed: Killed) -> None:
    engine, way = killed
    errors: list[SandboxError | None] = []
    asked = way.request(name="one", ready_timeout=30.0)
    thread = threading.Thread(target=lambda: errors.append(error_of(lambda: acquire_container(way.client, asked))))
    thread.start()
    until(lambda: way.names() == {"one"})
    engine.kill_daemon()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert [error is None or error.reason in REASONS for error in errors] == [True], errors
    engine.start_again()
    assert run(acquire_container(way.client, way.request(name="one")), "true").rc == 0
    assert way.names() == {"one"}


def test_exec_over_the_socket_needs_no_engine_and_over_the_relay_it_is_named(killed: Killed) -> None:
    engine, way = killed
    sandbox = acquire_container(way.client, way.request(name="one"))
    relayed = acquire_container(way.client, way.request(name="two", channel="relay"))
    cut: list[SandboxError | None] = []
    sleeping = threading.Thread(target=lambda: cut.append(error_of(lambda: run(relayed, "sleep", "321"))))
    sleeping.start()
    until(lambda: run(relayed, "grep", "-l", "32[1]", *(f"/proc/{n}/cmdline" for n in range(1, 60))).stdout)
    engine.kill_daemon()
    sleeping.join(PATIENCE)
    assert [error and error.reason for error in cut] == ["agent-unreachable"]
    assert run(sandbox, "echo", "here").stdout == b"here\n"
    with pytest.raises(SandboxError) as raised:
        run(relayed, "true")
    assert raised.value.reason in ("api-unreachable", "agent-unreachable"), raised.value
    engine.start_again()
    # Without live-restore a new dockerd ends the containers of the one before.
    for name in ("one", "two"):
        with pytest.raises(GoneError):
            locate_container(way.client, name, Deadline(PATIENCE))


def test_renewal_is_tried_again_until_the_lease_is_lost(killed: Killed) -> None:
    engine, way = killed
    sandbox = acquire_container(way.client, way.request(name="one"))
    engine.kill_daemon()
    with pytest.raises(SandboxError) as raised:
        renew_lease(way.client, "one", 3600.0, Deadline(5.0), uid=sandbox.uid)
    assert (raised.value.reason, raised.value.retryable) == ("api-unreachable", True)
    engine.start_again()
    with pytest.raises(ContainerLeaseError) as lost:
        renew_lease(way.client, "one", 3600.0, Deadline(PATIENCE), uid=sandbox.uid)
    assert lost.value.reason in ("gone", "expired")


def test_release_is_repeated_until_the_engine_is_there_again(killed: Killed) -> None:
    engine, way = killed
    acquire_container(way.client, way.request(name="one"))
    engine.kill_daemon()
    with pytest.raises(SandboxError) as raised:
        release_container(way.client, "one", Deadline(1.0))
    assert raised.value.reason == "api-unreachable"
    again = threading.Thread(target=engine.start_again)
    again.start()
    release_container(way.client, "one", Deadline(PATIENCE))
    again.join()
    assert way.names() == set()


def test_lease_ends_while_the_engine_is_dead(killed: Killed) -> None:
    engine, way = killed
    sandbox = acquire_container(way.client, way.request(name="one", ttl=10.0))
    pid = containers.inspect(way.client, sandbox.uid, Deadline(PATIENCE))["State"]["Pid"]
    engine.kill_daemon()
    os.kill(pid, 0)
    until(lambda: not is_alive(pid))
    engine.start_again()
    until(lambda: way.names() == set())


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_reboot_ends_every_sandbox_and_the_next_use_finds_their_names_free(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, way = killed
    with tempfile.TemporaryDirectory(prefix="nz-") as folder:
        # Where is remembered when volumes were looked at.
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        assert_reboot_leaves_nothing(engine, way)


def assert_reboot_leaves_nothing(engine: PrivateEngine, way: Way) -> None:
    for name, ttl in (("short", 10.0), ("long", 3600.0)):
        acquire_container(way.client, way.request(name=name, ttl=ttl))
    engine.crash()
    engine.start_again()
    assert [one for one in list_containers(way.client, Deadline(PATIENCE)) if one.phase == "ready"] == []
    again = acquire_container(way.client, way.request(name="long"))
    assert again.created
    assert run(again, "true").rc == 0
    until(lambda: way.names() == {"long"})
    release_container(way.client, "long", Deadline(PATIENCE))
    until(lambda: way.volumes() == 0)
