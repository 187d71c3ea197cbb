# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of the callback about leases, line by line."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.report import LeaseReport

END = "2026-11-29T12:00:00Z"


def lease(name: str) -> dict[str, t.Any]:
    return {"kind": "SandboxClaim", "namespace": "agents", "name": name, "uid": f"uid-of-{name}", "expires_at": END}


def add(report: LeaseReport, event: str, name: str, **more: t.Any) -> str | None:
    return report.add({"event": event, "lease": lease(name), "message": None, **more})


def test_nothing_held_is_not_reported() -> None:
    report = LeaseReport()
    assert (report.summary(), report.problems(), report.interrupted()) == ([], False, None)


def test_failed_renewal_names_cause_object_and_end() -> None:
    line = add(LeaseReport(), "failed", "a", message="PATCH SandboxClaim agents/a: no answer.", failures=1)
    assert line == (
        "PATCH SandboxClaim agents/a: no answer. The lease of SandboxClaim agents/a (expires at "
        "2026-11-29T12:00:00Z) is tried again."
    )


def test_recovery_counts_the_failures() -> None:
    assert add(LeaseReport(), "recovered", "a", failures=1) == (
        "SandboxClaim agents/a is renewed again, after 1 failed attempt"
    )
    assert "after 3 failed attempts" in str(add(LeaseReport(), "recovered", "a", failures=3))


def test_loss_is_a_line_and_a_part_of_the_summary() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    assert add(report, "lost", "a", message="It was deleted.") == "LOST SandboxClaim agents/a. It was deleted."
    assert report.problems()
    assert report.summary() == ["1 sandbox held, 0 released at the end", "lost: SandboxClaim agents/a"]


def test_sandbox_that_the_play_released_is_counted_as_that() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    assert add(report, "forgotten", "a") is None
    assert not report.problems()
    assert report.summary() == ["1 sandbox held, 1 released by the play"]
    add(report, "held", "b", marked=True)
    add(report, "released", "b")
    assert report.summary() == ["2 sandboxes held, 1 released by the play and 1 released at the end"]


def test_release_after_a_refusal_counts_as_one() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    add(report, "unreleased", "a", message="403")
    add(report, "released", "a")
    assert (report.problems(), report.summary()) == (False, ["1 sandbox held, 1 released at the end"])


def test_refused_release_is_named_with_its_cause() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    add(report, "unreleased", "a", message="DELETE: the API server answered 403.")
    assert report.problems()
    assert report.summary()[1] == (
        f"NOT released: SandboxClaim agents/a (expires at {END}): DELETE: the API server answered 403."
    )


def test_release_without_an_answer_is_named() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    assert report.summary()[1].startswith("NOT released: SandboxClaim agents/a")
    assert "no response in time" in report.summary()[1]


def test_summary_has_the_renewals_and_the_last_times() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=False)
    later = {**lease("a"), "expires_at": "2026-11-29T13:00:00Z"}
    assert report.add({"event": "ending", "renewals": 7, "leases": [later]}) is None
    assert report.summary() == [
        "1 sandbox held, 7 renewals, 0 released at the end",
        "not released, as release_on_end is off: SandboxClaim agents/a (expires at 2026-11-29T13:00:00Z)",
    ]


def test_keeper_that_ends_early_leaves_a_list_of_what_it_held() -> None:
    report = LeaseReport()
    add(report, "held", "b", marked=True)
    add(report, "held", "a", marked=False)
    assert str(report.interrupted()).endswith(
        "SandboxClaim agents/a (expires at 2026-11-29T12:00:00Z), SandboxClaim agents/b (expires at "
        "2026-11-29T12:00:00Z)."
    )


def workspace(name: str, end: str | None) -> dict[str, t.Any]:
    named = {"kind": "Workspace", "name": f"workspace-{name}-0a1b", "workspace_id": name, "expires_at": end}
    return {**lease(name), **named}


def test_workspaces_are_counted_and_named_as_what_they_are() -> None:
    report = LeaseReport()
    add(report, "held", "a", marked=True)
    add(report, "released", "a")
    for name, end, marked in (("asleep", END, True), ("kept", END, False), ("endless", None, False)):
        report.add({"event": "held", "lease": workspace(name, end), "marked": marked})
    report.add({"event": "released", "lease": workspace("asleep", END)})
    counts, stays = report.summary()
    assert counts == "1 sandbox and 3 workspaces held, 1 released at the end and 1 suspended at the end"
    assert stays == (
        "not released, as release_on_end is off: Workspace agents/endless (it runs on), Workspace agents/kept (its "
        "pod stops at 2026-11-29T12:00:00Z)"
    )


def test_workspace_that_is_opened_again_is_neither_lost_nor_forgotten() -> None:
    report = LeaseReport()
    held = {"event": "held", "lease": workspace("a", END), "marked": True}
    report.add(held)
    report.add({"event": "lost", "lease": workspace("a", END), "message": "It is over."})
    report.add({"event": "forgotten", "lease": workspace("a", END)})
    report.add({**held, "marked": False})
    assert not report.problems()
    assert report.summary()[1].startswith("not released, as release_on_end is off: Workspace agents/a")


def test_workspace_that_was_suspended_without_a_flush_is_a_problem() -> None:
    report = LeaseReport()
    report.add({"event": "held", "lease": workspace("a", END), "marked": True})
    report.add({"event": "released", "lease": workspace("a", END), "message": "the guest did not flush."})
    assert report.problems()
    assert report.summary()[1:] == ["suspended without a flush: the guest did not flush."]
