# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that one task starts and later tasks follow, through the action plugin and through the module."""

from __future__ import annotations

import typing as t

import pytest

#: ``become`` to the user we are makes Ansible run the module instead of the core in its worker.
AS_MODULE = {"become": True, "become_method": "ansible.builtin.su", "vars": {"ansible_become_exe": "su"}}

SCRIPT = "echo first; until [ -e go ]; do sleep 0.1; done; echo second >&2; exit 3"


@pytest.fixture(params=["action", "module"])
def played(request: pytest.FixtureRequest, play, pool) -> t.Any:
    how = AS_MODULE if request.param == "module" else {}

    def run(name: str, may_fail: bool = False, **options: t.Any) -> dict[str, t.Any]:
        task = {"namzu.sandbox.sandbox_exec": {**pool.access, "name": "{{ held.sandbox.name }}", **options}}
        return {"name": name, "register": name, "ignore_errors": may_fail, **task, **how}

    attach = {"id": "{{ start.id }}"}
    return play(
        [
            {"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": pool.name, **pool.access}, "register": "held"},
            run("start", command=SCRIPT, detach=True),
            run("look", attach=attach, timeout=1),
            run("go", argv=["touch", "go"]),
            run("end", may_fail=True, attach={**attach, "offset": "{{ look.offset }}"}),
            run("endless", argv=["sleep", "1000"], detach=True),
            run("cancel", attach={"id": "{{ endless.id }}", "cancel": True}, timeout=30),
            run("unknown", may_fail=True, attach={"id": "nobody"}, timeout=30),
            {
                "name": "release",
                "namzu.sandbox.sandbox": {**pool.access, "name": "{{ held.sandbox.name }}", "state": "absent"},
            },
        ]
    )


def test_a_command_is_started_looked_at_and_followed_to_its_end(played):
    start, look, end = played["start"], played["look"], played["end"]
    assert (start["changed"], start["running"], start["offset"]) == (True, True, 0)
    assert (look["changed"], look["running"], look["stdout"], look["offset"]) == (False, True, "first\n", 6)
    assert (end["failed"], end["rc"], end["reason"], end["running"]) == (True, 3, "non-zero-rc", False)
    assert (end["stdout"], end["stderr"], end["offset"]) == ("", "second\n", 13)
    cancel, unknown = played["cancel"], played["unknown"]
    assert (cancel["changed"], cancel.get("failed", False), cancel["signal"]) == (True, False, 15)
    assert (unknown["failed"], unknown["reason"], unknown["id"]) == (True, "execution-lost", "nobody")
