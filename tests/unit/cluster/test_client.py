# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client: what it sends, what it makes of each answer, and that no answer holds it longer than it may."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import client as client_module
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import StaticToken
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, POD
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    AccessError,
    ApiAnswerError,
    ApiError,
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    InvalidError,
    SandboxError,
    UnavailableError,
)

from .scripted import Scripted, Step, answer, claim, status_object

ONE = CLAIM.ref("team-a", "one")
PATH = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxclaims"
TOKEN = "hush-hush-7"


@contextlib.contextmanager
def talking(*script: Step | list[Step], **access: t.Any) -> t.Iterator[tuple[Client, Scripted]]:
    with (
        Scripted(*script) as server,
        Client(Access(server=server.url, credential=StaticToken(TOKEN), **access), request_timeout=5.0) as client,
    ):
        yield client, server


def failure_of(*script: Step | list[Step], seconds: float = 5.0) -> SandboxError:
    with talking(*script) as (client, _server), pytest.raises(SandboxError) as caught:
        client.get(ONE, Deadline(seconds))
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "reason", "retryable"),
    [
        (301, ApiError, "api-error", False),
        (307, ApiError, "api-error", False),
        (400, InvalidError, "rejected", False),
        (401, CredentialError, "forbidden", False),
        (403, CredentialError, "forbidden", False),
        (404, GoneError, "not-found", False),
        (405, ApiError, "api-error", False),
        (409, ConflictError, "conflict", False),
        (410, GoneError, "not-found", False),
        (422, InvalidError, "rejected", False),
        (429, UnavailableError, "api-unreachable", True),
        (500, UnavailableError, "api-unreachable", True),
        (503, UnavailableError, "api-unreachable", True),
        (504, UnavailableError, "api-unreachable", True),
    ],
)
def test_status_becomes_its_class(status: int, kind: type[ApiError], reason: str, retryable: bool) -> None:
    error = failure_of(answer(status, status_object(status, "Because", "some words")))
    assert (type(error), error.reason, error.retryable) == (kind, reason, retryable)


def test_error_carries_what_the_server_said() -> None:
    error = failure_of(answer(403, status_object(403, "Forbidden", "no such right"), Retry_After="7"))
    assert isinstance(error, ApiError)
    assert (error.status, error.api_reason, error.api_message) == (403, "Forbidden", "no such right")
    assert (error.method, error.path, error.retry_after) == ("GET", f"{PATH}/one", 7.0)
    assert error.object == "SandboxClaim team-a/one"
    assert "no such right" in str(error)


def test_error_without_a_status_object_quotes_the_start_of_the_body() -> None:
    error = failure_of(answer(502, b"<html>" + b"x" * 5000))
    assert "<html>" in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("status", "body"),
    [(302, b""), (307, b"<html>Log in</html>"), (400, b"Client sent an HTTP request to an HTTPS server.\n")],
)
def test_answer_that_is_not_of_an_api_server_says_where_to_look(status: int, body: bytes) -> None:
    assert "https://" in str(failure_of(answer(status, body)).next_step)
    assert failure_of(answer(status, status_object(status, "Because", "some words"))).next_step is None


def test_kind_that_is_not_served_is_said() -> None:
    assert "CRDs are not installed" in str(failure_of(answer(404, status_object(404, "NotFound", name=None))))


def test_object_that_is_not_there_is_not_blamed_on_crds() -> None:
    assert "CRDs" not in str(failure_of(answer(404, status_object(404, "NotFound"))))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    with talking(answer(200, claim())) as (_client, elsewhere):
        failure_of(answer(status, b"", Location=elsewhere.url))
        assert elsewhere.received == []


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"[]",
        b"null",
        b"42",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": {}}',
        b"\xff",
        b"[" * 100_000,
        json.dumps(status_object(200, "")).encode(),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_answer_that_is_no_object_is_none(body: bytes) -> None:
    error = failure_of(answer(200, body))
    assert error.__class__ is ApiAnswerError
    assert error.sent


def test_list_without_items_is_no_answer() -> None:
    with talking(answer(200, {"kind": "PodList"})) as (client, _server), pytest.raises(ApiAnswerError):
        client.list(POD, "team-a")


def test_answer_larger_than_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAXIMUM_ANSWER", 10_000)
    error = failure_of(answer(200, b" " * 20_000 + json.dumps(claim()).encode()))
    assert error.__class__ is ApiAnswerError
    assert "larger than 10000 bytes" in str(error)


