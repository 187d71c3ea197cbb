# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The privilege probe: nothing but the full proof is accepted."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress, Health
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestProtocolError,
    GuestRefusedError,
    GuestTimeoutError,
    GuestUnauthorizedError,
    GuestUnreachableError,
    GuestUnsupportedError,
    PrivilegeError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.privileges import (
    Privileges,
    capability_names,
    probe_privileges,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    running_agent,
    status_field,
    within,
    without_privileges,
)
from tests.unit.guest.agent.test_client import Server, agent_at
from tests.unit.guest.agent.test_client import answer as answered

ZERO = "0000000000000000"
MASKS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
FIELDS = {
    "Name": "cat",
    "Uid": "1000\t1001\t1000\t1000",
    "Groups": "",
    **dict.fromkeys(MASKS, ZERO),
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
PYTHON = "/opt/python/bin/python3"


def status(**changes: str | None) -> str:
    fields = {**FIELDS, **changes}
    return "".join(f"{name}:\t{value}\n" for name, value in fields.items() if value is not None)


class ScriptedAgent(Agent):
    """An agent from before the operation ``privileges``.

    It answers a command by its program: an Execution, a text for its output, or an error to raise.
    """

    def __init__(self, **answers: Execution | str | Exception) -> None:
        super().__init__(AgentAddress("10.0.0.7", 1024, "secret-4711"))
        self.answers = answers
        self.asked: list[list[str]] = []

    @property
    def caller(self) -> t.Any:
        return OldCaller()

    def healthz(self, deadline: t.Any) -> Health:
        return Health(1, frozenset(), "1", "3", PYTHON, "/", 0.0)

    def execute(self, argv: t.Sequence[str], **_options: t.Any) -> Execution:
        self.asked.append(list(argv))
        answer = self.answers["cat" if argv[0] == "cat" else "python"]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Execution) else executed(answer)


class OldCaller:
    def call(self, operation: str, _body: t.Any, _deadline: t.Any) -> t.NoReturn:
        raise GuestUnsupportedError(f"{operation}: unknown", feature=operation)


def executed(stdout: str, rc: int = 0, stderr: str = "", truncated: bool = False) -> Execution:
    return Execution(rc, None, stdout.encode(), stderr.encode(), False, truncated, False, 0.01)


def refusal(kind: str) -> GuestRefusedError:
    return GuestRefusedError("cat: there is no such program", kind=kind)


def probe(agent: Agent) -> Privileges:
    return probe_privileges(agent, within(15), "sandbox team-a/build-7")


def refused(agent: Agent) -> PrivilegeError:
    with pytest.raises(PrivilegeError) as caught:
        probe(agent)
    error = caught.value
    assert (error.reason, error.retryable, error.object) == ("privileged", False, "sandbox team-a/build-7")
    assert "sandbox team-a/build-7 (agent 10.0.0.7:1024)" in str(error)
    assert error.next_step
    return error


def test_no_privileges_at_all() -> None:
    assert probe(ScriptedAgent(cat=status())) == Privileges(0, 0, 0, 0, 0, True, 1001, 2)


def test_seccomp_is_information_only() -> None:
    assert probe(ScriptedAgent(cat=status(Seccomp=None))).seccomp is None
    assert probe(ScriptedAgent(cat=status(Seccomp="0"))).seccomp == 0


@pytest.mark.parametrize("field", MASKS)
@pytest.mark.parametrize(
    ("mask", "names"), [("0000000000002000", "CAP_NET_RAW"), ("8000000000000001", "CAP_CHOWN CAP_63")]
)
def test_each_mask_alone_is_refused_by_name(field: str, mask: str, names: str) -> None:
    error = refused(ScriptedAgent(cat=status(**{field: mask})))
    assert error.excess == {field: f"{mask} ({names})"}
    assert f"{field}: {mask} ({names})." in str(error)
    assert "capabilities.drop: [ALL]" in str(error)
    assert error.fields()["excess"] == error.excess


def test_new_privileges_are_refused() -> None:
    error = refused(ScriptedAgent(cat=status(NoNewPrivs="0")))
    assert error.excess == {"NoNewPrivs": "0"}
    assert "allowPrivilegeEscalation: false" in str(error)
    assert "capabilities" not in str(error)


def test_everything_that_is_wrong_is_named_and_equal_masks_once() -> None:
    error = refused(ScriptedAgent(cat=status(CapEff="1", CapPrm="1", CapBnd="3", NoNewPrivs="0")))
    assert "CapPrm, CapEff: 0000000000000001 (CAP_CHOWN); CapBnd: 0000000000000003" in str(error)
    assert list(error.excess) == ["CapPrm", "CapEff", "CapBnd", "NoNewPrivs"]


@pytest.mark.parametrize("field", [*MASKS, "NoNewPrivs", "Uid"])
@pytest.mark.parametrize("value", [None, "", "x", "-1", "0x0", "٠", "2 1"])
def test_a_field_that_is_missing_or_unreadable_is_refused(field: str, value: str | None) -> None:
    error = refused(ScriptedAgent(cat=status(**{field: value})))
    assert field in str(error)
    assert error.excess == {}


