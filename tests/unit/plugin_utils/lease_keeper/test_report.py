# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the callback says about leases, line by line."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.report import Story

END = "2026-11-29T12:00:00Z"


def lease(name: str) -> dict[str, t.Any]:
    return {"kind": "SandboxClaim", "namespace": "agents", "name": name, "uid": f"uid-of-{name}", "expires_at": END}


def heard(story: Story, event: str, name: str, **more: t.Any) -> str | None:
    return story.heard({"event": event, "lease": lease(name), "message": None, **more})


def test_nothing_held_is_nothing_said() -> None:
    story = Story()
    assert (story.summary(), story.problems(), story.broken_off()) == ([], False, None)


def test_failed_renewal_names_cause_object_and_end() -> None:
    line = heard(Story(), "failed", "a", message="PATCH SandboxClaim agents/a: no answer.", failures=1)
    assert line == (
        "PATCH SandboxClaim agents/a: no answer. The lease of SandboxClaim agents/a (ends by itself at "
        "2026-11-29T12:00:00Z); it is tried again."
    )


def test_recovery_counts_the_failures() -> None:
    assert heard(Story(), "recovered", "a", failures=1) == (
        "SandboxClaim agents/a is renewed again, after 1 failed attempt"
    )
    assert "after 3 failed attempts" in str(heard(Story(), "recovered", "a", failures=3))


def test_loss_is_a_line_and_a_part_of_the_summary() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    assert heard(story, "lost", "a", message="It was deleted.") == "LOST SandboxClaim agents/a. It was deleted."
    assert story.problems()
    assert story.summary() == ["1 sandbox held, 0 released at the end", "lost: SandboxClaim agents/a"]


def test_what_the_play_released_itself_is_no_matter() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    assert heard(story, "forgotten", "a") is None
    assert not story.problems()
    assert story.summary() == ["1 sandbox held, 0 released at the end"]


def test_release_after_a_refusal_counts_as_one() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    heard(story, "unreleased", "a", message="403")
    heard(story, "released", "a")
    assert (story.problems(), story.summary()) == (False, ["1 sandbox held, 1 released at the end"])


def test_refused_release_is_named_with_its_cause() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    heard(story, "unreleased", "a", message="DELETE: the API server answered 403.")
    assert story.problems()
    assert story.summary()[1] == (
        f"NOT released: SandboxClaim agents/a (ends by itself at {END}): DELETE: the API server answered 403."
    )


def test_release_without_an_answer_is_named() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    assert story.summary()[1].startswith("NOT released: SandboxClaim agents/a")
    assert "no answer in time" in story.summary()[1]


def test_end_tells_the_renewals_and_the_times_as_they_became() -> None:
    story = Story()
    heard(story, "held", "a", marked=False)
    later = {**lease("a"), "expires_at": "2026-11-29T13:00:00Z"}
    assert story.heard({"event": "ending", "renewals": 7, "leases": [later]}) is None
    assert story.summary() == [
        "1 sandbox held, 7 renewals, 0 released at the end",
        "not released, as nobody asked for it: SandboxClaim agents/a (ends by itself at 2026-11-29T13:00:00Z)",
    ]


def test_keeper_that_breaks_off_leaves_a_list_of_what_it_held() -> None:
    story = Story()
    heard(story, "held", "b", marked=True)
    heard(story, "held", "a", marked=False)
    assert str(story.broken_off()).endswith(
        "SandboxClaim agents/a (ends by itself at 2026-11-29T12:00:00Z), SandboxClaim agents/b (ends by itself at "
        "2026-11-29T12:00:00Z)."
    )


def workspace(name: str, end: str | None) -> dict[str, t.Any]:
    named = {"kind": "Workspace", "name": f"workspace-{name}-0a1b", "workspace_id": name, "expires_at": end}
    return {**lease(name), **named}


def test_workspaces_are_counted_and_named_as_what_they_are() -> None:
    story = Story()
    heard(story, "held", "a", marked=True)
    heard(story, "released", "a")
    for name, end, marked in (("asleep", END, True), ("kept", END, False), ("endless", None, False)):
        story.heard({"event": "held", "lease": workspace(name, end), "marked": marked})
    story.heard({"event": "released", "lease": workspace("asleep", END)})
    counts, stays = story.summary()
    assert counts == "1 sandbox and 3 workspaces held, 1 released and 1 suspended at the end"
    assert stays == (
        "not released, as nobody asked for it: Workspace agents/endless (it runs on), Workspace agents/kept (its "
        "pod stops by itself at 2026-11-29T12:00:00Z)"
    )


def test_workspace_that_is_opened_again_is_neither_lost_nor_forgotten() -> None:
    story = Story()
    held = {"event": "held", "lease": workspace("a", END), "marked": True}
    story.heard(held)
    story.heard({"event": "lost", "lease": workspace("a", END), "message": "It is over."})
    story.heard({"event": "forgotten", "lease": workspace("a", END)})
    story.heard({**held, "marked": False})
    assert not story.problems()
    assert story.summary()[1].startswith("not released, as nobody asked for it: Workspace agents/a")


def test_workspace_that_was_suspended_without_a_flush_is_a_problem() -> None:
    story = Story()
    story.heard({"event": "held", "lease": workspace("a", END), "marked": True})
    story.heard({"event": "released", "lease": workspace("a", END), "message": "the guest did not flush."})
    assert story.problems()
    assert story.summary()[1:] == ["suspended without a flush: the guest did not flush."]
