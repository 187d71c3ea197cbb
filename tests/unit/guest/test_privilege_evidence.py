# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the privilege probe accepts as evidence: fields that are shown, fields that are asked for, and a program."""

from __future__ import annotations

import errno
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError, PrivilegeError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.privileges import Privileges
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    running_agent,
    status_field,
    within,
    without_privileges,
)
from tests.unit.guest.agent.test_client import Server, agent_at, answer
from tests.unit.guest.test_privileges import MASKS, probe, status

GVISOR = {"release": "4.4.0", "version": "#1 SMP Sun Jan 10 15:06:54 PST 2016"}
LINUX = {"release": "6.18.44", "version": "#1 SMP PREEMPT_DYNAMIC"}
#: What gVisor shows: neither the ambient set nor no-new-privileges.
HIDDEN = {"CapAmb": None, "NoNewPrivs": None}
#: What prctl(2) answers in gVisor.
ASKED = {"no_new_privs": 1, "ambient": [-errno.EINVAL] * 64}
#: What prctl(2) answers on Linux with an empty ambient set.
EMPTY = [0] * 41 + [-errno.EINVAL] * 23
RAN = {"argv": ["true"], "exit": 0, "signal": None}


def evidence(*, shown: dict[str, str | None] | None = None, **answers: t.Any) -> dict[str, t.Any]:
    return {"status": {"text": status(**(shown or {}))}, "program": RAN, **answers}


def probed(**changes: t.Any) -> Privileges:
    with Server(answer(evidence(**changes))) as server:
        return probe(agent_at(server.port))


def refused(**changes: t.Any) -> PrivilegeError:
    with pytest.raises(PrivilegeError) as caught:
        probed(**changes)
    assert (caught.value.reason, caught.value.object) == ("privileged", "sandbox team-a/build-7")
    return caught.value


def test_fields_that_the_kernel_does_not_show_are_asked_for() -> None:
    found = probed(shown=HIDDEN, prctl=ASKED, kernel=GVISOR, uid_map="0 0 4294967295\n")
    assert found.none
    assert (found.ambient, found.no_new_privs, found.kernel, found.user_namespace) == (0, True, "gvisor", False)


@pytest.mark.parametrize("hidden", ["CapAmb", "NoNewPrivs"])
def test_one_hidden_field_is_asked_for_alone(hidden: str) -> None:
    prctl = {"CapAmb": {"ambient": EMPTY}, "NoNewPrivs": {"no_new_privs": 1}}[hidden]
    assert probed(shown={hidden: None}, prctl=prctl).none


@pytest.mark.parametrize(
    "prctl",
    [
        None,
        "",
        [],
        {},
        {"no_new_privs": 1},
        {"ambient": ASKED["ambient"]},
        *({**ASKED, "no_new_privs": value} for value in (None, True, 1.0, 2, "1", -errno.EINVAL)),
        *({**ASKED, "ambient": value} for value in (None, 0, [], [0], "0" * 64, [0] * 65)),
        *({**ASKED, "ambient": [*EMPTY[:-1], value]} for value in (None, False, 2, "0", -errno.EPERM, -errno.ENOSYS)),
    ],
)
def test_a_field_that_is_neither_shown_nor_reported_by_prctl_is_refused(prctl: t.Any) -> None:
    assert refused(shown=HIDDEN, prctl=prctl, kernel=GVISOR).excess == {}


def test_what_prctl_reports_is_judged() -> None:
    ambient = [1 if bit == 13 else result for bit, result in enumerate(EMPTY)]
    found = refused(shown=HIDDEN, prctl={"no_new_privs": 0, "ambient": ambient})
    assert found.excess == {"CapAmb": "0000000000002000 (CAP_NET_RAW)", "NoNewPrivs": "0"}


@pytest.mark.parametrize("mask", ["CapInh", "CapPrm", "CapEff", "CapBnd"])
def test_a_mask_that_prctl_cannot_be_asked_for_must_be_shown(mask: str) -> None:
    forged = {**ASKED, mask: 0, "effective": 0, "bounding": 0}
    assert refused(shown={**HIDDEN, mask: None}, prctl=forged, kernel=GVISOR).excess == {}


