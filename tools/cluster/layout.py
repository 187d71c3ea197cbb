# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths, ports, addresses and names of an instance of the local cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .failures import CannotRun

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM_MODULE = Path(__file__).resolve().parent / "build" / "go"

STATE_ROOT = Path("/var/lib/namzu-cluster")
RUN_ROOT = Path("/run/namzu-cluster")

INSTANCES = range(1, 10)
PORT_BASE = 26400
PORTS_PER_INSTANCE = 100
# Offsets echo each program's usual port; all stay below 30000 (node ports) and 32768 (ephemeral ports).
PORT_OFFSETS: Mapping[str, int] = {
    "kube-apiserver": 43,
    "kubelet-health": 48,
    "kubelet": 50,
    "kube-controller-manager": 57,
    "kube-scheduler": 59,
    "etcd": 79,
    "etcd-peer": 80,
    "agent-sandbox-metrics": 8,
    "agent-sandbox-health": 81,
    "coredns-ready": 53,
}

DNS_PORT = 53  # on the node's address: resolv.conf has no port
# In the network namespace of the pods' bridge, which each instance has.
PROXY_HEALTH_PORT = 10256
FIREWALL_HEALTH_PORT = 20244

NODE_NAME = "namzu-node"
RUNTIME_HANDLER = "gvisor"  # of containerd; the RuntimeClass has the same name
CLUSTER_DOMAIN = "cluster.local"
CONTROLLER_NAMESPACE = "agent-sandbox-system"


@dataclass(frozen=True)
class Layout:
    """Every path, port, address and name of one instance; two instances share none of them."""

    instance: int = 1

    @property
    def name(self) -> str:
        """Name of cgroup, CNI network and processes' mark."""
        return f"namzu-cluster-{self.instance}"

    @property
    def state(self) -> Path:
        return STATE_ROOT / str(self.instance)

    @property
    def run(self) -> Path:
        return RUN_ROOT / str(self.instance)

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def certificates(self) -> Path:
        return self.state / "certificates"

    @property
    def configuration(self) -> Path:
        return self.state / "configuration"

    @property
    def kubelet_root(self) -> Path:
        return self.state / "kubelet"

    @property
    def pod_logs(self) -> Path:
        return self.state / "pod-logs"

    @property
    def volumes(self) -> Path:
        """The pods' disks, a folder each."""
        return self.state / "volumes"

    @property
    def volumes_socket(self) -> Path:
        return self.run / "volumes.sock"

    @property
    def python(self) -> Path:
        """The interpreter of this instance's own processes; `status` may run on another one."""
        return self.state / "python"

    @property
    def bin(self) -> Path:
        """The folder that `env` puts on the PATH."""
        return self.state / "bin"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def programs_record(self) -> Path:
        """The record of the programs that were started, see build/programs.py."""
        return self.state / "programs.json"

    @property
    def bare_marker(self) -> Path:
        """Exists when only etcd and the API server were started."""
        return self.state / "bare"

    @property
    def containerd_socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def link(self) -> str:
        """The machine's link to the pods' bridge; it carries the node's address."""
        return f"namzu{self.instance - 1}"

    @property
    def pod_subnet(self) -> str:
        return f"10.{243 + self.instance}.0.0/16"

    @property
    def node_address(self) -> str:
        """The address of the machine's link: the node's as the API server and the pods see it."""
        return f"10.{243 + self.instance}.0.1"

    @property
    def pod_network(self) -> Path:
        """The network namespace with the pods' bridge, kube-proxy's and kube-router's rules."""
        return self.run / "pod-network"

    @property
    def gvisor(self) -> Path:
        """The folder with gVisor's programs."""
        return self.state / "gvisor"

    @property
    def runsc_state(self) -> Path:
        """The folder of runsc for the state of its sandboxes."""
        return self.run / "runsc"

    @property
    def cni_plugins(self) -> Path:
        """The folder of CNI plugins that containerd calls."""
        return self.state / "cni-plugins"

    @property
    def proxy_address(self) -> str:
        """The bridge's own address: the next hop to every service address."""
        return f"10.{243 + self.instance}.0.2"

    @property
    def first_pod_address(self) -> str:
        return f"10.{243 + self.instance}.0.3"

    @property
    def service_subnet(self) -> str:
        return f"10.{95 + self.instance}.0.0/16"

    @property
    def service_address(self) -> str:
        """The first service address, which Kubernetes gives to its own API server."""
        return f"10.{95 + self.instance}.0.1"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port('kube-apiserver')}"

    @property
    def server_for_pods(self) -> str:
        """The API server as the pods reach it, through the relay."""
        return f"https://{self.node_address}:{self.port('kube-apiserver')}"

    def port(self, use: str) -> int:
        """The TCP port for a use named in PORT_OFFSETS."""
        return PORT_BASE + PORTS_PER_INSTANCE * (self.instance - 1) + PORT_OFFSETS[use]

    def user_kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one component."""
        return self.certificates / f"{user}.kubeconfig"


def layout_from(environment: Mapping[str, str]) -> Layout:
    """The instance that NAMZU_CLUSTER_INSTANCE names, else the one whose kubeconfig KUBECONFIG names, else 1."""
    ours = {str(Layout(instance).kubeconfig): str(instance) for instance in INSTANCES}
    named = ours.get(environment.get("KUBECONFIG", ""), "1")
    wanted = environment.get("NAMZU_CLUSTER_INSTANCE", "") or named
    if not wanted.isdecimal() or int(wanted) not in INSTANCES:
        raise CannotRun(f"NAMZU_CLUSTER_INSTANCE={wanted!r} is not a number from 1 to {INSTANCES[-1]}.")
    return Layout(int(wanted))


def cache_folder(environment: Mapping[str, str]) -> Path:
    """The folder that caches programs and images between runs, outside of the clone."""
    own = environment.get("NAMZU_CACHE")
    if own:
        return Path(own).absolute()
    shared = environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME") or os.path.expanduser("~")
    return (Path(shared) if shared else Path(home) / ".cache") / "namzu-sandbox"
