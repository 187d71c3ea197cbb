# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that follow from ids, hashes of templates, and identities of guests."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import Template
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.pod import BoundPod
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.identity import identity_of, restart_between
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.manifest import template_hash
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import workspace_ref

IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=253)


@settings(deadline=None, max_examples=200)
@given(IDS)
def test_name_of_every_id_can_name_a_sandbox_its_service_and_its_host(workspace_id: str) -> None:
    name = workspace_ref("agents", workspace_id).name
    assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)


@settings(deadline=None, max_examples=200)
@given(IDS, IDS)
def test_ids_that_differ_have_names_that_differ(one: str, other: str) -> None:
    same = workspace_ref("agents", one) == workspace_ref("agents", other)
    assert same == (one == other)


@pytest.mark.parametrize("pair", [("a/b", "a-b"), ("A", "a"), ("x" * 60, "x" * 61), ("ä", "ö")])
def test_ids_that_look_alike_are_kept_apart(pair: tuple[str, str]) -> None:
    assert workspace_ref("agents", pair[0]) != workspace_ref("agents", pair[1])


def test_name_of_an_id_stays_what_it_was_in_every_version() -> None:
    """A disk is found by it: another rule for names would lose every workspace that there is."""
    assert workspace_ref("agents", "customer-4711/main").name == "workspace-customer-4711-main-6bb68b35795e"


@pytest.mark.parametrize("workspace_id", ["", " ", "x" * 254, "a\nb", "a\x00", "\t"])
def test_what_is_no_id_is_refused(workspace_id: str) -> None:
    with pytest.raises(InputError, match="workspace_id"):
        workspace_ref("agents", workspace_id)


def template(**spec: object) -> Template:
    return Template("python", {"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {"containers": [], **spec}}, None)


def test_hash_of_a_template_does_not_depend_on_the_order_of_fields() -> None:
    turned = Template("python", {"spec": {"containers": []}, "metadata": {"labels": {"a": "2", "b": "1"}}}, [])
    assert template_hash(turned) == template_hash(template())


@pytest.mark.parametrize("spec", [{"nodeSelector": {"a": "b"}}, {"containers": [{"name": "agent"}]}])
def test_hash_of_an_edited_template_is_another_one(spec: dict[str, object]) -> None:
    assert template_hash(template(**spec)) != template_hash(template())


def pod(uid: str, restarts: int = 0) -> BoundPod:
    body = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [{"restartCount": restarts}]}}
    return BoundPod("p", uid, None, {}, body)


def test_guest_is_another_one_with_another_pod_or_a_restarted_container() -> None:
    first = identity_of("w", pod("one"))
    assert restart_between(first, identity_of("w", pod("one"))) is None
    replaced = restart_between(first, identity_of("w", pod("two")))
    restarted = restart_between(first, identity_of("w", pod("one", restarts=1)))
    assert replaced is not None
    assert restarted is not None
    assert (replaced.reason, restarted.reason) == ("pod-replaced", "container-restarted")


def test_identity_does_not_give_away_the_pods_uid() -> None:
    uid = "0f0e0d0c-1111-4222-8333-444455556666"
    assert uid not in str(identity_of("w", pod(uid)).as_dict())
