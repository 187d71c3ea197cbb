# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local cluster starts, recovers from crashes, and is removed completely. Needs root; takes two to four minutes.

The tests use their own instance (NAMZU_LIFECYCLE_INSTANCE, 9 by default), so that a cluster in use is not disturbed.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from tools.cluster import teardown
from tools.cluster.api import administrator_api
from tools.cluster.host import network, processes
from tools.cluster.tests.lifecycle.trial import (
    CALL_BY_NAME,
    CLAIM,
    CLOSED,
    LAYOUT,
    RESOLVE_OUTSIDE,
    answers,
    begin_up,
    cluster,
    done,
    kubectl,
    machine,
    neighbour_connects,
    pid_of,
    read_from_disk,
    run_pod,
    two_pods,
    until,
    write_to_disk,
)

#: Kinds that every acquire reads; an API server that is not ready for them answers 429.
POLICY_KINDS = (
    "/apis/policy.networking.k8s.io/v1beta1/clusternetworkpolicies",
    "/apis/cilium.io/v2/ciliumnetworkpolicies",
)


@pytest.fixture(scope="module", autouse=True)
def untouched_machine() -> Iterator[dict[str, object]]:
    """The machine before the first start; the instance is removed after the last test, also after failures."""
    done("down")
    assert teardown.remains(LAYOUT) == []
    before = machine()
    yield before
    done("down")


def test_down_restores_the_machine(untouched_machine: dict[str, object]) -> None:
    assert "up, " in done("up")
    assert "hello from a file" in run_pod()
    assert machine() != untouched_machine
    used = machine()
    for what in ("rules", "sets", "routing rules"):
        assert used[what] == untouched_machine[what], f"{what} of the machine are changed"
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_policy_kinds_are_readable_at_once() -> None:
    done("up")
    for kind in POLICY_KINDS:
        administrator_api(LAYOUT.kubeconfig).request("GET", kind)


def test_pods_and_this_machine_reach_services() -> None:
    done("up")
    run_pod()
    assert kubectl("exec", "probe", "--", "python3", "-c", CALL_BY_NAME) == "ok\n"
    assert kubectl("exec", "probe", "--", "python3", "-c", RESOLVE_OUTSIDE) == "True\n"
    authority = ssl.create_default_context(cafile=str(LAYOUT.certificates / "authority.crt"))
    with urllib.request.urlopen(f"https://{LAYOUT.service_address}/readyz", timeout=10, context=authority) as answer:
        assert answer.read() == b"ok"


def test_the_bridge_address_does_not_change_when_pods_start() -> None:
    done("up")
    run_pod()
    assert network.BRIDGE_ADDRESS in network.inside(LAYOUT, "ip", "link", "show", network.BRIDGE)


def test_a_policy_closes_a_pod_to_pods_and_not_to_its_node() -> None:
    done("up")
    address = two_pods()
    until(lambda: neighbour_connects(address), "the neighbour does not connect")
    kubectl("apply", "-f", "-", text=json.dumps(CLOSED))
    until(lambda: not neighbour_connects(address), "the policy is not enforced")
    assert answers(address)
    kubectl("delete", "networkpolicy", "closed")
    until(lambda: neighbour_connects(address), "the deleted policy is still enforced")


def test_a_disk_survives_its_pod_and_is_deleted_with_its_claim() -> None:
    done("up")
    write_to_disk("text")
    assert read_from_disk() == "text"
    folders = list(LAYOUT.volumes.iterdir())
    assert len(folders) == 1
    kubectl("delete", "pod", "reader", "--wait")
    kubectl("delete", CLAIM, "--wait")
    until(lambda: not folders[0].exists(), "the folder of the deleted claim exists")
    until(lambda: kubectl("get", "persistentvolumes", "--output=name") == "", "the volume of the deleted claim exists")


def test_without_enforcement_policies_have_no_effect() -> None:
    done("down")
    done("up", "--no-enforcement")
    assert "already up" in done("up", "--no-enforcement")
    lines = done("status")
    assert "kube-router" not in lines
    assert "without enforcement" in lines
    refused = cluster("up")
    assert refused.returncode == 1
    assert "without enforcement" in refused.stderr
    assert "Take it down first" in refused.stderr
    kubectl("apply", "-f", "-", text=json.dumps(CLOSED))
    address = two_pods()
    until(lambda: neighbour_connects(address), "the neighbour does not connect")
    done("down")


def test_the_api_server_listens_on_loopback_and_the_node_address_alone() -> None:
    done("up")
    port = LAYOUT.port("kube-apiserver")
    listening = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[3] for line in listening.splitlines()) == sorted(
        [f"127.0.0.1:{port}", f"{LAYOUT.node_address}:{port}"]
    )


def test_a_bare_cluster_has_no_crds_and_is_removed_completely(untouched_machine: dict[str, object]) -> None:
    done("down")
    done("up", "--bare")
    *components, kind = done("status").splitlines()
    assert [line.split()[0] for line in components] == ["etcd", "kube-apiserver"]
    assert kind == "this is a bare cluster"
    assert "KUBECONFIG" in done("env")
    assert kubectl("get", "crds", "--output=name") == ""
    assert "already up" in done("up", "--bare")
    assert "up as a bare cluster" in cluster("up").stderr
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_up_on_a_healthy_cluster_changes_nothing() -> None:
    done("up")
    pids = {process.pid for process in processes.running(LAYOUT)}
    assert "already up" in done("up")
    assert {process.pid for process in processes.running(LAYOUT)} == pids


def test_up_recovers_after_components_are_killed(untouched_machine: dict[str, object]) -> None:
    done("up")
    run_pod()
    killed = ("etcd", "kubelet", "kube-router")
    for component in killed:
        os.kill(pid_of(component), signal.SIGKILL)
    answer = cluster("status")
    assert answer.returncode == 1
    assert {line.split()[0] for line in answer.stdout.splitlines() if "is not running" in line} == set(killed)
    assert cluster("env").returncode == 1
    done("up")
    assert "hello from a file" in run_pod()
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_down_removes_everything_after_up_and_containerd_were_killed(untouched_machine: dict[str, object]) -> None:
    starting = begin_up()
    starting.kill()
    starting.communicate()
    assert teardown.remains(LAYOUT) != []
    done("up")
    run_pod()
    os.kill(pid_of("containerd"), signal.SIGKILL)
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_an_interrupted_up_removes_everything(untouched_machine: dict[str, object]) -> None:
    starting = begin_up()
    starting.send_signal(signal.SIGINT)
    output, _unused = starting.communicate(timeout=60)
    assert starting.returncode == 130, output
    assert "Traceback" not in output
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_a_process_that_the_cluster_did_not_start_is_not_ended() -> None:
    done("up")
    # Its command line names a file of the instance, and it holds that file open; the instance did not start it.
    reader = subprocess.Popen(
        ["tail", "-F", str(LAYOUT.logs / "etcd.log")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        done("down")
        assert reader.poll() is None
        assert teardown.remains(LAYOUT) == []
    finally:
        reader.kill()
        reader.wait()


def test_commands_when_no_instance_exists() -> None:
    done("down")
    assert "already down" in done("down")
    assert cluster("status").returncode == 3
    answer = cluster("env")
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "not up" in answer.stderr
