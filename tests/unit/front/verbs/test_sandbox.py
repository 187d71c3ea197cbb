# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox`` and ``sandbox_exec``: what is refused before anything is sent, and what the core's words become."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Result, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox import VERB as SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_exec import VERB as SANDBOX_EXEC

from ....faults.fake.cluster import FakeCluster
from ....faults.fake.controller import NAMESPACE
from ..playing import access, present


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster with nothing in it."""
    with FakeCluster() as made:
        yield made


def run(verb: Verb, options: dict[str, t.Any]) -> Result:
    """The verb's result, with the defaults of its option table."""
    validated = ArgumentSpecValidator(verb.options, **verb.constraints).validate(options)
    assert validated.error_messages == []
    return perform(verb, validated.validated_parameters, Context(check_mode=False, environ={}))


@pytest.mark.parametrize("timeout", ["0", "0s", 0])
def test_release_without_any_time_is_refused_before_anything_is_sent(cluster: FakeCluster, timeout: t.Any) -> None:
    """Found: it was tried, and said that the API server had not answered."""
    result = run(SANDBOX, access(cluster, state="absent", name="build-1", wait_timeout=timeout))
    assert (result["failed"], result["reason"]) == (True, "invalid-input")
    assert result["msg"].startswith("wait_timeout is 0")
    assert cluster.plan.received() == []


@pytest.mark.parametrize("timeout", ["0", "0s", 0])
def test_command_without_any_time_is_refused_before_anything_is_sent(cluster: FakeCluster, timeout: t.Any) -> None:
    result = run(SANDBOX_EXEC, access(cluster, name="build-1", command="true", timeout=timeout))
    assert (result["failed"], result["reason"]) == (True, "invalid-input")
    assert result["msg"].startswith("timeout is 0")
    assert cluster.plan.received() == []


def test_selector_that_matches_nothing_returns_at_once_and_says_so(cluster: FakeCluster) -> None:
    """kubernetes.core issue 634: there it waited."""
    result = run(SANDBOX, access(cluster, state="absent", label_selector="job=none", wait=True))
    assert (result["changed"], result["released"]) == (False, [])
    assert result["msg"] == f"No sandbox in {NAMESPACE} matches job=none. Nothing was released."
    assert [str(request) for request in cluster.plan.received()] == [
        "list-sandboxclaims", "list-sandboxes", "get-namespaces",
    ]  # fmt: skip


def test_names_of_nothing_release_nothing(cluster: FakeCluster) -> None:
    result = run(SANDBOX, access(cluster, state="absent", names=[]))
    assert (result["changed"], result["released"]) == (False, [])
    assert cluster.plan.received() == []


def test_stale_sandbox_is_a_field_and_a_warning(cluster: FakeCluster) -> None:
    cluster.controller.member = {"spec": {}}
    result = run(SANDBOX, present(cluster, name="build-1", on_stale="report", ingress="unverified"))
    assert result["sandbox"]["stale"] is True
    assert result["warnings"] == ["Sandbox build-1 is older than its template."]


def test_nobody_is_warned_without_having_asked(cluster: FakeCluster) -> None:
    result = run(SANDBOX, present(cluster, name="build-1", ingress="unverified"))
    assert result["sandbox"]["stale"] is None
    assert "warnings" not in result
