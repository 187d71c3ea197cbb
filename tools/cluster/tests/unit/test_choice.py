# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice between the local cluster and an existing one."""

from __future__ import annotations

import pytest

from tools.cluster.choice import is_existing
from tools.cluster.failures import CannotRun
from tools.cluster.layout import Layout

OURS, OTHER = str(Layout(2).kubeconfig), "/home/someone/.kube/config"


@pytest.mark.parametrize(
    ("environment", "existing"),
    [
        ({}, False),
        ({"KUBECONFIG": ""}, False),
        ({"KUBECONFIG": OTHER}, True),
        ({"KUBECONFIG": OURS}, False),
        ({"NAMZU_CLUSTER": ""}, False),
        ({"NAMZU_CLUSTER": "", "KUBECONFIG": OTHER}, True),
        ({"NAMZU_CLUSTER": "local", "KUBECONFIG": OTHER}, False),
        ({"NAMZU_CLUSTER": "existing"}, True),
        ({"NAMZU_CLUSTER": "existing", "KUBECONFIG": OURS}, True),
    ],
)
def test_precedence(environment: dict[str, str], existing: bool) -> None:
    assert is_existing(environment) is existing


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(CannotRun, match="'kind' is not one of local, existing"):
        is_existing({"NAMZU_CLUSTER": "kind"})