class TestAForgedAnswer:
    """An answer that contradicts itself is judged by its worse half."""

    def test_prctl_cannot_hide_what_the_status_shows(self) -> None:
        shown = {"CapAmb": "0000000000002000", "NoNewPrivs": "0"}
        assert set(refused(shown=shown, prctl=ASKED, kernel=GVISOR).excess) == {"CapAmb", "NoNewPrivs"}

    def test_the_status_cannot_hide_what_prctl_reports(self) -> None:
        prctl = {"no_new_privs": 0, "ambient": [1, *EMPTY[1:]]}
        assert set(refused(prctl=prctl).excess) == {"CapAmb", "NoNewPrivs"}

    def test_a_kernel_that_calls_itself_gvisor_is_judged_like_any_other(self) -> None:
        assert set(refused(shown={**HIDDEN, "CapEff": "1"}, prctl=ASKED, kernel=GVISOR).excess) == {"CapEff"}

    def test_the_kernel_the_user_namespace_and_seccomp_do_not_change_the_judgement(self) -> None:
        for kernel in (GVISOR, LINUX, None):
            assert probed(kernel=kernel, uid_map="0 100000 65536\n").none
            shown = {"CapBnd": "1", "Seccomp": "2"}
            assert not set(refused(shown=shown, kernel=kernel, uid_map="0 1 1\n").excess) ^ {"CapBnd"}


@pytest.mark.parametrize(
    "program",
    [
        None,
        "",
        {},
        {"exit": None, "signal": 9},
        {"exit": 1, "signal": None},
        {"exit": False, "signal": None},
        {"exit": "0", "signal": None},
    ],
)
def test_a_program_that_did_not_exit_with_0_is_refused(program: t.Any) -> None:
    assert refused(program=program).excess == {}


@pytest.mark.parametrize(
    ("kernel", "shown", "expected"),
    [
        (LINUX, {}, "linux"),
        (LINUX, {"NoNewPrivs": None}, "unknown"),
        (GVISOR, HIDDEN, "gvisor"),
        ({"release": "4.19.0-gvisor", "version": "#1 SMP"}, {}, "gvisor"),
        ({"release": "plan9", "version": "4"}, {}, "unknown"),
        ({"release": 6, "version": "4"}, {}, "unknown"),
        ("linux", {}, "unknown"),
        (None, {}, "unknown"),
    ],
)
def test_the_kernel_is_named_by_its_uname(kernel: t.Any, shown: dict[str, str | None], expected: str) -> None:
    assert probed(shown=shown, prctl=ASKED, kernel=kernel).kernel == expected


@pytest.mark.parametrize(
    ("text", "uid_map", "expected"),
    [
        ("         0          0 4294967295\n", ((0, 0, 4294967295),), False),
        ("0 65536 65536\n", ((0, 65536, 65536),), True),
        ("0 1 2\n5 6 7\n", ((0, 1, 2), (5, 6, 7)), True),
        ("", (), None),
        ("0 0\n", (), None),
        ("0 0 -1\n", (), None),
        (None, (), None),
        (5, (), None),
    ],
)
def test_the_user_namespace_is_reported(text: t.Any, uid_map: t.Any, expected: bool | None) -> None:
    found = probed(uid_map=text)
    assert (found.uid_map, found.user_namespace) == (uid_map, expected)


