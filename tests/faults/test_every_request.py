# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of every verb meets every fault: right word, bounded time, and nothing of ours that stays."""

from __future__ import annotations

import datetime
import email.utils
import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import CLEANUP_SECONDS
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiAnswerError,
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    InvalidError,
    NotServedError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from .fake.cluster import FakeCluster
from .fake.plan import Fault, How, Request, status
from .operations import HELD, OPERATIONS, Operation

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

    from .fake.clock import SkippingClock

#: Seconds of an operation here, on a clock on which waiting takes no time.
SECONDS = 20.0
#: Seconds of the machine's that none may take: who hangs is waited for 0.4 s at a time.
IN_TIME = 8.0

EACH = [
    pytest.param(operation, request, id=f"{name.replace(' ', '-')}-{request}")
    for name, operation in OPERATIONS.items()
    for request in operation.requests
]
every_request = pytest.mark.parametrize(("operation", "request_kind"), EACH)
those_of_this_file = pytest.mark.parametrize(
    ("operation", "request_kind"), [each for each in EACH if not t.cast("Operation", each.values[0]).elsewhere]
)

#: What passes, as most of these do: the request is made again.
PASSING = (
    status(429, retry_after="0"),
    status(429, retry_after="5"),
    status(500),
    status(503),
    Fault(How.CUT_BEFORE),
    Fault(How.CUT_AFTER),
    Fault(How.TRUNCATED),
    Fault(How.NO_JSON),
)

