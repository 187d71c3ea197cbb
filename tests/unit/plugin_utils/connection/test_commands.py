# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of tasks, and which of their failures make a host unreachable."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils import errors
from ansible_collections.namzu.sandbox.plugins.module_utils.guest import errors as guest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import ReplacedError
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection import commands as connection_work
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.commands import (
    OutputError,
    described,
    is_unreachable,
    run,
)

from ...guest.running_agent import RunningAgent, running_agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace")) as running:
        yield running


def test_a_command_gets_its_input_and_gives_its_output_byte_for_byte(agent: RunningAgent) -> None:
    data = bytes(range(256)) * 2000
    assert run(agent.client, ["/bin/sh", "-c", "cat; echo said >&2; exit 3"], data) == (3, data, b"said\n")


def test_a_command_that_a_signal_ended_counts_as_shells_count(agent: RunningAgent) -> None:
    assert run(agent.client, ["/bin/sh", "-c", "kill -9 $$"], b"")[0] == 137


def test_a_command_that_ends_with_its_pod_is_no_result_of_a_task(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path) as stopping:
        script = f"kill -TERM {stopping.pid}; sleep 1000"
        with pytest.raises(guest.GuestStoppedError) as caught:
            run(stopping.client, ["/bin/sh", "-c", script], b"")
    assert is_unreachable(caught.value)


def test_a_python_of_a_task_keeps_its_bytecode_where_it_may_write(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "bytecode"
    source = tmp_path / "answer.py"
    source.write_text("VALUE = 42\n")
    program = [
        "python3",
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import answer; print(answer.VALUE)",
    ]
    assert run(agent.client, program, b"", str(folder))[1] == b"42\n"
    assert list(folder.rglob("answer.*.pyc"))
    assert not (tmp_path / "__pycache__").exists()


def test_more_output_than_can_be_taken_is_no_truncated_result(
    agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_work, "LARGEST_OUTPUT", 10)
    with pytest.raises(OutputError, match=r"more than 10 bytes.*ansible\.builtin\.fetch"):
        run(agent.client, ["echo", "more than ten bytes"], b"")


@pytest.mark.parametrize(
    ("error", "unreachable"),
    [
        (errors.GoneError("m", status=404), True),
        (errors.CredentialError("m", status=403), True),
        (errors.ApiUnreachableError("m"), True),
        (errors.AccessError("m"), True),
        (ReplacedError("m"), True),
        (guest.GuestUnreachableError("m", sent=True), True),
        (guest.GuestUnauthorizedError("m"), True),
        (guest.GuestRefusedError("m", kind="busy"), True),
        (guest.GuestRefusedError("m", kind="no-space"), False),
        (guest.GuestRefusedError("m", kind="denied"), False),
        (errors.InputError("m"), False),
        (errors.MissingDependencyError("m"), False),
        (OutputError("m"), False),
    ],
    ids=lambda value: type(value).__name__ + getattr(value, "kind", ""),
)
def test_a_host_is_unreachable_when_no_task_can_succeed_on_it(error: errors.SandboxError, unreachable: bool) -> None:
    assert is_unreachable(error) is unreachable


def test_the_object_and_the_next_step_are_said_once() -> None:
    error = errors.GoneError("GET Pod a/b: gone.", status=404, object="Pod a/b", next_step="Look there.")
    assert described(error) == "GET Pod a/b: gone. Look there."
    assert described(errors.SandboxError("It is gone.", object="Pod a/b")) == "Pod a/b: It is gone."