@pytest.mark.parametrize(
    "execution",
    [
        executed(""),
        executed("no status at all"),
        executed(status(), rc=1, stderr="cat: /proc/self/status: Permission denied"),
        executed(status(), truncated=True),
        executed(status() + "CapEff:\t" + ZERO + "\n"),
    ],
)
def test_an_answer_that_cannot_be_relied_on_is_refused(execution: Execution) -> None:
    assert refused(ScriptedAgent(cat=execution)).excess == {}


@given(st.text(max_size=200))
def test_no_text_is_taken_for_a_proof(text: str) -> None:
    with pytest.raises(PrivilegeError):
        probe(ScriptedAgent(cat=executed(text.replace("\ud800", ""))))


@pytest.mark.parametrize("kind", ["not-found", "not-executable"])
def test_without_cat_the_agents_python_reads(kind: str) -> None:
    agent = ScriptedAgent(cat=refusal(kind), python=status())
    assert probe(agent).none
    assert agent.asked[0] == ["cat", "/proc/self/status"]
    assert agent.asked[1][:4] == [PYTHON, "-I", "-S", "-c"]


def test_another_refusal_is_passed_on() -> None:
    with pytest.raises(GuestRefusedError):
        probe(ScriptedAgent(cat=refusal("exhausted")))
    with pytest.raises(GuestUnauthorizedError):
        probe(ScriptedAgent(cat=GuestUnauthorizedError("no")))


def test_a_probe_that_times_out_names_the_sandbox_and_the_stage() -> None:
    hung = GuestTimeoutError("execute at agent 10.0.0.7:1024: no answer.", stage="answer", next_step="Look.")
    with pytest.raises(GuestTimeoutError) as caught:
        probe(ScriptedAgent(cat=hung))
    assert (caught.value.reason, caught.value.stage) == ("agent-timeout", "answer")
    assert caught.value.object == "sandbox team-a/build-7"


def test_a_refusal_and_a_lost_connection_name_the_sandbox() -> None:
    lost = GuestUnreachableError("execute at agent 10.0.0.7:1024: closed.", sent=True)
    for error in (refusal("exhausted"), lost):
        with pytest.raises(type(error)) as caught:
            probe(ScriptedAgent(cat=error))
        assert caught.value.object == "sandbox team-a/build-7"
        assert caught.value.retryable == error.retryable
        assert (error.object, error.message) == (None, str(error))


def test_capabilities_have_the_names_of_the_kernel() -> None:
    assert capability_names(0) == []
    assert capability_names(1 << 13 | 1 << 21 | 1 << 40) == ["CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_CHECKPOINT_RESTORE"]
    assert len(capability_names((1 << 41) - 1)) == 41


#: As the agent was before it knew the operation.
OLDER = 'import operations; del operations.LOADED["privileges"]'


@pytest.mark.parametrize("patch", [None, OLDER], ids=["this agent", "an older agent"])
def test_the_real_agent_is_judged_as_the_kernel_sees_it(tmp_path: pathlib.Path, patch: str | None) -> None:
    prefix = without_privileges()
    shown = subprocess.run([*prefix, "cat", "/proc/self/status"], capture_output=True, check=True, text=True).stdout
    masks = {field: int(status_field(shown, field), 16) for field in MASKS}
    expected = {field for field, mask in masks.items() if mask}
    # With cat, and where PATH holds none that can be executed, with the agent's Python.
    (tmp_path / "cat").write_text("", encoding="utf-8")
    for env in ({}, {"PATH": str(tmp_path)}):
        with running_agent(workspace=tmp_path, prefix=prefix, env=env, patch=patch) as agent:
            assert excess_of(agent.client) == expected


def test_the_agent_answers_for_itself(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent, agent.connect() as wire:
        text = wire.request("privileges").json()["status"]["text"]
        assert status_field(text, "NoNewPrivs") == agent.status("NoNewPrivs")
        assert status_field(text, "Name") == agent.status("Name")
        with agent.connect() as other:
            assert other.request("privileges", {"of": 1}).json()["error"]["kind"] == "bad-request"


def test_a_command_has_no_more_than_the_agent(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent:
        with agent.connect() as wire:
            own = wire.request("privileges").json()["status"]["text"]
        theirs = agent.client.execute(["cat", "/proc/self/status"], deadline=within(15)).stdout_text
        for field in MASKS:
            assert int(status_field(theirs, field), 16) & ~int(status_field(own, field), 16) == 0
        assert int(status_field(theirs, "NoNewPrivs")) >= int(status_field(own, "NoNewPrivs"))


@pytest.mark.parametrize("answer", [{}, {"status": None}, {"status": {}}, {"status": {"text": 1}}])
def test_an_answer_without_a_status_is_no_proof(answer: dict[str, t.Any]) -> None:
    with Server(answered(answer)) as server, pytest.raises(GuestProtocolError):
        probe(agent_at(server.port))


def excess_of(agent: Agent) -> set[str]:
    """The fields that the probe refuses for; none when it is satisfied."""
    try:
        privileges = probe(agent)
    except PrivilegeError as error:
        return set(error.excess)
    return set() if privileges.none else {"a probe that is satisfied with too much"}
