# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plays of docs/guides/first-hour.md, as they stand there."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from .conftest import ADDRESS, Body, Kube, Play, Played, Pool

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "first-hour.md"
BLOCK = re.compile(r"^```\w+\n# ([\w.-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEIGHBOUR = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"


@pytest.fixture
def from_page(play: Play, pool: Pool, tmp_path: pathlib.Path):
    """Runs a play of the page in the pool's namespace, with the page's ansible.cfg."""
    for name, content in BLOCK.findall(PAGE.read_text()):
        (tmp_path / name).write_text(content)

    def run(name: str, **options: bool) -> Played:
        variables: Body = {"where": pool.namespace, "address": ADDRESS}
        config = {"ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg")}
        return play.playbook(str(tmp_path / name), variables=variables, environment=config, **options)

    return run


def test_play_acquires_verifies_uses_extends_and_releases_a_sandbox(from_page, kube: Kube, pool: Pool) -> None:
    ran = from_page("hour.yml")
    assert ran["Run a program in it"]["stdout"] == "42\n"
    assert ran["Show what was verified"]["acquired.sandbox.verdict"]["egress"]["holds"]
    assert ran["Extend the lease to a quarter of an hour"]["changed"]
    name = ran["Acquire a sandbox and verify its boundary"]["sandbox"]["name"]
    assert ran["Show the output and the list"]["msg"] == f"The program printed 42 in {name}."
    assert ran["Release the sandbox"]["released"] == [name]


def test_tasks_run_inside_and_the_lease_keeper_releases_the_sandbox(from_page, kube: Kube, pool: Pool) -> None:
    ran = from_page("inside.yml")
    acquired = ran["Acquire"]["sandbox"]
    assert ran["Show it"]["read.stdout_lines"] == [acquired["pod"], "Made by a play."]
    path = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{pool.namespace}/sandboxclaims/{acquired['name']}"
    assert kube.get(path) is None


def test_check_holds_until_a_policy_opens_the_boundary_and_then_names_the_policy(
    from_page, kube: Kube, pool: Pool
) -> None:
    assert from_page("check.yml")["Check the pods that the pool will have"]["holds"]
    (policy,) = re.findall(r"^    (\{\"apiVersion.*\n.*\}\})$", PAGE.read_text(), re.MULTILINE)
    body = json.loads(policy)
    path = NEIGHBOUR.format(pool.namespace)
    kube.request("POST", path, body)
    try:
        opened = from_page("check.yml", may_fail=True)
    finally:
        kube.delete(f"{path}/well-meant")
    assert opened.rc == 2
    (failure,) = opened.failures
    assert "well-meant" in failure["msg"]
    assert "203.0.113.7" in failure["msg"]
