# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of an instance's components: the command of each, what it needs first, and its health check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..build import packages
from ..build.programs import Programs
from ..failures import ClusterError
from ..layout import DNS_PORT, FIREWALL_HEALTH_PORT, NODE_NAME, PROXY_HEALTH_PORT, REPOSITORY, Layout
from . import health

START_TIMEOUT_SECONDS = 120.0  # from the start to health; the end of the process is reported at once


@dataclass(frozen=True)
class Component:
    """A process of the instance."""

    name: str
    argv: tuple[str, ...]
    healthy: health.Check
    needs: tuple[str, ...] = ()
    network: Path | None = None  # the network namespace it runs in, None for the machine's
    folder: Path | None = None  # its working directory, None for the instance's


def components(layout: Layout, programs: Programs, *, bare: bool = False) -> tuple[Component, ...]:
    """Every component; `needs` names components, or steps of the start-up (see startup.py)."""
    if bare:
        return _etcd(layout, programs), _api_server(layout, programs)
    return (
        _etcd(layout, programs),
        _containerd(layout),
        _api_server(layout, programs),
        _controller_manager(layout, programs),
        _scheduler(layout, programs),
        _api_relay(layout, programs),
        _proxy(layout, programs),
        _dns(layout, programs),
        _kubelet(layout, programs),
        _agent_sandbox_controller(layout, programs),
        _volumes(layout),
        *([_firewall(layout, programs)] if programs.enforce else []),
    )


def _etcd(layout: Layout, programs: Programs) -> Component:
    clients, peers = (f"http://127.0.0.1:{layout.port(use)}" for use in ("etcd", "etcd-peer"))
    return Component(
        "etcd",
        (
            str(programs.path("etcd")),
            f"--data-dir={layout.state / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            # The data does not outlive the instance, so it need not survive a power cut.
            "--unsafe-no-fsync",
        ),
        health.http(layout.port("etcd"), "/readyz"),
    )


def _containerd(layout: Layout) -> Component:
    program = packages.find("containerd")
    if program is None:
        raise ClusterError("containerd: not installed. Install the package containerd.")
    configuration = layout.configuration / "containerd.toml"
    return Component(
        "containerd", (program, "--config", str(configuration)), health.unix_socket(layout.containerd_socket)
    )


def _api_server(layout: Layout, programs: Programs) -> Component:
    certificates = layout.certificates
    return Component(
        "kube-apiserver",
        (
            str(programs.path("kube-apiserver")),
            f"--etcd-servers=http://127.0.0.1:{layout.port('etcd')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={layout.port('kube-apiserver')}",
            f"--advertise-address={layout.node_address}",
            f"--tls-cert-file={certificates / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={certificates / 'kube-apiserver.key'}",
            f"--client-ca-file={certificates / 'authority.crt'}",
            f"--token-auth-file={certificates / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates / 'service-account.pub'}",
            f"--service-account-signing-key-file={certificates / 'service-account.key'}",
            f"--service-cluster-ip-range={layout.service_subnet}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={certificates / 'authority.crt'}",
            f"--kubelet-client-certificate={certificates / 'kube-apiserver-to-kubelet.crt'}",
            f"--kubelet-client-key={certificates / 'kube-apiserver-to-kubelet.key'}",
            "--profiling=false",
        ),
        health.api_server(layout),
        needs=("etcd",),
    )


def _controller_manager(layout: Layout, programs: Programs) -> Component:
    certificates = layout.certificates
    return Component(
        "kube-controller-manager",
        (
            str(programs.path("kube-controller-manager")),
            *_local_serving(layout, "kube-controller-manager"),
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={certificates / 'service-account.key'}",
            f"--root-ca-file={certificates / 'authority.crt'}",
            f"--cluster-cidr={layout.pod_subnet}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--profiling=false",
        ),
        health.http(layout.port("kube-controller-manager"), "/healthz", certificates / "authority.crt"),
        needs=("kube-apiserver",),
    )


def _scheduler(layout: Layout, programs: Programs) -> Component:
    return Component(
        "kube-scheduler",
        (
            str(programs.path("kube-scheduler")),
            *_local_serving(layout, "kube-scheduler"),
            "--leader-elect=false",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--profiling=false",
        ),
        health.http(layout.port("kube-scheduler"), "/healthz", layout.certificates / "authority.crt"),
        needs=("kube-apiserver",),
    )


