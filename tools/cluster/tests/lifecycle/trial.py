# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance of the lifecycle tests, its pods, and the state of this machine that it could change."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.cluster.build.images import PYTHON_IMAGE
from tools.cluster.host import processes
from tools.cluster.layout import REPOSITORY, Layout

LAYOUT = Layout(int(os.environ.get("NAMZU_LIFECYCLE_INSTANCE", "9")))
COMMAND = [sys.executable, "-m", "tools.cluster"]
SERVED_PORT = 8080
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "labels": {"name": "probe"}},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "files", "configMap": {"name": "files"}}],
        "containers": [
            {
                "name": "probe",
                "image": PYTHON_IMAGE,
                "imagePullPolicy": "Never",
                "command": ["python3", "-m", "http.server", str(SERVED_PORT)],
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
    others = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**others, "NAMZU_CLUSTER": "local", "NAMZU_CLUSTER_INSTANCE": str(LAYOUT.instance)}


def cluster(verb: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, verb, *options], cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False
    )


def done(verb: str, *options: str) -> str:
    answer = cluster(verb, *options)
    assert answer.returncode == 0, f"{verb}: exit code {answer.returncode}\n{answer.stdout}{answer.stderr}"
    return answer.stdout


def until(condition: Callable[[], bool], otherwise: str, seconds: float = 30) -> None:
    """Poll until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)


def begin_up() -> subprocess.Popen[str]:
    """Start `up` and return as soon as it has started a component."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts background jobs with SIGINT ignored, and children inherit that; a handler is reset on exec.
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
        assert time.monotonic() < deadline, "up starts no component"
        time.sleep(0.05)
    return starting


def kubectl(*arguments: str, text: str | None = None) -> str:
    argv = [str(LAYOUT.bin / "kubectl"), "--kubeconfig", str(LAYOUT.kubeconfig), *arguments]
    answer = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=90, check=False)
    # A run's summary shows the first line of a message alone; a traceback has its reason in the last.
    reason = answer.stderr.strip().rpartition("\n")[2]
    assert answer.returncode == 0, f"kubectl {arguments[0]}: {reason}\n{' '.join(arguments)}\n{answer.stderr}"
    return answer.stdout


def run_pod(*others: Mapping[str, object]) -> str:
    """Start the pod `probe` and others, and return the output of a command in it."""
    kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [FILES, POD, *others]}))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
    return kubectl("exec", "probe", "--", "python3", "-c", "print(open('/greeting').read())")


def two_pods() -> str:
    """Start the pods `probe` and `neighbour`, and return the address of the first."""
    neighbour = {**POD, "metadata": {"name": "neighbour"}}
    run_pod(neighbour)
    return kubectl("get", "pod", "probe", "--output=jsonpath={.status.podIP}")


# A pod calls the API server by name, and verifies it with the authority of its service account.
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


# No pod may connect to the pod `probe`.
CLOSED = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "closed"},
    "spec": {"podSelector": {"matchLabels": {"name": "probe"}}, "policyTypes": ["Ingress"]},
}


def answers(address: str) -> bool:
    """Whether this machine connects to the pod's port."""
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex((address, SERVED_PORT)) == 0


def neighbour_connects(address: str) -> bool:
    """Whether the pod `neighbour` connects to the other pod's port."""
    program = f"import socket; c = socket.socket(); c.settimeout(2); print(c.connect_ex(('{address}', {SERVED_PORT})))"
    return kubectl("exec", "neighbour", "--", "python3", "-c", program) == "0\n"


CLAIM = "persistentvolumeclaim/disk"


def write_to_disk(text: str) -> None:
    """Write to the disk of a claim from a pod of an unprivileged user, and delete the pod."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
    }
    kubectl("apply", "-f", "-", text=json.dumps(claim))
    start_with_disk("writer", f"open('/disk/text', 'w').write({text!r})")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/writer", "--timeout=60s")
    kubectl("delete", "pod", "writer", "--wait")


def read_from_disk() -> str:
    """Read the disk from another pod."""
    start_with_disk("reader", "print(open('/disk/text').read(), end='')")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/reader", "--timeout=60s")
    return kubectl("logs", "reader")


def start_with_disk(name: str, program: str) -> None:
    """Run a program in a pod that has the disk."""
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "fsGroup": 1000},
        "volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}],
        "containers": [
            {
                "name": "python",
                "image": PYTHON_IMAGE,
                "imagePullPolicy": "Never",
                "command": ["python3", "-c", program],
                "volumeMounts": [{"name": "disk", "mountPath": "/disk"}],
            }
        ],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    kubectl("apply", "-f", "-", text=json.dumps(pod))


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
        "link": [link["ifname"] for link in links if link["ifname"] == LAYOUT.link],
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{name}"))),
        "routes": subprocess.run(
            ["ip", "route", "show", LAYOUT.service_subnet], capture_output=True, check=True
        ).stdout,
        "folders": [str(path) for path in (Path("/var/lib") / short, Path("/run") / short) if path.exists()],
        "rules": firewall_rules(),
        "sets": subprocess.run(["ipset", "list", "-name"], capture_output=True, check=True).stdout,
        "routing rules": subprocess.run(["ip", "rule"], capture_output=True, check=True).stdout,
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
