# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local cluster comes up, survives crashes, and leaves nothing behind. Needs root; takes two to four minutes.

It runs an instance of its own (NAMZU_LIFECYCLE_INSTANCE, 9 unless told otherwise), so that a cluster in use is not
disturbed.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.cluster import network, processes, teardown
from tests.cluster.api import administrator_api
from tests.cluster.trial import (
    CALL_BY_NAME,
    CLAIM,
    CLOSED,
    LAYOUT,
    RESOLVE_OUTSIDE,
    answers,
    begin_up,
    cluster,
    done,
    keep_on_disk,
    kubectl,
    machine,
    neighbour_gets_in,
    pid_of,
    read_from_disk,
    run_pod,
    two_pods,
    until,
)

#: Which every acquire reads; an API server that is not ready for them answers 429.
POLICY_KINDS = (
    "/apis/policy.networking.k8s.io/v1beta1/clusternetworkpolicies",
    "/apis/cilium.io/v2/ciliumnetworkpolicies",
)


@pytest.fixture(scope="module", autouse=True)
def untouched_machine() -> Iterator[dict[str, object]]:
    """The machine before the first start; whatever a test does, the instance is gone afterwards."""
    done("down")
    assert teardown.remains(LAYOUT) == []
    before = machine()
    yield before
    done("down")


def test_after_down_the_machine_is_as_it_was(untouched_machine: dict[str, object]) -> None:
    assert "up, " in done("up")
    assert "hello from a file" in run_pod()
    assert machine() != untouched_machine
    used = machine()
    for what in ("rules", "sets", "routing rules"):
        assert used[what] == untouched_machine[what], f"{what} are in the pods' network namespace alone"
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_no_kind_makes_its_first_reader_wait() -> None:
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


def test_the_bridge_keeps_its_address_when_pods_come_and_go() -> None:
    done("up")
    run_pod()
    assert network.BRIDGE_ADDRESS in network.inside(LAYOUT, "ip", "link", "show", network.BRIDGE)


def test_a_policy_closes_a_pod_to_others_and_never_to_its_node() -> None:
    done("up")
    address = two_pods()
    until(lambda: neighbour_gets_in(address), "the pods do not reach each other")
    kubectl("apply", "-f", "-", text=json.dumps(CLOSED))
    until(lambda: not neighbour_gets_in(address), "the policy closes nothing")
    assert answers(address)
    kubectl("delete", "networkpolicy", "closed")
    until(lambda: neighbour_gets_in(address), "the policy is gone and closes still")


def test_a_disk_outlives_its_pod_and_goes_with_its_claim() -> None:
    done("up")
    keep_on_disk("kept")
    assert read_from_disk() == "kept"
    folders = list(LAYOUT.volumes.iterdir())
    assert len(folders) == 1
    kubectl("delete", "pod", "reader", "--wait")
    kubectl("delete", CLAIM, "--wait")
    until(lambda: not folders[0].exists(), "the claim is gone and its folder is not")
    until(lambda: kubectl("get", "persistentvolumes", "--output=name") == "", "the claim is gone and its volume is not")


def test_without_enforcement_policies_are_objects_alone() -> None:
    done("down")
    done("up", "--no-enforcement")
    assert "already up" in done("up", "--no-enforcement")
    said = done("status")
    assert "kube-router" not in said
    assert "without enforcement" in said
    refused = cluster("up")
    assert refused.returncode == 1
    assert "without enforcement" in refused.stderr
    assert "Take it down first" in refused.stderr
    kubectl("apply", "-f", "-", text=json.dumps(CLOSED))
    address = two_pods()
    until(lambda: neighbour_gets_in(address), "the pods do not reach each other")
    done("down")


def test_the_api_server_is_reachable_from_this_machine_and_the_pods_alone() -> None:
    done("up")
    port = LAYOUT.port("kube-apiserver")
    listening = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[3] for line in listening.splitlines()) == sorted(
        [f"127.0.0.1:{port}", f"{LAYOUT.node_address}:{port}"]
    )


def test_a_bare_cluster_has_no_crds_and_leaves_nothing(untouched_machine: dict[str, object]) -> None:
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
    began = time.monotonic()
    assert "already up" in done("up")
    assert time.monotonic() - began < 5
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


def test_down_cleans_up_after_containerd_and_an_up_that_was_killed(untouched_machine: dict[str, object]) -> None:
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


def test_an_interrupted_up_leaves_nothing(untouched_machine: dict[str, object]) -> None:
    starting = begin_up()
    starting.send_signal(signal.SIGINT)
    said, _unused = starting.communicate(timeout=60)
    assert starting.returncode == 130, said
    assert "Traceback" not in said
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_a_process_of_somebody_else_is_never_ended() -> None:
    done("up")
    # It looks like a component by its command line, and holds a file of the instance, but was not started by it.
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


def test_when_nothing_is_up() -> None:
    done("down")
    assert "already down" in done("down")
    assert cluster("status").returncode == 3
    answer = cluster("env")
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "not up" in answer.stderr