def _api_relay(layout: Layout, programs: Programs) -> Component:
    """The relay through which pods reach the API server, which listens on the loopback address alone.

    etcd's program has a plain TCP relay built in, its gateway.
    """
    port = layout.port("kube-apiserver")
    return Component(
        "api-relay",
        (
            str(programs.path("etcd")),
            "gateway",
            "start",
            f"--listen-addr={layout.node_address}:{port}",
            f"--endpoints=127.0.0.1:{port}",
            "--retry-delay=200ms",
        ),
        health.http(port, "/readyz", layout.certificates / "authority.crt", host=layout.node_address),
        needs=("kube-apiserver",),
    )


def _proxy(layout: Layout, programs: Programs) -> Component:
    return Component(
        "kube-proxy",
        (
            str(programs.path("kube-proxy")),
            f"--kubeconfig={layout.user_kubeconfig('kube-proxy')}",
            "--proxy-mode=iptables",
            f"--hostname-override={NODE_NAME}",
            # The reply must pass the address of the bridge.
            "--masquerade-all",
            "--iptables-localhost-nodeports=false",
            # The kernel's limits do not change: the limit on connections is one for all namespaces.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
            "--iptables-min-sync-period=100ms",
            f"--healthz-bind-address={layout.proxy_address}:{PROXY_HEALTH_PORT}",
        ),
        # Its health page answers before the first rules exist.
        health.both(
            health.http(PROXY_HEALTH_PORT, "/healthz", host=layout.proxy_address), health.service_rules(layout)
        ),
        needs=("api-relay",),
        network=layout.pod_network,
    )


def _firewall(layout: Layout, programs: Programs) -> Component:
    port = FIREWALL_HEALTH_PORT
    return Component(
        "kube-router",
        (
            str(programs.path("kube-router")),
            f"--kubeconfig={layout.user_kubeconfig('kube-router')}",
            f"--hostname-override={NODE_NAME}",
            f"--service-cluster-ip-range={layout.service_subnet}",
            f"--health-port={port}",
        ),
        health.both(health.http(port, "/healthz", host=layout.proxy_address), health.firewall_chain(layout)),
        # kube-router saves and restores a whole table. What kube-proxy adds to the table in between is lost, and
        # kube-proxy tries again after 30 s.
        needs=("kube-proxy", "node-registered", "firewall-permissions"),
        network=layout.pod_network,
    )


def _dns(layout: Layout, programs: Programs) -> Component:
    return Component(
        "coredns",
        (str(programs.path("coredns")), f"-conf={layout.configuration / 'Corefile'}", f"-dns.port={DNS_PORT}"),
        health.http(layout.port("coredns-ready"), "/ready"),
        needs=("dns-permissions",),
    )


def _local_serving(layout: Layout, component: str) -> tuple[str, ...]:
    certificates = layout.certificates
    return (
        f"--kubeconfig={layout.user_kubeconfig(component)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.port(component)}",
        f"--tls-cert-file={certificates / 'local.crt'}",
        f"--tls-private-key-file={certificates / 'local.key'}",
    )


def _volumes(layout: Layout) -> Component:
    return Component(
        "volumes",
        (
            str(layout.python),
            "-m",
            "tools.cluster.components.volumes",
            str(layout.user_kubeconfig("volumes")),
            str(layout.volumes),
            str(layout.volumes_socket),
        ),
        health.unix_socket(layout.volumes_socket),
        needs=("storage",),
        folder=REPOSITORY,
    )


def _kubelet(layout: Layout, programs: Programs) -> Component:
    return Component(
        "kubelet",
        (
            str(programs.path("kubelet")),
            f"--kubeconfig={layout.user_kubeconfig('kubelet')}",
            f"--config={layout.configuration / 'kubelet.json'}",
            f"--root-dir={layout.kubelet_root}",
            f"--cert-dir={layout.kubelet_root / 'pki'}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={layout.node_address}",
        ),
        health.both(health.http(layout.port("kubelet-health"), "/healthz"), health.node_ready(layout)),
        needs=("kube-apiserver", "containerd", "images"),
    )


def _agent_sandbox_controller(layout: Layout, programs: Programs) -> Component:
    return Component(
        "agent-sandbox-controller",
        (
            str(programs.path("agent-sandbox-controller")),
            f"--kubeconfig={layout.user_kubeconfig('agent-sandbox-controller')}",
            "--extensions",
            "--leader-elect=false",
            "--enable-webhook=false",
            f"--metrics-bind-address=127.0.0.1:{layout.port('agent-sandbox-metrics')}",
            f"--health-probe-bind-address=127.0.0.1:{layout.port('agent-sandbox-health')}",
        ),
        health.http(layout.port("agent-sandbox-health"), "/readyz"),
        needs=("crds", "controller-objects"),
    )
