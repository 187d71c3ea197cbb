# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of an object are read the same way everywhere, also when they are absent, null or of another type."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import resources
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import WORKSPACE_LABEL

WHOLE: resources.Body = {
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"l": "1", WORKSPACE_LABEL: "true"},
        "annotations": {"k": "v", "sandbox.namzu.ai/workspace-id": "w"},
        "ownerReferences": [{"uid": "o"}],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"podTemplate": {"spec": {}}},
    "status": {"conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]},
}

#: Accessor to what it reads of the whole object, and of one that lacks the field.
ACCESSORS: list[tuple[t.Callable[[resources.Body], t.Any], t.Any, t.Any]] = [
    (resources.name, "a", ""),
    (resources.namespace, "n", ""),
    (resources.uid, "u", ""),
    (resources.resource_version, "7", ""),
    (resources.labels, {"l": "1", WORKSPACE_LABEL: "true"}, {}),
    (resources.all_annotations, {"k": "v", "sandbox.namzu.ai/workspace-id": "w"}, {}),
    (lambda body: resources.annotation(body, "k"), "v", None),
    (resources.owner_uids, ["o"], []),
    (resources.is_being_deleted, True, False),
    (lambda body: bool(resources.metadata(body)), True, False),
    (lambda body: bool(resources.spec(body)), True, False),
    (lambda body: bool(resources.status(body)), True, False),
    (resources.pod_template, {"spec": {}}, {}),
    (lambda body: resources.condition(body, "Ready"), {"type": "Ready", "status": "True"}, {}),
    (resources.workspace_id, "w", None),
]

EMPTY: list[resources.Body] = [
    {},
    {"metadata": None, "spec": None, "status": None},
    {"metadata": "text", "spec": 3, "status": []},
]

#: Objects whose fields are there, and of another type than they must be.
MISSHAPEN: list[resources.Body] = [
    {
        "metadata": {"labels": None, "annotations": [], "ownerReferences": "o"},
        "spec": {"podTemplate": 1},
        "status": {"conditions": {"type": "Ready"}},
    },
    {"metadata": {"ownerReferences": ["o"]}, "status": {"conditions": ["Ready", None]}},
]


@pytest.mark.parametrize(("accessor", "whole", "_lacking"), ACCESSORS)
def test_accessor_reads_its_field(accessor: t.Any, whole: t.Any, _lacking: t.Any) -> None:
    assert accessor(WHOLE) == whole


@pytest.mark.parametrize("body", [*EMPTY, *MISSHAPEN], ids=str)
@pytest.mark.parametrize(("accessor", "_whole", "lacking"), ACCESSORS)
def test_accessor_has_a_value_for_a_field_that_is_not_there(
    accessor: t.Any, _whole: t.Any, lacking: t.Any, body: resources.Body
) -> None:
    assert accessor(body) == lacking or (body in MISSHAPEN and lacking is False)
