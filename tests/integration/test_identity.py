# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sandbox is meant: a name is used once, and a name that another object has got is refused, on a real cluster."""

from __future__ import annotations

import time
import typing as t

import pytest

from .workspace_ground import ADDRESS_OPTION, TEMPLATE

if t.TYPE_CHECKING:
    from .workspace_ground import Ground

Body = dict[str, t.Any]

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"


def task(name: str, verb: str, /, **options: t.Any) -> Body:
    """A task whose result later ones find by its name; one that fails does not end the play."""
    return {"name": name, f"namzu.sandbox.{verb}": options, "ignore_errors": True, "register": name}


def uid_of(kube: t.Any, path: str) -> str | None:
    body = kube.get(path)
    return None if body is None else str(body["metadata"]["uid"])


@pytest.mark.parametrize("order", ["claim-then-direct", "direct-then-claim"])
def test_name_of_the_other_kind_is_a_conflict(play: t.Any, pool: t.Any, kube: t.Any, order: str) -> None:
    warm, direct = {"warm_pool": pool.name}, {"template": pool.template}
    first, second = (warm, direct) if order == "claim-then-direct" else (direct, warm)
    name = f"once-{order}-1"
    played = play(
        [
            task("first", "sandbox", **pool.access, name=name, **first),
            task("second", "sandbox", **pool.access, name=name, **second),
            task("many", "sandbox", **pool.access, name=f"once-{order}", count=2, on_failure="keep", **second),
            task("release", "sandbox", state="absent", sandbox="{{ first.sandbox }}", wait=True),
            task("after", "sandbox", **pool.access, name=name, **second),
            task("tidy", "sandbox", state="absent", sandbox="{{ after.sandbox }}", wait=True),
            task("tidy_many", "sandbox", state="absent", sandboxes="{{ many.sandboxes }}", wait=True),
        ]
    )
    assert played["first"]["changed"]
    assert (played["second"]["failed"], played["second"]["reason"]) == (True, "conflict")
    assert [(one["name"], one["reason"]) for one in played["many"]["failures"]] == [(name, "conflict")]
    assert [one["name"] for one in played["many"]["sandboxes"]] == [f"once-{order}-0"]
    assert played["release"]["released"] == [name]
    assert played["after"]["changed"]
    for path in (CLAIMS, SANDBOXES):
        assert kube.get(f"{path.format(pool.namespace)}/{name}") is None


def test_sandbox_that_expired_is_not_taken_for_the_next_of_its_name(play: t.Any, pool: t.Any, kube: t.Any) -> None:
    first = play([task("acquire", "sandbox", **pool.access, warm_pool=pool.name, name="reused", ttl="10s")])
    old = first["acquire"]["sandbox"]
    path = f"{CLAIMS.format(pool.namespace)}/reused"
    until = time.monotonic() + 60.0
    while uid_of(kube, path) is not None and time.monotonic() < until:
        time.sleep(0.5)
    agent = pool.access["agent"]
    played = play(
        [
            task("next", "sandbox", **pool.access, warm_pool=pool.name, name="reused"),
            task("exec", "sandbox_exec", agent=agent, sandbox=old, argv=["true"]),
            task("sessions", "sandbox_session_info", agent=agent, sandbox=old),
            task("lease", "sandbox_lease", sandbox=old, remaining="2h"),
            task("egress", "sandbox_egress", sandbox=old, state="absent"),
            task("release", "sandbox", state="absent", sandbox=old),
        ]
    )
    assert played["next"]["sandbox"]["uid"] != old["uid"]
    assert played["next"]["sandbox"]["host_vars"]["ansible_sandbox_uid"] == played["next"]["sandbox"]["uid"]
    for name in ("exec", "sessions", "lease", "egress", "release"):
        assert (played[name]["failed"], played[name]["reason"]) == (True, "replaced"), name
    assert uid_of(kube, path) == played["next"]["sandbox"]["uid"]
    assert play([task("tidy", "sandbox", state="absent", sandbox=played["next"]["sandbox"])])["tidy"]["changed"]


def test_workspace_that_was_deleted_is_not_taken_for_the_next_of_its_id(play: t.Any, ground: Ground) -> None:
    options = {**ground.access, "namespace": ground.namespace, "workspace_id": "reused"}
    opened = {**options, **ADDRESS_OPTION, "template": TEMPLATE}
    played = play(
        [
            task("first", "workspace", **opened),
            task("delete", "workspace", **options, state="absent", delete_disk=True, wait=True),
            task("next", "workspace", **opened),
        ]
    )
    old = played["first"]["workspace"]
    refused = play(
        [
            task("exec", "sandbox_exec", **ground.access, **ADDRESS_OPTION, sandbox=old, argv=["true"]),
            task("suspend", "workspace", **options, **ADDRESS_OPTION, state="suspended", uid=old["uid"]),
            task("delete", "workspace", **options, state="absent", delete_disk=True, uid=old["uid"]),
        ]
    )
    for name in ("exec", "suspend", "delete"):
        assert (refused[name]["failed"], refused[name]["reason"]) == (True, "replaced"), name
    assert uid_of(ground.kube, ground.sandbox("reused")) == played["next"]["workspace"]["uid"]
    ground.delete("reused")
