# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``warm_pool_problem``."""

from __future__ import annotations

from ansible_collections.namzu.sandbox.plugins.filter.warm_pool_problem import warm_pool_problem

from ..lifecycle.observed.test_capacity import member, unpullable


def test_the_reason_of_a_member_and_the_next_step_are_one_text() -> None:
    text = warm_pool_problem("python", sandboxes=[member("a")], pods=[unpullable("a")])
    assert "python:none cannot be pulled" in text
    assert text.endswith("available to the node.")


def test_a_pool_without_a_reason_gives_no_text() -> None:
    assert warm_pool_problem("python", sandboxes=[], pods=[]) == ""
