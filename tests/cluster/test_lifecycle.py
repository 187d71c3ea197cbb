# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local cluster comes up, survives crashes, and leaves nothing behind. Needs root; takes two to four minutes.

It runs an instance of its own (NAMZU_LIFECYCLE_INSTANCE, 9 unless told otherwise), so that a cluster in use is not
disturbed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import processes, teardown
from tests.cluster.images import PYTHON_IMAGE
from tests.cluster.layout import REPOSITORY, Layout

LAYOUT = Layout(int(os.environ.get("NAMZU_LIFECYCLE_INSTANCE", "9")))
COMMAND = [sys.executable, "-m", "tests.cluster"]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "files", "configMap": {"name": "files"}}],
        "containers": [
            {
                "name": "probe",
                "image": PYTHON_IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sleep", "100000"],
                # A subPath mount is a bind mount below the kubelet's folder: it stays when the kubelet is killed.
                "volumeMounts": [{"name": "files", "mountPath": "/greeting", "subPath": "greeting"}],
            }
        ],
    },
}
FILES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "files"},
    "data": {"greeting": "hello from a file"},
}


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**kept, "NAMZU_CLUSTER": "local", "NAMZU_CLUSTER_INSTANCE": str(LAYOUT.instance)}


def cluster(verb: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, verb, *options], cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False
    )


def done(verb: str, *options: str) -> str:
    answer = cluster(verb, *options)
    assert answer.returncode == 0, f"{verb}: exit code {answer.returncode}\n{answer.stdout}{answer.stderr}"
    return answer.stdout


def begin_up() -> subprocess.Popen[str]:
    """Start `up` and return as soon as it has started a component."""
    starting = subprocess.Popen(
        [*COMMAND, "up"],
        cwd=REPOSITORY,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not any(process.component == "kube-apiserver" for process in processes.running(LAYOUT)):
        assert starting.poll() is None, starting.communicate()[0]
        assert time.monotonic() < deadline, "up starts nothing"
        time.sleep(0.05)
    return starting


def kubectl(*arguments: str, text: str | None = None) -> str:
    argv = [str(LAYOUT.bin / "kubectl"), "--kubeconfig", str(LAYOUT.kubeconfig), *arguments]
    answer = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=90, check=False)
    assert answer.returncode == 0, f"kubectl {' '.join(arguments)}: {answer.stderr}"
    return answer.stdout


def run_pod() -> str:
    """Start a pod and return what a command inside it prints."""
    kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [FILES, POD]}))
    kubectl("wait", "--for=condition=Ready", "pod/probe", "--timeout=60s")
    return kubectl("exec", "probe", "--", "python3", "-c", "print(open('/greeting').read())")


# As a pod calls the API server: by name, with its service account's authority.
CALL_BY_NAME = """
import ssl, urllib.request
tls = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
print(urllib.request.urlopen("https://kubernetes.default.svc/readyz", timeout=10, context=tls).read().decode())
"""
RESOLVE_OUTSIDE = """
import socket
try:
    socket.getaddrinfo("name.example", 80)
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
"""


def pid_of(component: str) -> int:
    program = {process.component: process.pid for process in processes.running(LAYOUT) if "shim" not in process.argv[0]}
    return program[component]


def machine() -> dict[str, object]:
    """What an instance could leave behind, found without the cluster's own code."""
    name, short = f"namzu-cluster-{LAYOUT.instance}", f"namzu-cluster/{LAYOUT.instance}"
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    found = subprocess.run(["pgrep", "--full", f"{short}/"], capture_output=True, text=True, check=False).stdout
    links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout)
    return {
        "mounts": [line for line in mounts if f"{short}/" in line],
        "processes": found.split(),
        "interfaces": sorted(link["ifname"] for link in links if "master" not in link and "veth" in link["ifname"]),
        "bridge": [link["ifname"] for link in links if link["ifname"] == LAYOUT.bridge],
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{name}"))),
        "routes": subprocess.run(
            ["ip", "route", "show", LAYOUT.service_subnet], capture_output=True, check=True
        ).stdout,
        "folders": [str(path) for path in (Path("/var/lib") / short, Path("/run") / short) if path.exists()],
        "rules": firewall_rules(),
        "forwarding": None if other_instances() else Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii"),
        "kubelet": None if other_instances() else Path("/var/lib/kubelet").exists(),
        "CNI results": None if other_instances() else Path("/var/lib/cni").exists(),
        "shim sockets": None if other_instances() else Path("/run/containerd").exists(),
    }


def other_instances() -> list[Path]:
    return [path for path in Path("/var/lib/namzu-cluster").glob("[0-9]") if path != LAYOUT.state]


def firewall_rules() -> list[str]:
    """Rules and chains of both families, without their counters."""
    found = []
    for program in filter(None, map(shutil.which, ("iptables-save", "ip6tables-save"))):
        rules = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
        found += [rule.split("[")[0] for rule in rules if rule.startswith(("-A", ":"))]
    return found


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
    assert firewall_rules() == untouched_machine["rules"], "kube-proxy's rules are in its own namespace"
    done("down")
    assert teardown.remains(LAYOUT) == []
    assert machine() == untouched_machine


def test_pods_and_this_machine_reach_services() -> None:
    done("up")
    run_pod()
    assert kubectl("exec", "probe", "--", "python3", "-c", CALL_BY_NAME) == "ok\n"
    assert kubectl("exec", "probe", "--", "python3", "-c", RESOLVE_OUTSIDE) == "True\n"
    authority = ssl.create_default_context(cafile=str(LAYOUT.certificates / "authority.crt"))
    with urllib.request.urlopen(f"https://{LAYOUT.service_address}/readyz", timeout=10, context=authority) as answer:
        assert answer.read() == b"ok"


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
    assert [line.split()[0] for line in done("status").splitlines()] == ["etcd", "kube-apiserver"]
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
    for component in ("etcd", "kubelet"):
        os.kill(pid_of(component), signal.SIGKILL)
    answer = cluster("status")
    assert answer.returncode == 1
    assert "is not running" in answer.stdout
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
