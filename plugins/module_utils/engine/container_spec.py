# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The body of a request that creates a container, from what is wanted of it."""

from __future__ import annotations

import dataclasses
import typing as t

from .client import Json


@dataclasses.dataclass(frozen=True)
class Bind:
    """A folder of the engine's machine at a path of the container."""

    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class ContainerSpec:
    """A container without any privilege.

    Attributes:
        image: a reference or an id.
        argv: program and arguments; the image's own entry point is not used.
        user: ``uid:gid``.
        hostname: as the container sees itself.
        env, labels: by name.
        volume: where a new, anonymous volume is mounted, or None.
        volume_labels: labels of that volume.
        binds: folders of the engine's machine.
        tmpfs: path to mount options.
        network: ``none``, or the name of a network.
        read_only: whether the root file system is.
        runtime: a runtime's name, or None for the default.
        cpus, memory, pids: limits; None for none.
        seccomp: ``unconfined``, or None for the engine's profile.
    """

    image: str
    argv: tuple[str, ...]
    user: str
    hostname: str
    env: t.Mapping[str, str]
    labels: t.Mapping[str, str]
    volume: str | None
    binds: tuple[Bind, ...]
    tmpfs: t.Mapping[str, str]
    network: str = "none"
    read_only: bool = True
    volume_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    runtime: str | None = None
    cpus: float | None = None
    memory: int | None = None
    pids: int | None = None
    seccomp: str | None = None

    def body(self) -> Json:
        """The body of ``POST /containers/create``."""
        mounts: list[Json] = []
        if self.volume is not None:
            # NoCopy: what the image has at that path is not copied into it.
            options = {"NoCopy": True, "Labels": dict(self.volume_labels)}
            mounts.append({"Type": "volume", "Target": self.volume, "VolumeOptions": options})
        mounts += [
            {
                "Type": "bind",
                "Source": bind.source,
                "Target": bind.target,
                "BindOptions": {"Propagation": "rprivate"},
            }
            for bind in self.binds
        ]
        return {
            "Image": self.image,
            "Entrypoint": [],
            "Cmd": list(self.argv),
            "User": self.user,
            "Hostname": self.hostname,
            "WorkingDir": "/",
            "Env": [f"{name}={value}" for name, value in self.env.items()],
            "Labels": dict(self.labels),
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "NetworkMode": self.network,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges", *([f"seccomp={self.seccomp}"] if self.seccomp else [])],
                "IpcMode": "private",
                "Privileged": False,
                "PublishAllPorts": False,
                "ReadonlyRootfs": self.read_only,
                "AutoRemove": True,
                "Init": False,
                "Mounts": mounts,
                "Tmpfs": dict(self.tmpfs),
                # What PID 1 prints is a few lines.
                "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
                **({"Runtime": self.runtime} if self.runtime else {}),
                **({"NanoCpus": round(self.cpus * 1e9)} if self.cpus else {}),
                # As much swap as none: the two limits count memory and swap together.
                **({"Memory": self.memory, "MemorySwap": self.memory} if self.memory else {}),
                **({"PidsLimit": self.pids} if self.pids else {}),
            },
        }
