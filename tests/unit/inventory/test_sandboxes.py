# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in a cluster, as the hosts that ansible-inventory lists."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.inventory.sandboxes import InventoryModule

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE, POOL
from ...faults.fake.server import TOKEN

OTHER = "team-b"


@dataclasses.dataclass
class Listed:
    """What ansible-inventory says."""

    hosts: dict[str, dict[str, t.Any]]
    groups: dict[str, t.Any]
    output: str
    code: int


class Inventory:
    """Lists the inventory of one configuration file."""

    def __init__(self, folder: pathlib.Path, cluster: FakeCluster) -> None:
        self._folder = folder
        self.cluster = cluster

    def __call__(self, *, file: str = "agents.sandboxes.yml", code: int = 0, **options: t.Any) -> Listed:
        config = {
            "plugin": "namzu.sandbox.sandboxes",
            "host": self.cluster.server.url,
            "api_key": TOKEN,
            "namespace": NAMESPACE,
            "strict": True,
            **options,
        }
        path = self._folder / file
        path.write_text(yaml.safe_dump(config))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_"))}
        environ = {
            **kept,
            "ANSIBLE_HOME": str(self._folder / "home"),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
            "KUBECONFIG": str(self._folder / "no-kubeconfig"),
        }
        command = [sys.executable, "-m", "ansible", "inventory", "-i", str(path), "--list", "--export", "-vvvv"]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, cwd=self._folder, timeout=120, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        listed = json.loads(done.stdout[done.stdout.index("{\n") :]) if code == 0 else {}
        return Listed(plain(listed.pop("_meta", {}).get("hostvars", {})), listed, said, done.returncode)


def plain(value: t.Any) -> t.Any:
    """The value without Ansible's mark of what no template is read from."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else {
            key: plain(one) for key, one in value.items()
        }  # fmt: skip
    return value


@pytest.fixture
def inventory(tmp_path: pathlib.Path) -> t.Iterator[Inventory]:
    """A namespace with two claims, one of them bound, a workspace, and a Sandbox of somebody else."""
    with FakeCluster() as cluster:
        store = cluster.store
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        claim(cluster, NAMESPACE, "box", labels={"team": "search"})
        with store.changed:
            assert store.changed.wait_for(lambda: store.names("pods"), timeout=10.0)
        cluster.controller.ready = None
        claim(cluster, NAMESPACE, "waiting")
        claim(cluster, OTHER, "box", status={**ready, "sandbox": {"name": "python-9"}})
        mark = {
            "labels": {"sandbox.namzu.ai/workspace": "true"},
            "annotations": {"sandbox.namzu.ai/workspace-id": "team/x"},
        }
        store.create("sandboxes", NAMESPACE, {"metadata": {"name": "workspace-x", **mark}, "status": ready})
        store.create("sandboxes", NAMESPACE, {"metadata": {"name": "stranger"}, "status": ready})
        yield Inventory(tmp_path, cluster)


def claim(cluster: FakeCluster, namespace: str, name: str, **more: t.Any) -> None:
    metadata = {"name": name, "labels": more.pop("labels", {})}
    body = {"metadata": metadata, "spec": {"warmPoolRef": {"name": POOL}}, **more}
    cluster.store.create("sandboxclaims", namespace, body)


def test_what_is_ready_and_ours_is_a_host_that_the_connection_leads_to(inventory: Inventory) -> None:
    keyed = {"key": "sandbox_warm_pool | default('none', true)", "prefix": "pool"}
    options = {"groups": {"sandboxes": True}, "keyed_groups": [keyed]}
    compose = {"ansible_sandbox_follow": "sandbox_kind == 'workspace'"}
    listed = inventory(agent={"port": 2048, "address": "pod_ip"}, compose=compose, **options)
    assert set(listed.hosts) == {"box", "workspace-x"}
    box = listed.hosts["box"]
    assert box["ansible_connection"] == "namzu.sandbox.sandbox"
    assert (box["ansible_sandbox_name"], box["ansible_sandbox_namespace"]) == ("box", NAMESPACE)
    assert (box["ansible_sandbox_agent_port"], box["ansible_sandbox_agent_address"]) == (2048, "pod_ip")
    assert box["ansible_sandbox_uid"] == inventory.cluster.store.get(inventory.cluster.key("sandboxclaims", "box"))[
        "metadata"
    ]["uid"]  # fmt: skip
    assert (box["sandbox_kind"], box["sandbox_labels"]) == ("claim", {"team": "search"})
    assert listed.hosts["workspace-x"]["ansible_sandbox_follow"] is True
    assert [listed.hosts[name]["sandbox_workspace_id"] for name in ("workspace-x", "box")] == ["team/x", None]
    assert set(listed.groups["sandboxes"]["hosts"]) == {"box", "workspace-x"}
    assert listed.groups[f"pool_{POOL}"]["hosts"] == ["box"]
    assert listed.groups["pool_none"]["hosts"] == ["workspace-x"]
    assert TOKEN not in listed.output


def test_a_selector_kinds_and_phases_choose(inventory: Inventory) -> None:
    chosen = inventory(label_selector="team=search", kinds=["claim"])
    assert set(chosen.hosts) == {"box"}
    assert set(inventory(phases=["pending"], kinds=["claim", "unmanaged"]).hosts) == {"waiting"}


def test_two_of_one_name_are_refused_until_the_namespace_is_part_of_it(inventory: Inventory) -> None:
    namespaces = [NAMESPACE, OTHER]
    assert "hostname: qualified" in inventory(namespaces=namespaces, kinds=["claim"], code=1).output
    listed = inventory(namespaces=namespaces, kinds=["claim"], hostname="qualified")
    assert set(listed.hosts) == {f"box.{NAMESPACE}", f"box.{OTHER}"}


def test_what_goes_wrong_is_said_in_the_words_of_the_verbs(inventory: Inventory) -> None:
    said = inventory(api_key="wrong-token-77", code=1).output
    assert "401" in said
    assert "wrong-token-77" not in said


def test_the_cache_spares_the_api_server_and_holds_no_secret(inventory: Inventory, tmp_path: pathlib.Path) -> None:
    cache = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    first = inventory(**cache)
    asked = len(inventory.cluster.server.headers)
    assert asked > 0
    assert inventory(**cache).hosts == first.hosts
    assert len(inventory.cluster.server.headers) == asked
    kept = "".join(file.read_text() for file in (tmp_path / "cache").iterdir())
    assert "box" in kept
    assert TOKEN not in kept


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("agents.sandboxes.yml", True),
        ("agents.sandboxes.yaml", True),
        ("sandboxes.yml", True),
        ("agents.yml", False),
        ("sandboxes.json", False),
        ("missing.sandboxes.yml", False),
    ],
)
def test_a_file_is_ours_by_its_name(tmp_path: pathlib.Path, name: str, ours: bool) -> None:
    if not name.startswith("missing"):
        (tmp_path / name).touch()
    assert InventoryModule().verify_file(str(tmp_path / name)) is ours


def test_namespaces_are_refused_on_a_container_engine(inventory: Inventory) -> None:
    said = inventory(backend="container", docker_host="unix:///nowhere.sock", namespaces=["a", "b"], code=1).output
    assert "namespaces cannot be set on backend container: A container engine has no namespaces." in said
