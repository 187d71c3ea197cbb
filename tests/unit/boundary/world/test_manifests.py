# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects out of files, label selectors as kubectl takes them, and the pods that a template will have."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.selectors import parse_selector
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.manifests import read_manifests
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import TemplateError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.check.planned import (
    managed_policy,
    planned_pod_of,
    stands,
)

POLICY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"}, "spec": {}}


def test_folders_files_and_objects_are_read_and_get_the_namespace(tmp_path: pathlib.Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "two.yml").write_text(
        "---\n" + json.dumps(POLICY) + "\n---\n" + json.dumps({**POLICY, "metadata": {"name": "b", "namespace": "x"}})
    )
    (tmp_path / "one.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}))
    (tmp_path / "README.md").write_text("no manifest")
    found = read_manifests([str(tmp_path), {**POLICY, "metadata": {"name": "c"}}], "agents")
    assert [(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) for one in found] == [
        ("NetworkPolicy", "a", "agents"),
        ("NetworkPolicy", "b", "x"),
        ("Namespace", "n", None),
        ("NetworkPolicy", "c", "agents"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yml", "a: [", "not valid YAML"),
        ("a.yml", "- 1", "not a Kubernetes object"),
        ("a.json", "{", "not valid JSON"),
        ("a.yml", "kind: Pod", "not a Kubernetes object"),
        ("a.yml", None, "no file or folder"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_file(
    tmp_path: pathlib.Path, name: str, text: str | None, words: str
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_manifests([str(file)], "agents")
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("", {}, None),
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b, c!=d", {"a": "b"}, {"a": "b", "c": "d"}),
        ("e in (f, g)", {"e": "g"}, {"e": "h"}),
        ("e notin (f,g),a", {"a": ""}, {"a": "", "e": "f"}),
        ("!h", {}, {"h": ""}),
        ("sandbox.namzu.ai/template=python", {"sandbox.namzu.ai/template": "python"}, {}),
    ],
)
def test_selectors_are_read_as_kubectl_reads_them(text: str, matching: t.Any, other: t.Any) -> None:
    assert parse_selector(text).matches(matching)
    assert other is None or not parse_selector(text).matches(other)


@pytest.mark.parametrize("text", ["a b", "=b", "a in f", "!a=b", "a=b c", ",", "a=b,,c"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(QuestionError, match="not a label selector"):
        parse_selector(text)


def template(**spec: t.Any) -> dict[str, t.Any]:
    pod = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "agent"}]}}
    return {"metadata": {"name": "python", "namespace": "agents"}, "spec": {"podTemplate": pod, **spec}}


def test_a_pod_to_be_has_the_labels_by_which_it_will_be_selected() -> None:
    measured = {**template(), "metadata": {"name": "tp1795993781", "namespace": "agents"}}
    pooled = planned_pod_of(measured, {"more": "b"}, pooled=True)
    # What a controller of v0.5.6 has put on the pods of a template of that name.
    assert pooled.labels == {"team": "a", "more": "b", "agents.x-k8s.io/sandbox-template-ref-hash": "a7dc8694"}
    direct = planned_pod_of(template(), {}, pooled=False)
    assert direct.labels == {"team": "a", "sandbox.namzu.ai/template": "python"}


def test_a_managed_template_brings_a_policy_and_an_unmanaged_one_none() -> None:
    assert managed_policy(template(networkPolicyManagement="Unmanaged")) is None
    for spec in ({}, {"networkPolicyManagement": "Managed"}):
        body = managed_policy(template(**spec))
        assert body is not None
        assert body["metadata"]["name"] == "python-network-policy"
        assert not stands(World.read([]), body)
        assert stands(World.read([body]), body)
    own = managed_policy(template(networkPolicy={"egress": [{}]}))
    assert own is not None
    assert own["spec"]["egress"] == [{}]
    assert "ingress" not in own["spec"]


def test_a_template_without_a_pod_is_refused() -> None:
    with pytest.raises(TemplateError, match="podTemplate"):
        planned_pod_of({"metadata": {"name": "a"}, "spec": {}}, {}, pooled=True)
