# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates, kubeconfigs, CRDs, cgroups and the mount table: parts that need no cluster."""

from __future__ import annotations

import base64
import ipaddress
import json
import stat
import tomllib
from pathlib import Path

import pytest
from cryptography import x509

from tools.cluster.build.objects import Manifest, served_without_webhook
from tools.cluster.components.certificates import Authority, write_private
from tools.cluster.components.configuration import cni_network, corefile, kubelet, write_configuration
from tools.cluster.components.credentials import kubeconfig, server_names
from tools.cluster.failures import CannotRun
from tools.cluster.host import cgroups, mounts, network
from tools.cluster.layout import RUNTIME_HANDLER, Layout


def test_the_certificate_of_the_api_server_has_every_name_and_address() -> None:
    names = server_names(Layout(1))
    issued = x509.load_pem_x509_certificate(Authority("test").server("kube-apiserver", names).certificate)
    covered = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("127.0.0.1") in covered.get_values_for_type(x509.IPAddress)
    assert ipaddress.ip_address("10.96.0.1") in covered.get_values_for_type(x509.IPAddress)
    assert ipaddress.ip_address(Layout(1).node_address) in covered.get_values_for_type(x509.IPAddress)
    assert "kubernetes.default.svc.cluster.local" in covered.get_values_for_type(x509.DNSName)


def test_certificates_verify_against_their_authority_alone() -> None:
    first, second = Authority("first"), Authority("second")
    issued = x509.load_pem_x509_certificate(first.client("someone", ["group"]).certificate)
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(first.certificate))
    with pytest.raises(ValueError, match="match"):
        issued.verify_directly_issued_by(x509.load_pem_x509_certificate(second.certificate))


def test_a_kubeconfig_verifies_the_server() -> None:
    document = json.loads(
        kubeconfig("namzu", "https://127.0.0.1:26443", b"PEM", {"first": {"token": "t"}, "second": {}})
    )
    cluster = document["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:26443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert "insecure-skip-tls-verify" not in cluster
    assert document["current-context"] == "first"
    assert [context["name"] for context in document["contexts"]] == ["first", "second"]


def test_private_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_the_kubelet_uses_folders_and_cgroups_of_its_instance() -> None:
    written = json.dumps([kubelet(Layout(2)), cni_network(Layout(2))])
    assert "/var/lib/namzu-cluster/2/" in written
    assert "/run/namzu-cluster/2/" in written
    assert "/namzu-cluster-2" in written
    assert "/var/lib/kubelet" not in written


def test_containerd_has_the_runtime_of_gvisor_beside_runc(tmp_path: Path) -> None:
    class Here(Layout):
        @property
        def state(self) -> Path:
            return tmp_path

    for folder in ("configuration", "containerd"):
        (tmp_path / folder).mkdir()
    write_configuration(Here(2))
    written = tomllib.loads((tmp_path / "configuration" / "containerd.toml").read_text(encoding="utf-8"))
    containerd = written["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]
    assert set(containerd["runtimes"]) == {"runc", RUNTIME_HANDLER}
    assert containerd["default_runtime_name"] == "runc"
    options = containerd["runtimes"][RUNTIME_HANDLER]["options"]
    runsc = tomllib.loads(Path(options["ConfigPath"]).read_text(encoding="utf-8"))
    assert runsc["binary_name"] == f"{tmp_path}/gvisor/runsc"
    assert runsc["root"] == "/run/namzu-cluster/2/runsc", "down removes it"


def test_service_addresses_are_routed_to_the_proxy_address_which_no_pod_gets() -> None:
    layout = Layout(2)
    addresses = cni_network(layout)["plugins"][0]["ipam"]
    assert {"dst": layout.service_subnet, "gw": layout.proxy_address} in addresses["routes"]
    assert addresses["ranges"][0][0]["gateway"] == layout.node_address
    first = ipaddress.IPv4Address(addresses["ranges"][0][0]["rangeStart"])
    assert first > ipaddress.IPv4Address(layout.proxy_address) > ipaddress.IPv4Address(layout.node_address)


def test_pods_use_the_dns_server_on_the_node_address() -> None:
    layout = Layout(2)
    assert kubelet(layout)["clusterDNS"] == [layout.node_address]
    listens = [line.split()[1:] for line in corefile(layout).splitlines() if line.strip().startswith("bind ")]
    assert listens == [[layout.node_address]] * 2
    assert "forward" not in corefile(layout)


def test_the_bridge_plugin_runs_in_the_pods_network(tmp_path: Path) -> None:
    class Here(Layout):
        @property
        def state(self) -> Path:
            return tmp_path

    network.write_cni_plugins(Here(2), Path("/usr/lib/cni"))
    script = tmp_path / "cni-plugins" / cni_network(Here(2))["plugins"][0]["type"]
    assert script.read_text(encoding="utf-8").splitlines()[-1] == (
        "exec nsenter --net=/run/namzu-cluster/2/pod-network -- /usr/lib/cni/bridge"
    )
    assert stat.S_IMODE(script.stat().st_mode) == 0o700


def test_a_kernel_without_bridge_filter_is_refused_with_both_next_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "BRIDGE_FILTER", tmp_path / "missing")
    with pytest.raises(CannotRun, match=r"modprobe br_netfilter.*up --no-enforcement"):
        network.check_bridge_filter()


def test_a_crd_is_served_without_its_webhook() -> None:
    crd: Manifest = {
        "spec": {
            "conversion": {"strategy": "Webhook"},
            "versions": [{"name": "v1alpha1", "served": True}, {"name": "v1beta1", "served": True}],
        }
    }
    spec = served_without_webhook(crd)["spec"]
    assert spec["conversion"] == {"strategy": "None"}
    assert {version["name"]: version["served"] for version in spec["versions"]} == {"v1alpha1": False, "v1beta1": True}
    assert crd["spec"]["conversion"] == {"strategy": "Webhook"}


MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:26 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
31 21 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
44 21 0:44 / /var/lib/namzu-cluster/1/kubelet/with\\040blank\\134 rw - tmpfs tmpfs rw
45 21 0:45 / /var/lib/namzu-cluster/10 rw - tmpfs tmpfs rw
46 44 0:46 / /var/lib/namzu-cluster/1/kubelet/with\\040blank\\134/inner rw - tmpfs tmpfs rw
"""


def test_the_mount_table_is_read_with_its_escapes() -> None:
    table = mounts.mount_table(MOUNTS)
    assert table[3].point == Path("/var/lib/namzu-cluster/1/kubelet/with blank\\")
    assert [entry.kind for entry in table[:3]] == ["ext4", "cgroup", "cgroup2"]


def test_mounts_below_a_folder_come_last_mounted_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS, encoding="utf-8")
    monkeypatch.setattr(mounts, "MOUNT_TABLE", tmp_path / "mountinfo")
    found = mounts.below(Path("/var/lib/namzu-cluster/1"))
    assert [point.name for point in found] == ["inner", "with blank\\"]


def unified_hierarchy(root: Path, available: str, enabled: str) -> None:
    (root / "cgroup.controllers").write_text(available, encoding="ascii")
    (root / "cgroup.subtree_control").write_text(enabled, encoding="ascii")


def test_on_cgroup_v2_missing_controllers_are_enabled(tmp_path: Path) -> None:
    unified_hierarchy(tmp_path, "cpu memory pids rdma\n", "cpu memory\n")
    cgroups.delegate(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text(encoding="ascii") == "+pids"
