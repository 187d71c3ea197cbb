# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of a loop: kept for the same question only, and only while that is right."""

from __future__ import annotations

import os
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.client_cache import KEPT_SECONDS, KeptClient
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, connect

PARAMS = {"host": "http://127.0.0.1:1", "api_key": "secret", "request_timeout": "5s"}


Closed = list[Client]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Closed:
    """The clients that were closed, in order."""
    found: Closed = []

    def close(client: Client) -> None:
        found.append(client)

    monkeypatch.setattr(Client, "close", close)
    return found


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def kept(clock: list[float]) -> KeptClient:
    return KeptClient(lambda: clock[0])


def item(
    kept: KeptClient | None, params: dict[str, t.Any] | None = None, environ: dict[str, str] | None = None
) -> Client:
    """What one item of a loop works with."""
    with connect(params or PARAMS, Context(False, environ or {}, kept=kept)) as client:
        return client


def test_the_items_of_a_loop_share_one_client(kept: KeptClient, closed: Closed) -> None:
    first = item(kept)
    assert item(kept) is first
    assert not closed


@pytest.mark.parametrize(
    ("params", "environ"),
    [
        ({**PARAMS, "host": "http://127.0.0.2:1"}, {}),
        ({**PARAMS, "api_key": "another"}, {}),
        ({**PARAMS, "request_timeout": "6s"}, {}),
        (PARAMS, {"K8S_AUTH_IMPERSONATE_USER": "somebody"}),
    ],
    ids=["server", "token", "timeout", "environment"],
)
def test_another_question_gets_a_client_of_its_own(
    kept: KeptClient, closed: Closed, params: dict[str, t.Any], environ: dict[str, str]
) -> None:
    first = item(kept)
    assert item(kept, params, environ) is not first
    assert closed == [first]


def test_options_that_are_not_about_the_server_are_another_items_own(kept: KeptClient) -> None:
    assert item(kept, {**PARAMS, "name": "one"}) is item(kept, {**PARAMS, "name": "two"})


def test_after_a_failure_the_way_to_the_server_is_asked_for_anew(kept: KeptClient, closed: Closed) -> None:
    context = Context(False, {}, kept=kept)
    with pytest.raises(SandboxError), connect(PARAMS, context) as first:
        raise SandboxError("expired")
    assert closed == [first]
    assert item(kept) is not first


def test_it_is_asked_for_anew_after_a_while(kept: KeptClient, closed: Closed, clock: list[float]) -> None:
    first = item(kept)
    clock[0] = KEPT_SECONDS
    assert item(kept) is not first
    assert closed == [first]


def test_a_forked_process_leaves_its_parents_connections_alone(
    kept: KeptClient, closed: Closed, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = item(kept)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert item(kept) is not first
    assert not closed


def test_one_inside_another_is_another_client(kept: KeptClient, closed: Closed) -> None:
    context = Context(False, {}, kept=kept)
    with connect(PARAMS, context) as outer, connect({**PARAMS, "api_key": "another"}, context) as inner:
        assert outer is not inner
    assert item(kept) is outer
    assert closed == [inner]


def test_without_a_loop_it_is_closed_at_the_end(closed: Closed) -> None:
    first = item(None)
    assert closed == [first]
