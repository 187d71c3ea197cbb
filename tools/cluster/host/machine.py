# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings and folders of the machine that all instances share: recorded before the first, restored after the last."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from ..layout import STATE_ROOT, Layout

RECORD = STATE_ROOT / "machine.json"
# The kubelet and the bridge plugin write these.
SYSCTLS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
# Paths that the programs create and that no option moves, deepest first.
FOLDERS = (
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    "/var/lib/cni/results",
    "/var/lib/cni",
    "/var/log/containers",
    "/run/containerd/s",
    "/run/containerd",
    "/run/netns",
    "/etc/cni/net.d",
    "/etc/cni",
)
DEVICE_PLUGIN_FILES = ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION")


def record() -> None:
    """Record the machine's settings, unless an earlier start did."""
    if RECORD.exists():
        return
    STATE_ROOT.mkdir(parents=True, exist_ok=True)
    record = {
        "sysctls": {name: value for name in SYSCTLS if (value := _read(name)) is not None},
        "folders": [folder for folder in FOLDERS if Path(folder).exists()],
    }
    unfinished = RECORD.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(RECORD)


def restore() -> None:
    """Restore settings and remove folders that did not exist before, when no instance is left."""
    if any(entry.is_dir() for entry in _entries(STATE_ROOT)):
        return
    if RECORD.exists():
        for name, value in changed_sysctls().items():
            with suppress(OSError):
                (Path("/proc/sys") / name).write_text(value, encoding="ascii")
        for folder in new_folders():
            with suppress(OSError):
                folder.rmdir()
        RECORD.unlink()
    with suppress(OSError):
        STATE_ROOT.rmdir()


def changed_sysctls() -> dict[str, str]:
    """Settings that differ from the record, with the recorded value."""
    noted: dict[str, str] = _record().get("sysctls", {})
    return {name: value for name, value in noted.items() if _read(name) != value}


def new_folders() -> list[Path]:
    """Shared folders that exist now and did not before the first start."""
    record = _record()
    if not record:
        return []
    return [Path(folder) for folder in FOLDERS if folder not in record["folders"] and Path(folder).exists()]


def shared_files(layout: Layout) -> list[Path]:
    """Files in shared folders that belong to this instance."""
    found = [result for result in _entries(Path("/var/lib/cni/results")) if _mentions(result, f"{layout.run}/")]
    links = [entry for entry in _entries(Path("/var/log/containers")) if entry.is_symlink()]
    found.extend(link for link in links if layout.pod_logs in link.readlink().parents)
    found.extend(shim_sockets(layout))
    return sorted(found)


def shim_sockets(layout: Layout) -> list[Path]:
    """Sockets of the instance's shims: in a folder that all containerd processes share; each task has its path."""
    found = []
    for address in (layout.run / "containerd").glob("io.containerd.runtime.v2.task/*/*/address"):
        with suppress(OSError):
            socket = Path(address.read_text(encoding="utf-8").strip().removeprefix("unix://"))
            if socket.parent == Path("/run/containerd/s") and socket.exists():
                found.append(socket)
    return found


def remove_shared_files(layout: Layout) -> None:
    """Remove this instance's files from shared folders, and the kubelet's own when none of them existed before."""
    for path in shared_files(layout):
        path.unlink(missing_ok=True)
    plugins = Path("/var/lib/kubelet/device-plugins")
    if plugins in new_folders() and not other_instances(layout):
        for name in DEVICE_PLUGIN_FILES:
            (plugins / name).unlink(missing_ok=True)


def other_instances(layout: Layout) -> list[Path]:
    """State folders of other instances."""
    return [entry for entry in _entries(STATE_ROOT) if entry.is_dir() and entry != layout.state]


def _record() -> dict[str, dict[str, str]]:
    try:
        record: dict[str, dict[str, str]] = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record


def _mentions(path: Path, text: str) -> bool:
    # A cached CNI result names the network namespace, whose path only our containerd uses.
    try:
        return text in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _read(sysctl: str) -> str | None:
    try:
        return (Path("/proc/sys") / sysctl).read_text(encoding="ascii").strip()
    except OSError:
        return None


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
