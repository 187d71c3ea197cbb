# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for: refused here, before anything is sent, or taken."""

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.names import check_labels, check_name, fresh_name
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.delete import DeleteRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import SuspendRequest, WorkspaceRequest


def request(**changes: t.Any) -> AcquireRequest:
    return AcquireRequest(**{"namespace": "team-a", "warm_pool": "python", **changes})


@pytest.mark.parametrize("name", ["a", "7", "build-1", "a--b", "x" * 63])
def test_name_of_an_object_is_taken(name: str) -> None:
    check_name("name", name)


@pytest.mark.parametrize(
    "name",
    ["", "-a", "a-", "A", "a_b", "a.b", "a b", "a\n", "ä", "x" * 64, "a/b", "..", "a\0", "\N{CYRILLIC SMALL LETTER A}"],
)
def test_what_names_no_object_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^name is "):
        check_name("name", name)


@given(st.text(max_size=70))
def test_name_is_taken_exactly_when_kubernetes_takes_it(name: str) -> None:
    valid = len(name) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) is not None
    try:
        check_name("name", name)
    except InputError:
        assert not valid
    else:
        assert valid


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a", ""),
        ("a", "x" * 63),
        ("A.b_c-d", "A.b_c-d"),
        ("x" * 63, "1"),
        ("sandbox.users.io/job", "1"),
        ("a/b", "c"),
    ],
)
def test_label_is_taken(key: str, value: str) -> None:
    check_labels("labels", {key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "1"),
        ("/a", "1"),
        ("a/", "1"),
        ("a/b/c", "1"),
        ("-a", "1"),
        ("a-", "1"),
        ("A.io/b", "1"),
        ("a b", "1"),
        ("x" * 64, "1"),
        ("a", "-1"),
        ("a", "1."),
        ("a", "x" * 64),
        ("a", "a b"),
        ("a", "a/b"),
        ("a", "1\n"),
        ("a\n", "1"),
    ],
)
def test_what_is_no_label_is_refused(key: str, value: str) -> None:
    with pytest.raises(InputError, match=r"^pod_labels has "):
        check_labels("pod_labels", {key: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl": 10},
        {"ttl": 86400.5},
        {"ready_timeout": 1},
        {"agent_port": 1},
        {"agent_port": 65535},
        {"name": None},
        {"labels": {}, "pod_labels": {}},
    ],
    ids=str,
)
def test_request_at_its_bounds_is_taken(changes: dict[str, t.Any]) -> None:
    assert request(**changes)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"namespace": ""}, "namespace"),
        ({"namespace": "Team A"}, "namespace"),
        ({"warm_pool": ""}, "warm_pool"),
        ({"warm_pool": "a/b"}, "warm_pool"),
        ({"name": ""}, "name"),
        ({"name": "a.b"}, "name"),
        ({"labels": {"a": "b c"}}, "labels"),
        ({"pod_labels": {"a b": "c"}}, "pod_labels"),
        ({"ttl": 9.99}, "ttl"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": float("nan")}, "ttl"),
        ({"ttl": float("inf")}, "ttl"),
        ({"ttl": 1e300}, "ttl"),
        ({"ready_timeout": 0.5}, "ready_timeout"),
        ({"ready_timeout": float("nan")}, "ready_timeout"),
        ({"ready_timeout": float("inf")}, "ready_timeout"),
        ({"agent_port": 0}, "agent.port"),
        ({"agent_port": 65536}, "agent.port"),
        ({"agent_port": -1}, "agent.port"),
        ({"agent_port": "1024"}, "agent.port"),
        ({"agent_port": True}, "agent.port"),
        ({"agent_address": "podip"}, "agent.address"),
        ({"agent_address": None}, "agent.address"),
        ({"on_stale": "maybe"}, "on_stale"),
        ({"namespace": None}, "namespace"),
        ({"name": 7}, "name"),
        ({"labels": ["a=b"]}, "labels"),
        ({"labels": {"a": 1}}, "labels"),
        ({"pod_labels": {1: "a"}}, "pod_labels"),
        ({"ttl": None}, "ttl"),
        ({"ttl": "soon"}, "ttl"),
        ({"ready_timeout": []}, "ready_timeout"),
        ({"ingress": "everybody"}, "ingress"),
    ],
    ids=str,
)
def test_request_that_cannot_be_honoured_names_the_option(changes: dict[str, t.Any], word: str) -> None:
    with pytest.raises(InputError) as caught:
        request(**changes)
    assert str(caught.value).startswith(word)
    assert (caught.value.reason, caught.value.retryable) == ("invalid-input", False)


@pytest.mark.parametrize("egress", ["no_networks", 7, ["no_network"], {"kind": None}], ids=repr)
def test_egress_that_is_not_a_request_is_refused(egress: object) -> None:
    with pytest.raises(SandboxError) as caught:
        request(egress=egress)
    assert not caught.value.retryable


def test_request_accepts_the_forms_of_a_task() -> None:
    """A program may copy the values of a task."""
    asked = request(ttl="10m", ready_timeout="90s", egress="no_network", ingress={"allow_from": []})
    assert (asked.ttl, asked.ready_timeout) == (600.0, 90.0)
    assert asked.egress == EgressBoundary.of("no_network")
    assert asked.ingress == IngressBoundary(())


def test_workspace_request_accepts_the_forms_of_a_task() -> None:
    asked = WorkspaceRequest(
        "team-a", "build-1", template="desk", ttl="10m", ready_timeout="90s", egress="no_network", ingress="unverified"
    )  # type: ignore[arg-type]
    assert (asked.ttl, asked.ready_timeout) == (600.0, 90.0)
    assert asked.egress == EgressBoundary.of("no_network")


@pytest.mark.parametrize(
    ("kind", "changes", "word"),
    [
        (WorkspaceRequest, {"agent_address": "podip"}, "agent.address"),
        (WorkspaceRequest, {"on_stale": "maybe"}, "on_stale"),
        (WorkspaceRequest, {"ttl": "soon"}, "ttl"),
        (SuspendRequest, {"agent_address": "podip"}, "agent.address"),
        (SuspendRequest, {"agent_port": 0}, "agent.port"),
        (SuspendRequest, {"timeout": 0.5}, "wait_timeout"),
        (DeleteRequest, {"delete_disk": True, "timeout": None}, "wait_timeout"),
    ],
    ids=str,
)
def test_workspace_requests_name_the_option(kind: type, changes: dict[str, t.Any], word: str) -> None:
    with pytest.raises(InputError, match=f"^{word} is "):
        kind("team-a", "build-1", **changes)


def test_fresh_names_are_names_and_differ() -> None:
    names = {fresh_name() for _unused in range(100)}
    assert len(names) == 100
    for name in names:
        assert name.startswith("namzu-task-")
        check_name("name", name)
