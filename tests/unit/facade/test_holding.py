# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of a sandbox that a Python program holds: renewed, retried, and lost."""

from __future__ import annotations

import contextlib
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import Sandbox, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiUnreachableError, GoneError
from ansible_collections.namzu.sandbox.plugins.module_utils.facade import holding, sandbox
from ansible_collections.namzu.sandbox.plugins.module_utils.facade.holding import Holding
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.protocol import Acquisition, Batch
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import AgentAddress

#: Seconds; renewed after half of them, and after a failure within a twentieth.
TTL = 0.4


class Backend:
    """Renews with the next of its outcomes, and records the calls."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = [*outcomes]
        self.renewed: list[tuple[str, float, str | None]] = []
        self.released: dict[str, str] = {}
        self.acquired: list[Acquisition] = []
        self.enough = threading.Event()
        self.closed = 0

    def renew(self, name: str, remaining: float, *, uid: str | None, dry_run: bool, within: float) -> None:
        assert not dry_run
        assert 0 < within < remaining
        self.renewed.append((name, remaining, uid))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if not self.outcomes:
            self.enough.set()
        if outcome is not None:
            raise outcome

    def request(self, params: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
        return params

    def acquire(self, _request: t.Any, _cancellation: t.Any) -> Acquisition:
        return self.acquired[0]

    def acquire_many(self, _request: t.Any, _count: int, _on_failure: str) -> Batch:
        return Batch(self.acquired)

    def release_created(self, created: t.Mapping[str, str]) -> list[str]:
        self.released.update(created)
        return []


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> t.Callable[[Backend], Backend]:
    """Makes a backend the one that options choose."""

    def chosen(backend: Backend) -> Backend:
        @contextlib.contextmanager
        def opened(_params: object) -> t.Iterator[Backend]:
            try:
                yield backend
            finally:
                backend.closed += 1

        monkeypatch.setattr(holding, "opened", opened)
        return backend

    return chosen


def acquisition(name: str, *, created: bool = True) -> Acquisition:
    address = AgentAddress("127.0.0.1", 1, "0" * 32)
    return Acquisition(name, None, f"uid-{name}", address, None, created, None, {})


def test_a_lease_is_renewed_until_it_is_stopped(serve: t.Callable[[Backend], Backend]) -> None:
    backend = serve(Backend(None, None))
    held = Holding({})
    held.renew("one", "uid-one", TTL)
    assert backend.enough.wait(60)
    held.stop()
    held.raise_if_lost()
    assert backend.renewed[:2] == [("one", TTL, "uid-one")] * 2


@pytest.mark.parametrize(
    "failure", [ApiUnreachableError("no connection"), RuntimeError("unforeseen"), SandboxError("x")]
)
def test_a_renewal_that_fails_is_tried_again(serve: t.Callable[[Backend], Backend], failure: Exception) -> None:
    backend = serve(Backend(failure, None, None))
    lease = holding._Lease({}, "one", "uid-one", 60.0)
    assert lease.renew() is None
    assert 0 < lease.wait <= 1.0
    assert lease.renew() is None
    assert lease.wait > 20.0
    assert len(backend.renewed) == 2


def test_a_backend_that_cannot_be_opened_is_tried_again(
    serve: t.Callable[[Backend], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(Backend())
    lease = holding._Lease({}, "one", "uid-one", 60.0)

    def fail(_params: object) -> t.NoReturn:
        raise SandboxError("no kubeconfig", reason="access")

    monkeypatch.setattr(holding, "opened", fail)
    assert lease.renew() is None


def test_a_lease_is_lost_when_the_object_is_gone(serve: t.Callable[[Backend], Backend]) -> None:
    serve(Backend(GoneError("SandboxClaim a/one is gone", status=404, object="SandboxClaim a/one")))
    error = holding._Lease({}, "one", "uid-one", 60.0).renew()
    assert error is not None
    assert error.reason in {"gone", "not-found"}


def test_leases_are_renewed_when_no_thread_can_be_started(
    serve: t.Callable[[Backend], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = serve(Backend(None, None))
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "namzu-lease":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    held = Holding({})
    held.renew("one", "uid-one", TTL)
    assert backend.enough.wait(60)
    held.stop()
    held.raise_if_lost()


def test_a_lease_that_could_not_be_renewed_in_time_is_lost_and_reported(
    serve: t.Callable[[Backend], Backend],
) -> None:
    backend = serve(Backend(*[ApiUnreachableError("no connection") for _unused in range(1000)]))
    held = Holding({})
    held.renew("one", "uid-one", TTL)
    until(lambda: held.lost is not None)
    with pytest.raises(ApiUnreachableError):
        held.raise_if_lost()
    assert len(backend.renewed) > 1


def test_what_was_created_is_released_when_the_handle_cannot_be_made(
    serve: t.Callable[[Backend], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = serve(Backend())
    backend.acquired = [acquisition("one"), acquisition("two"), acquisition("three", created=False)]
    made: list[str] = []

    def agent(_address: object, *, subject: str, **_options: t.Any) -> str:
        made.append(subject)
        if len(made) == 2:
            raise RuntimeError("unforeseen")
        return subject

    monkeypatch.setattr(sandbox, "Agent", agent)
    for part in ("SandboxFiles", "Sessions"):
        monkeypatch.setattr(sandbox, part, lambda *_arguments: None)
    with pytest.raises(RuntimeError):
        Sandbox.acquire_many(3, image="image")
    assert backend.released == {"one": "uid-one", "two": "uid-two"}
    assert backend.closed == 3
    until(lambda: not any(one.name == "namzu-leases" for one in threading.enumerate()))


def until(condition: t.Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("name", "other"), [("warm_pool", "pool"), ("count", "acquire_many")])
def test_options_with_another_name_in_python_are_refused(name: str, other: str) -> None:
    with pytest.raises(TypeError, match=f"use {other}"):
        Sandbox.acquire(**{name: "python"})
