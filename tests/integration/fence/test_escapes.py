# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a claimant's token cannot do, whatever the options of role ``claimant`` were, tried on the API server."""

from __future__ import annotations

import pytest

from .asking import Asking
from .escapes import ESCAPES, RIGHTS, Request
from .hostile import DISK, changed


@pytest.fixture(scope="module")
def places(fenced, kube) -> dict[str, str]:
    """What the paths of the requests are about."""
    pods = kube.items(f"/api/v1/namespaces/{fenced.namespace}/pods")
    members = kube.items(fenced.path("sandboxes"))
    member = next(one["metadata"]["name"] for one in members if one["metadata"].get("ownerReferences"))
    return {"ns": fenced.namespace, "pod": pods[0]["metadata"]["name"], "member": member}


def send(asking: Asking, request: Request, places: dict[str, str]):
    method, path, body = request
    return asking(method, path.format(**places), body)


@pytest.mark.parametrize("name", ESCAPES)
def test_no_claimant_can(claimants, places, name) -> None:
    for kind, (_access, asking) in claimants.items():
        answer = send(asking, ESCAPES[name], places)
        assert answer.by_rules or answer.by_fence, f"{kind}: {answer}"


@pytest.mark.parametrize("name", RIGHTS)
def test_only_whom_an_option_gave_the_right_can(claimants, places, name) -> None:
    request, may = RIGHTS[name]
    for kind, (_access, asking) in claimants.items():
        answer = send(asking, request, places)
        assert (answer.by_rules or answer.by_fence) == (kind not in may), f"{kind}: {answer}"


@pytest.mark.parametrize(
    "somebody",
    [
        {"impersonate_user": "namzu-admin"},
        {"impersonate_user": "system:serviceaccount:kube-system:generic-garbage-collector"},
        {"impersonate_user": "a", "impersonate_groups": ["system:masters"]},
    ],
    ids=["an operator", "a controller", "a group"],
)
def test_no_claimant_can_speak_for(claimants, places, somebody) -> None:
    for kind, (access, _asking) in claimants.items():
        disguised = Asking(**access, **somebody)
        answer = disguised("GET", f"/api/v1/namespaces/{places['ns']}/secrets")
        disguised.close()
        assert answer.status == 403, f"{kind}: {answer}"
        assert "cannot impersonate" in answer.message


def test_disk_whose_name_somebody_else_hits_upon_stays_with_its_sandbox(fenced, kube) -> None:
    """A disk is called ``<entry>-<sandbox>``, so two Sandboxes can mean one disk; the controller looks at its owner."""
    path = f"/api/v1/namespaces/{fenced.namespace}/persistentvolumeclaims/disk-existing-desk"
    before = kube.until(path, lambda body: body and body["metadata"].get("ownerReferences"))
    robber = changed(
        fenced.sandbox, {"metadata/name": "desk", "spec/volumeClaimTemplates/0/metadata/name": "disk-existing"}
    )
    assert robber["spec"]["volumeClaimTemplates"][0]["spec"] == DISK["spec"]
    kube.request("POST", fenced.path("sandboxes"), robber)
    try:
        words = kube.until(fenced.path("sandboxes", "desk"), refusal)
        assert "is owned by" in words
        assert kube.get(path)["metadata"]["ownerReferences"] == before
    finally:
        kube.delete(fenced.path("sandboxes", "desk"))


def refusal(sandbox) -> str:
    """What the controller says about a Sandbox that it cannot bring about."""
    conditions = ((sandbox or {}).get("status") or {}).get("conditions") or []
    return " ".join(one.get("message", "") for one in conditions if one.get("reason") == "ReconcilerError")