class TestTheRealAgent:
    """What it reports, and what it cannot start."""

    @staticmethod
    def kind_of(**options: t.Any) -> str:
        with running_agent(**options) as agent, pytest.raises(GuestRefusedError) as caught:
            probe(agent.client)
        assert caught.value.object == "sandbox team-a/build-7"
        return caught.value.kind

    def test_reports_the_kernel_the_user_namespace_and_a_program(self, tmp_path: pathlib.Path) -> None:
        with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent, agent.connect() as wire:
            found = wire.request("privileges").json()
        assert found["program"] == {"argv": ["true"], "exit": 0, "signal": None}
        assert found["prctl"]["no_new_privs"] == 1
        assert len(found["prctl"]["ambient"]) == 64
        assert found["uid_map"] == pathlib.Path("/proc/self/uid_map").read_text(encoding="utf-8")

    def test_without_ctypes_prctl_reports_nothing(self, tmp_path: pathlib.Path) -> None:
        patch = "import sys; sys.modules['ctypes'] = None"
        with running_agent(workspace=tmp_path, patch=patch) as agent, agent.connect() as wire:
            assert wire.request("privileges").json()["prctl"] is None

    def test_that_cannot_fork_is_refused(self, tmp_path: pathlib.Path) -> None:
        patch = (
            "import errno, subprocess\ndef fail(*_, **__): raise OSError(errno.EAGAIN, 'no')\nsubprocess.Popen = fail"
        )
        assert self.kind_of(workspace=tmp_path, patch=patch) == "exhausted"

    def test_of_an_older_version_that_cannot_fork_is_refused(self, tmp_path: pathlib.Path) -> None:
        patch = (
            "import errno, subprocess\ndef fail(*_, **__): raise OSError(errno.EAGAIN, 'no')\nsubprocess.Popen = fail\n"
            + STATUS_ALONE
        )
        assert self.kind_of(workspace=tmp_path, patch=patch) == "exhausted"

    def test_of_an_older_version_is_asked_for_a_program_as_well(self, tmp_path: pathlib.Path) -> None:
        with running_agent(workspace=tmp_path, prefix=without_privileges(), patch=STATUS_ALONE) as agent:
            assert outcome(agent.client) == expected_here()
        (tmp_path / "true").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        (tmp_path / "true").chmod(0o755)
        env = {"PATH": str(tmp_path)}
        with running_agent(workspace=tmp_path, env=env, patch=STATUS_ALONE) as agent:
            assert outcome(agent.client) == set()

    def test_in_an_image_without_the_program_starts_its_python(self, tmp_path: pathlib.Path) -> None:
        prefix = without_privileges()
        with running_agent(workspace=tmp_path, prefix=prefix, env={"PATH": str(tmp_path)}) as agent:
            with agent.connect() as wire:
                program = wire.request("privileges").json()["program"]
            assert (program["exit"], program["argv"][1:]) == (0, ["-I", "-S", "-c", ""])
            assert outcome(agent.client) == expected_here()

    @pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", "sleep 1000"])
    def test_in_an_image_whose_programs_do_not_work_is_refused(self, tmp_path: pathlib.Path, script: str) -> None:
        (tmp_path / "true").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / "true").chmod(0o755)
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        patch = "import privileges; privileges.PROGRAM_SECONDS = 0.5"
        with running_agent(workspace=tmp_path, env=env, patch=patch) as agent:
            assert outcome(agent.client) == set()
            # Nothing of it is left.
            assert agent.client.execute(["/bin/true"], deadline=within()).rc == 0
            assert all(state == "Z" for state in agent.children().values())


#: As the agent was before it started a program and asked prctl(2).
STATUS_ALONE = """
import operations, privileges, wire
def status_alone(context, peer, body):
    peer.send(wire.encode_json({"status": {"text": privileges.read_text(privileges.STATUS)}}))
operations.LOADED["privileges"] = status_alone
"""


def outcome(agent: t.Any) -> set[str] | None:
    """The fields that the probe refuses for, none of them when the evidence is incomplete; None when it passes."""
    try:
        probe(agent)
    except PrivilegeError as error:
        return set(error.excess)
    return None


def expected_here() -> set[str] | None:
    """The outcome for a process that was started without privileges on this machine."""
    shown = subprocess.run(
        [*without_privileges(), "cat", "/proc/self/status"], capture_output=True, check=True, text=True
    ).stdout
    return {field for field in MASKS if int(status_field(shown, field), 16)} or None
