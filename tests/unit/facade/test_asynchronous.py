# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The asynchronous API on a real agent: many calls in one thread, and cancelled tasks."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import socket
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import AsyncSandbox, Sandbox, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Cancellation
from ansible_collections.namzu.sandbox.plugins.module_utils.facade import holding, loop
from ansible_collections.namzu.sandbox.plugins.module_utils.facade.holding import Holding
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.protocol import Acquisition
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    runs,
)

#: Programs at the same time: far more than there are threads, and below the agent's limits.
MANY = 200


class Backend:
    """Acquires an agent that runs already, and records what is released."""

    def __init__(self, address: AgentAddress) -> None:
        self.address = address
        self.released: list[str] = []
        self.acquiring = threading.Event()
        self.proceed = threading.Event()
        self.cancelled = False
        self.waiting: list[object] = []

    def request(self, params: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
        return params

    def acquire(self, request: t.Any, cancellation: Cancellation) -> Acquisition:
        self.acquiring.set()
        self.waiting.append(request)
        with cancellation.cutting(self._cut):
            assert self.proceed.wait(60)
        return Acquisition("one", None, "uid-one", self.address, None, True, None, {})

    def _cut(self) -> None:
        self.cancelled = True
        self.proceed.set()

    def release(
        self, names: t.Mapping[str, str | None], *_arguments: t.Any, **_options: t.Any
    ) -> tuple[list[str], dict[str, SandboxError]]:
        self.released += names
        return [*names], {}


@pytest.fixture
def backend(agent: RunningAgent, monkeypatch: pytest.MonkeyPatch) -> Backend:
    found = Backend(agent.client.address)
    monkeypatch.setattr(holding, "opened", lambda _params: contextlib.nullcontext(found))
    return found


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace")) as started:
        yield started


@pytest.fixture
def sandbox(agent: RunningAgent, backend: Backend) -> AsyncSandbox:
    return AsyncSandbox(Sandbox(Holding({}), agent.client, "one", "uid-one", {}))


async def until(condition: t.Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process or thread makes it true
            await asyncio.sleep(0.01)


def test_programs_in_one_loop_run_at_the_same_time_in_one_thread(sandbox: AsyncSandbox, tmp_path: pathlib.Path) -> None:
    """None ends before all of them have started."""
    gate = tmp_path / "gate"
    before = threading.active_count()
    started: list[bytes] = []

    async def all_of_them() -> list[int]:
        command = f"echo; until [ -e {gate} ]; do sleep 0.2; done; exit 7"
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(sandbox.run(command, on_stdout=started.append)) for _unused in range(MANY)]
            await until(lambda: len(started) == MANY)
            # Beside the pools there are the thread of the heartbeats and asyncio's own.
            assert threading.active_count() - before <= loop.THREADS + loop.SHORT_THREADS + 2
            gate.touch()
        return [task.result().rc for task in tasks]

    assert asyncio.run(all_of_them()) == [7] * MANY


def test_a_cancelled_task_ends_its_program(sandbox: AsyncSandbox, tmp_path: pathlib.Path) -> None:
    pid = tmp_path / "pid"

    async def cancelled() -> None:
        task = asyncio.create_task(sandbox.run(f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"))
        await until(pid.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    eventually(lambda: not runs(int(pid.read_text())))


def test_a_timeout_of_the_loop_ends_a_program(sandbox: AsyncSandbox) -> None:
    async def limited() -> None:
        async with asyncio.timeout(0.2):
            await sandbox.run(["sleep", "600"])

    with pytest.raises(TimeoutError):
        asyncio.run(limited())


def test_output_files_and_programs_in_the_background(sandbox: AsyncSandbox, tmp_path: pathlib.Path) -> None:
    large = b"0123456789abcdef" * 65536

    async def work() -> None:
        pieces: list[bytes] = []
        done = await sandbox.run(["cat"], stdin=large, on_stdout=pieces.append)
        assert done.stdout == b"".join(pieces) == large
        await sandbox.files.write("deep/er/file", large)
        assert await sandbox.files.read("deep/er/file") == large
        (tmp_path / "one").write_bytes(b"up")
        await sandbox.files.upload(tmp_path / "one", "up")
        await sandbox.files.download("up", tmp_path / "two")
        assert (tmp_path / "two").read_bytes() == b"up"
        started = await sandbox.start("echo out; exit 3")
        assert ((await started.wait()).rc, (await sandbox.process(started.id).wait()).stdout) == (3, b"out\n")
        endless = await sandbox.start(["sleep", "600"])
        assert await endless.kill(grace=0)
        with pytest.raises(SandboxError) as caught:
            await sandbox.files.read("no/such/file")
        assert caught.value.reason == "agent-refused"

    asyncio.run(work())


def test_the_loop_goes_on_while_a_program_takes_no_input(sandbox: AsyncSandbox) -> None:
    async def work() -> None:
        task = asyncio.create_task(sandbox.run("sleep 0.5; wc -c", stdin=bytes(32 * 1024 * 1024)))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert int((await task).stdout) == 32 * 1024 * 1024
        assert turns > 10

    asyncio.run(work())


def test_an_agent_that_does_not_listen_is_reported(backend: Backend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    lost = AsyncSandbox(Sandbox(Holding({}), Agent(AgentAddress("127.0.0.1", port, "0" * 32)), "one", None, {}))
    with pytest.raises(SandboxError) as caught:
        asyncio.run(lost.run(["true"]))
    assert caught.value.reason == "agent-unreachable"


def test_a_cancelled_acquire_is_cut_and_what_it_created_is_released(backend: Backend) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(AsyncSandbox.acquire(image="image"))
        await until(backend.acquiring.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert backend.cancelled
    assert backend.released == ["one"]


def test_programs_run_and_queued_acquires_are_cancelled_while_acquires_wait(
    sandbox: AsyncSandbox, backend: Backend
) -> None:
    async def work() -> None:
        waiting = [asyncio.create_task(AsyncSandbox.acquire(image="image")) for _unused in range(loop.THREADS)]
        await until(lambda: len(backend.waiting) == loop.THREADS)
        queued = asyncio.create_task(AsyncSandbox.acquire(image="image"))
        async with asyncio.timeout(60):
            assert (await sandbox.run("echo hi")).stdout == b"hi\n"
            queued.cancel()
            with pytest.raises(asyncio.CancelledError):
                await queued
        assert len(backend.waiting) == loop.THREADS
        backend.proceed.set()
        for acquired in await asyncio.gather(*waiting):
            await acquired.release()

    asyncio.run(work())
    assert len(backend.released) == loop.THREADS


def test_a_block_releases_also_when_its_task_is_cancelled(backend: Backend) -> None:
    backend.proceed.set()

    async def block(inside: asyncio.Event) -> None:
        async with await AsyncSandbox.acquire(image="image") as acquired:
            inside.set()
            await acquired.run(["sleep", "600"])

    async def cancelled() -> None:
        inside = asyncio.Event()
        task = asyncio.create_task(block(inside))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert backend.released == ["one"]


def test_without_greenlet_the_next_step_is_to_install_it(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "greenlet", None)
    with pytest.raises(SandboxError) as caught:
        asyncio.run(sandbox.run(["true"]))
    assert caught.value.reason == "missing-dependency"
    assert "namzu-sandbox[async]" in str(caught.value.next_step)