TOO_LATE = (
    status(429, retry_after="1000000000000"),
    status(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
)

#: A DELETE of what is gone already is answered by 404, and one without a Status says that the kind is not served.
NO_STATUS = (Fault(How.NO_JSON), "delete")

#: The classes of a fault that does not end.
LASTING: dict[Fault, type[SandboxError]] = {
    status(429): UnavailableError,
    status(503): UnavailableError,
    Fault(How.CUT_BEFORE): ApiUnreachableError,
    Fault(How.NO_JSON): ApiAnswerError,
}

DECIDED: dict[int, type[SandboxError]] = {
    404: GoneError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    """Less for an answer, where nearly all that is done is to wait for one."""
    monkeypatch.setattr(client, "_request_timeout", 0.15)


@pytest.fixture
def run(
    cluster: FakeCluster, client: Client, clock: SkippingClock
) -> t.Callable[[Operation, Request, Fault, float, float], SandboxError | None]:
    """Let an operation meet a fault; returns its error, after looking at the time and at what stays."""

    def go(operation: Operation, request: Request, fault: Fault, times: float, seconds: float) -> SandboxError | None:
        operation.prepare(cluster, client)
        before = existing(cluster)
        cluster.plan.add(fault, request, times=times)
        began, really = clock.monotonic(), time.monotonic()
        error: SandboxError | None = None
        try:
            operation.run(cluster, client, seconds)
        except SandboxError as failure:
            error = failure
        assert time.monotonic() - really < IN_TIME
        assert clock.monotonic() - began < seconds + CLEANUP_SECONDS + 2.0
        assert request in cluster.plan.received(), "the operation does not make this request"
        if error is not None and operation.makes:
            assert existing(cluster) == before
        return error

    return go


def existing(cluster: FakeCluster) -> tuple[list[str], list[str]]:
    return cluster.claims(), [name for name in cluster.store.names("sandboxes") if not name.startswith("python-")]


def first_failure(error: SandboxError) -> SandboxError:
    """The error of one; of many that of the first that failed by itself."""
    if not isinstance(error, PartialAcquireError):
        return error
    errors = [outcome.error for outcome in error.outcomes if outcome.error is not None]
    return next(one for one in errors if one.message in error.message)


def is_of(error: SandboxError, kind: type[SandboxError]) -> bool:
    """Whether it is of that class, or an acquire's word for it."""
    return isinstance(error, kind) or (isinstance(error, AcquireError) and isinstance(error.__cause__, kind))


@those_of_this_file
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived(run: t.Any, operation: Operation, request_kind: Request, fault: Fault) -> None:
    if (fault, request_kind.verb) == NO_STATUS:
        assert run(operation, request_kind, fault, 1, SECONDS) is None or operation.holds == "direct"
    else:
        assert run(operation, request_kind, fault, 1, SECONDS) is None


@every_request
def test_date_in_retry_after_is_waited_for(run: t.Any, operation: Operation, request_kind: Request) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=8)
    assert run(operation, request_kind, status(429, email.utils.format_datetime(soon)), 1, SECONDS) is None


@those_of_this_file
@pytest.mark.parametrize("fault", TOO_LATE, ids=lambda fault: str(fault)[:40])
def test_wait_that_the_deadline_has_no_room_for_fails_at_once(
    run: t.Any, cluster: FakeCluster, operation: Operation, request_kind: Request, fault: Fault
) -> None:
    error = run(operation, request_kind, fault, 1, SECONDS)
    if request_kind.verb == "watch" and error is None:
        return  # the object was there before the watch was
    assert is_of(first_failure(error), UnavailableError)
    assert (error.reason, error.retryable) == ("api-unreachable", True)


@those_of_this_file
@pytest.mark.parametrize(("fault", "kind"), LASTING.items(), ids=str)
def test_fault_that_lasts_is_given_up_at_the_deadline(
    run: t.Any, operation: Operation, request_kind: Request, fault: Fault, kind: type[SandboxError]
) -> None:
    error = run(operation, request_kind, fault, math.inf, SECONDS)
    if request_kind.verb == "watch" and error is None:
        return  # each try to watch begins with a read, which is enough
    if error is None:
        assert fault.how is How.NO_JSON
        assert request_kind.verb in ("create", "delete"), "it was done, and that is found out"
        return
    if (fault, request_kind.verb) == NO_STATUS:
        assert (type(error), error.reason) == (NotServedError, "not-served")
        return
    if fault.how is How.NO_JSON and isinstance(first_failure(error), NotServedError):
        assert request_kind.verb == "get", "only a read of what does not exist looks like that"
        return
    assert is_of(first_failure(error), kind)
    assert (error.reason, error.retryable) == ("api-unreachable", True)


@those_of_this_file
def test_server_that_hangs_once_is_outlived(
    run: t.Any, impatient: None, operation: Operation, request_kind: Request
) -> None:
    assert run(operation, request_kind, Fault(How.HANG), 1, SECONDS) is None


@those_of_this_file
def test_server_that_hangs_is_given_up_at_the_deadline(
    run: t.Any, impatient: None, operation: Operation, request_kind: Request
) -> None:
    error = run(operation, request_kind, Fault(How.HANG), math.inf, 1.0)
    if request_kind.verb == "watch" and error is None:
        return
    assert is_of(first_failure(error), ApiTimeoutError)
    assert (error.reason, error.retryable) == ("api-timeout", True)


@those_of_this_file
@pytest.mark.parametrize("code", [401, 403])
def test_refused_credential_is_forbidden(run: t.Any, operation: Operation, request_kind: Request, code: int) -> None:
    error = run(operation, request_kind, status(code), math.inf, SECONDS)
    if request_kind.verb == "watch" and error is None:
        return
    assert is_of(first_failure(error), CredentialError)
    assert (error.reason, error.retryable) == ("forbidden", False)


@every_request
@pytest.mark.parametrize(("code", "kind"), DECIDED.items())
def test_decision_is_of_its_class_or_stands_for_nothing_to_do(
    run: t.Any, cluster: FakeCluster, operation: Operation, request_kind: Request, code: int, kind: type[SandboxError]
) -> None:
    error = run(operation, request_kind, status(code), 1, 5.0)
    if error is None:
        expected = {
            "watch": (410,),  # begun anew
            "get": (404, 410),  # looked for elsewhere, or not there
            "delete": (404, 410, 409),  # gone already, or another one has its name
            "create": (409,),  # tried again
            "list": (410,),  # read anew
        }
        assert code in expected[request_kind.verb] or request_kind.verb == "watch"
    else:
        said = first_failure(error)
        assert is_of(said, kind) or said.reason in ("not-ready", "not-found", "stale", "not-gone")
        assert not said.retryable or said.reason in ("not-ready", "stale", "not-gone")


def test_operations_that_hold_something_leave_it(cluster: FakeCluster, client: Client) -> None:
    for name in ("acquire again", "would find", "locate", "inventory", "capacity", "choose by label"):
        assert OPERATIONS[name].holds == "claim"
    OPERATIONS["inventory"].prepare(cluster, client)
    OPERATIONS["inventory"].run(cluster, client, SECONDS)
    assert cluster.claims() == [HELD]
    assert {request.verb for request in cluster.plan.received()} == {"list"}