@pytest.mark.parametrize(
    "cut",
    [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", b"garbage\r\n\r\n", b"\x16\x03\x01"],
    ids=repr,
)
def test_cut_answer_may_have_been_acted_upon(cut: bytes) -> None:
    error = failure_of(cut)
    assert error.__class__ is ApiUnreachableError
    assert error.sent


def drip(head: bytes, rest: bytes = b" " * 1000) -> list[Step]:
    """A byte every 20 ms, for 20 s."""
    steps: list[Step] = [head]
    for byte in rest:
        steps += [0.02, bytes((byte,))]
    return steps


@pytest.mark.parametrize(
    "script",
    [
        [60.0],
        drip(b"HTTP/1.1 200 OK\r\nX-Long: "),
        drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        drip(b"HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n"),
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n"),
        drip(b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
    ids=["silence", "slow-head", "slow-body", "slow-error-body", "slow-chunk", "slow-body-without-length"],
)
def test_answer_that_comes_too_slowly_is_given_up_in_time(script: list[Step]) -> None:
    began = time.monotonic()
    assert failure_of(script, seconds=0.4).__class__ is ApiTimeoutError
    assert time.monotonic() - began < 2.0


def test_nobody_there_is_unreachable_and_nothing_was_sent() -> None:
    with Scripted(b"") as server:
        url = server.url
    with Client(Access(server=url)) as client, pytest.raises(ApiUnreachableError) as caught:
        client.get(ONE, Deadline(5.0))
    assert (type(caught.value), caught.value.sent) == (ApiUnreachableError, False)
    assert "Connection refused" in str(caught.value)


def test_name_that_does_not_resolve_is_unreachable() -> None:
    access = Access(server="http://no-such-host.invalid")
    with Client(access) as client, pytest.raises(ApiUnreachableError) as caught:
        client.get(ONE, Deadline(5.0))
    assert (caught.value.sent, caught.value.retryable) == (False, False)


def test_resolver_without_an_answer_may_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_arguments: t.Any, **_options: t.Any) -> t.NoReturn:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with Client(Access(server="http://host.example")) as client, pytest.raises(ApiUnreachableError) as caught:
        client.get(ONE, Deadline(5.0))
    assert caught.value.retryable


def test_every_request_carries_the_credential() -> None:
    pods = {"kind": "PodList", "items": []}
    script = [answer(200, claim()), answer(201, claim()), answer(200, pods), answer(200, claim())]
    with talking(*script) as (client, server):
        client.get(ONE)
        client.create(ONE, claim())
        client.list(POD, "team-a", label_selector="a=b")
        client.delete(ONE, uid="uid-1")
    assert [request.all("Authorization") for request in server.received] == [[f"Bearer {TOKEN}"]] * 4


def test_requests_are_what_kubernetes_expects() -> None:
    pods = {"kind": "PodList", "items": []}
    script = [answer(201, claim()), answer(200, claim()), answer(200, claim()), answer(200, pods)]
    with talking(*script) as (client, server):
        client.create(ONE, {"kind": "SandboxClaim"}, dry_run=True)
        client.patch(ONE, {"spec": None})
        client.delete(ONE, uid="uid-1")
        client.list(POD, "team-a", label_selector="a in (b,c)")
    lines = [request.line for request in server.received]
    assert lines == [
        f"POST {PATH}?dryRun=All HTTP/1.1",
        f"PATCH {PATH}/one HTTP/1.1",
        f"DELETE {PATH}/one HTTP/1.1",
        "GET /api/v1/namespaces/team-a/pods?labelSelector=a+in+%28b%2Cc%29 HTTP/1.1",
    ]
    assert server.received[1].all("Content-Type") == ["application/merge-patch+json"]
    assert json.loads(server.received[2].body)["preconditions"] == {"uid": "uid-1"}


def test_address_may_have_a_path() -> None:
    with Scripted(answer(200, claim())) as server, Client(Access(server=f"{server.url}/k8s/c-1")) as client:
        client.get(ONE)
    assert server.received[0].line == f"GET /k8s/c-1{PATH}/one HTTP/1.1"


def test_impersonation_is_one_header_a_group() -> None:
    with talking(answer(200, claim()), impersonate_user="ann", impersonate_groups=("a", "b,c")) as (client, server):
        client.get(ONE)
    assert server.received[0].all("Impersonate-User") == ["ann"]
    assert server.received[0].all("Impersonate-Group") == ["a", "b,c"]
    assert server.received[0].all("Authorization") == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    "access",
    [
        {"credential": StaticToken("se\ncret")},
        {"credential": StaticToken("secret\N{EM DASH}")},
        {"impersonate_user": "se\r\ncret"},
        {"impersonate_groups": ("se\0cret",)},
    ],
    ids=["line-break", "not-ascii", "user", "group"],
)
def test_value_that_no_header_can_carry_is_refused_unquoted(access: dict[str, t.Any]) -> None:
    with Client(Access(server="http://127.0.0.1:1", **access)) as client, pytest.raises(AccessError) as caught:
        client.get(ONE)
    assert "cret" not in str(caught.value)


def test_request_timeout_cannot_be_switched_off() -> None:
    with Scripted([60.0]) as server, Client(Access(server=server.url), request_timeout=0) as client:
        began = time.monotonic()
        with pytest.raises(ApiTimeoutError):
            client.get(ONE)
    assert 0.9 < time.monotonic() - began < 3.0


def test_deadline_that_has_passed_does_not_mean_no_bound() -> None:
    began = time.monotonic()
    assert isinstance(failure_of([60.0], seconds=0.0), ApiUnreachableError)
    assert time.monotonic() - began < 2.0
