# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of containerd, its CNI network and the kubelet."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..build.gvisor import RUNTIME
from ..build.images import PAUSE_IMAGE
from ..failures import ClusterError
from ..host import commands
from ..host.network import BRIDGE, BRIDGE_PLUGIN
from ..layout import CLUSTER_DOMAIN, RUNTIME_HANDLER, Layout

MAX_PODS = 250
POD_PIDS_LIMIT = 256
# Zero switches a signal off: a test machine's full disk must not evict pods.
SIGNALS = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")
NO_EVICTION = dict.fromkeys(SIGNALS, "0%")

CONTAINERD = """\
version = 2
root = "{state}/containerd"
state = "{run}/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{run}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Needed where root lacks CAP_SYS_RESOURCE: runc otherwise dies with "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{run}/runc"
        SystemdCgroup = false
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{gvisor}]
      runtime_type = "io.containerd.runsc.v1"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{gvisor}.options]
        TypeUrl = "io.containerd.runsc.v1.options"
        ConfigPath = "{state}/configuration/runsc.toml"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{state}/configuration/cni"
"""


# systrap needs neither a device nor a privilege; the cgroups of a hybrid hierarchy are beyond gVisor.
RUNSC = """\
binary_name = "{programs}/{runtime}"
root = "{state}"
[runsc_config]
  platform = "systrap"
  network = "sandbox"
  ignore-cgroups = "true"
"""

# Any other name does not exist: no query leaves the cluster, and none waits for a server that does not answer.
COREFILE = """\
{zones} {{
    bind {address}
    errors
    ready 127.0.0.1:{ready}
    kubernetes {zones} {{
        kubeconfig {kubeconfig}
    }}
}}
. {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def write_configuration(layout: Layout) -> None:
    """Write every configuration file of the instance."""
    (layout.configuration / "cni").mkdir(parents=True, exist_ok=True)
    containerd = CONTAINERD.format(
        state=layout.state,
        run=layout.run,
        pause=PAUSE_IMAGE,
        cni=layout.cni_plugins,
        snapshotter=snapshotter(layout.state),
        gvisor=RUNTIME_HANDLER,
    )
    runsc = RUNSC.format(programs=layout.gvisor, runtime=RUNTIME, state=layout.runsc_state)
    (layout.configuration / "runsc.toml").write_text(runsc, encoding="utf-8")
    (layout.configuration / "containerd.toml").write_text(containerd, encoding="utf-8")
    _write_json(layout.configuration / "cni" / "10-namzu.conflist", cni_network(layout))
    _write_json(layout.configuration / "kubelet.json", kubelet(layout))
    (layout.configuration / "Corefile").write_text(corefile(layout), encoding="utf-8")


def cni_network(layout: Layout) -> dict[str, Any]:
    """Bridge and host-local addresses; the bridge is the next hop to service addresses (see network.py).

    No masquerading: pods reach each other and this machine, nothing beyond.
    """
    addresses = {
        "subnet": layout.pod_subnet,
        "rangeStart": layout.first_pod_address,
        "gateway": layout.node_address,
    }
    bridge = {
        "type": BRIDGE_PLUGIN,
        "bridge": BRIDGE,
        # The gateway is the machine at the other end of its link.
        "isGateway": False,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[addresses]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": layout.service_subnet, "gw": layout.proxy_address}],
            "dataDir": str(layout.run / "addresses"),
        },
    }
    return {"cniVersion": "0.4.0", "name": layout.name, "plugins": [bridge]}


def corefile(layout: Layout) -> str:
    """CoreDNS's configuration: the cluster's names, and the names of its addresses."""
    return COREFILE.format(
        zones=f"{CLUSTER_DOMAIN} in-addr.arpa ip6.arpa",
        address=layout.node_address,
        ready=layout.port("coredns-ready"),
        kubeconfig=layout.user_kubeconfig("coredns"),
    )


def kubelet(layout: Layout) -> dict[str, Any]:
    """The kubelet's configuration: private folders and ports, many small pods, no waiting on rate limits."""
    certificates = layout.certificates
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.node_address,
        "port": layout.port("kubelet"),
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": layout.port("kubelet-health"),
        "tlsCertFile": str(certificates / "kubelet.crt"),
        "tlsPrivateKeyFile": str(certificates / "kubelet.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "authority.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.name}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "clusterDomain": CLUSTER_DOMAIN,
        "clusterDNS": [layout.node_address],
        "maxPods": MAX_PODS,
        "podPidsLimit": POD_PIDS_LIMIT,
        "evictionHard": NO_EVICTION,
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(layout.pod_logs),
        "volumePluginDir": str(layout.kubelet_root / "volume-plugins"),
        "oomScoreAdj": 0,
        "serializeImagePulls": False,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "eventRecordQPS": 0,
        "registryPullQPS": 0,
        "nodeStatusUpdateFrequency": "5s",
    }


def snapshotter(folder: Path) -> str:
    """overlayfs where the folder's file system carries an overlay, else native, which copies."""
    probe = Path(tempfile.mkdtemp(prefix="overlay-probe-", dir=folder))
    for name in ("lower", "upper", "work", "merged"):
        (probe / name).mkdir()
    options = f"lowerdir={probe}/lower,upperdir={probe}/upper,workdir={probe}/work"
    try:
        commands.run(["mount", "-t", "overlay", "overlay", "-o", options, f"{probe}/merged"])
    except ClusterError:
        return "native"
    else:
        with suppress(ClusterError):
            commands.run(["umount", f"{probe}/merged"])
        return "overlayfs"
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
