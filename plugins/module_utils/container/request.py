# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for, and what it gets: plain data on both sides of an acquire."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import pathlib
import re
import typing as t

from ..boundary.reach.requests import NO_NETWORK, Request
from ..errors import InputError
from ..guest.agent import AgentAddress
from ..guest.isolation import Isolation, IsolationVerdict, check_isolation_option
from ..guest.privileges import Privileges
from .names import DEFAULT_USER, FOLDER, LEASE_USER, OUTPUTS, OWN_LABELS, check_name

DEFAULT_TTL = 3600.0
DEFAULT_READY_TIMEOUT = 60.0
MINIMUM_TTL = 10.0
MAXIMUM_SECONDS = 3650 * 86400.0
#: Docker's own least memory limit.
MINIMUM_MEMORY = 6 * 1024 * 1024

Channel = t.Literal["auto", "socket", "relay"]
Seccomp = t.Literal["default", "unconfined"]

_USER = re.compile(r"[1-9][0-9]{0,8}:[1-9][0-9]{0,8}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = (FOLDER, "/proc", "/sys", "/dev", "/etc", OUTPUTS)


@dataclasses.dataclass(frozen=True)
class ContainerRequest:
    """One sandbox, as a container.

    Attributes:
        image: a reference; with a digest it names one image for ever.
        name: the sandbox's name, or None for a fresh one.
        runtime: a runtime of the engine (``runc``, ``runsc``), or None for the engine's default.
        user: ``uid:gid`` of all commands; neither is 0.
        cpus: processors (above 0), or None for no limit.
        memory: bytes (at least 6 MiB), without swap, or None for no limit.
        pids: processes and threads, the agent's among them (at least 16), or None for no limit.
        read_only_rootfs: whether the image cannot be written to.
        writable_paths: folders that are writable beside ``/tmp``, ``/var/tmp`` and the workspace; each is empty.
        env: variables of commands.
        labels: labels of the container.
        network: the name of a network of the engine, or None for none at all.
        outputs: a folder of this machine that is writable in the sandbox as ``/outputs``, or None.
        seccomp: ``default`` for the engine's profile, ``unconfined`` for none.
        egress: what it may reach.
        network_probe: whether that is also tried from inside.
        ttl: seconds until the container ends (at least 10).
        ready_timeout: seconds for everything from the first request to the verified sandbox (at least 1).
        isolation: the least isolation from the machine's kernel: ``any``, ``gvisor`` or ``vm``.
        channel: how the agent is reached: a socket on a bind mount, the engine's exec API, or the first that works.
    """

    image: str
    name: str | None = None
    runtime: str | None = None
    user: str = DEFAULT_USER
    cpus: float | None = None
    memory: int | None = None
    pids: int | None = None
    read_only_rootfs: bool = True
    writable_paths: tuple[str, ...] = ()
    env: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    network: str | None = None
    outputs: str | None = None
    seccomp: Seccomp = "default"
    egress: Request = dataclasses.field(default_factory=lambda: Request(NO_NETWORK))
    network_probe: bool = False
    ttl: float = DEFAULT_TTL
    ready_timeout: float = DEFAULT_READY_TIMEOUT
    channel: Channel = "auto"
    isolation: Isolation = "any"

    def __post_init__(self) -> None:
        if not self.image or any(character.isspace() for character in self.image) or self.image.startswith("-"):
            raise InputError(f"image is {self.image!r}, which is not a reference to an image.")
        if self.name is not None:
            check_name(self.name)
        check_isolation_option(self.isolation)
        self._check_user()
        self._check_limits()
        self._check_paths()
        for key in self.env:
            if not _VARIABLE.fullmatch(key) or key.startswith("NAMZU_"):
                raise InputError(f"env has {key!r}, which cannot be a variable of a command.")
        for key in self.labels:
            if not key or key in OWN_LABELS:
                raise InputError(f"labels has {key!r}, which cannot be set.")
        if not MINIMUM_TTL <= self.ttl <= MAXIMUM_SECONDS:
            raise InputError(f"ttl is {self.ttl:g} s; it must be at least {MINIMUM_TTL:g} s and at most ten years.")
        if not 1 <= self.ready_timeout <= MAXIMUM_SECONDS:
            raise InputError(f"ready_timeout is {self.ready_timeout:g} s; it must be at least 1 s.")

    @property
    def identity(self) -> dict[str, t.Any]:
        """What two requests of one name must agree on, as plain data; values of variables as a hash."""
        env = json.dumps(sorted(self.env.items())).encode()
        return {
            **{name: getattr(self, name) for name in _COMPARED},
            "writable_paths": sorted(self.writable_paths),
            "labels": dict(sorted(self.labels.items())),
            "env": hashlib.sha256(env).hexdigest()[:16] if self.env else None,
            "egress": self.egress.kind,
        }

    def _check_user(self) -> None:
        if not _USER.fullmatch(self.user):
            raise InputError(
                f"user is {self.user!r}; it must be uid:gid with numbers above 0.",
                next_step="A sandbox never runs as root.",
            )
        if self.user.partition(":")[0] == LEASE_USER.partition(":")[0]:
            raise InputError(f"user is {self.user!r}, which is the user of the process that holds the lease.")

    def _check_limits(self) -> None:
        if self.cpus is not None and not 0 < self.cpus <= 4096:
            raise InputError(f"cpus is {self.cpus:g}; it must be above 0.")
        if self.memory is not None and self.memory < MINIMUM_MEMORY:
            raise InputError(f"memory is {self.memory} bytes; it must be at least {MINIMUM_MEMORY}.")
        if self.pids is not None and self.pids < 16:
            raise InputError(f"pids is {self.pids}; it must be at least 16, for the agent has threads of its own.")

    def _check_paths(self) -> None:
        if self.writable_paths and not self.read_only_rootfs:
            raise InputError(
                "writable_paths is given beside read_only_rootfs: false, which makes every path writable.",
                next_step="Leave out one of the two.",
            )
        for path in self.writable_paths:
            pure = pathlib.PurePosixPath(path)
            plain = str(pure) == path and path.startswith("/") and ".." not in pure.parts and path != "/"
            taken = next(
                (
                    each
                    for each in _RESERVED
                    if pure.is_relative_to(each) or pathlib.PurePosixPath(each).is_relative_to(pure)
                ),
                None,
            )
            if not plain or set(path) & set(":,") or taken:
                raise InputError(
                    f"writable_paths has {path!r}; it must be an absolute path, not / and none of "
                    f"{', '.join(_RESERVED)}."
                )
        if self.outputs is not None and not self.outputs.startswith("/"):
            raise InputError(f"outputs is {self.outputs!r}; it must be an absolute path of this machine.")


_COMPARED = ("image", "runtime", "user", "cpus", "memory", "pids", "read_only_rootfs", "network", "outputs", "seccomp")


@dataclasses.dataclass(frozen=True)
class Confinement:
    """What the engine reports about how a container runs.

    Attributes:
        runtime: the runtime's name.
        seccomp: the name of the profile (``default``), or ``unconfined``.
        read_only_rootfs: whether the image cannot be written to.
        user: ``uid:gid`` of commands.
        limits: ``cpus``, ``memory`` and ``pids`` that the engine enforces; None for no limit.
    """

    runtime: str
    seccomp: str
    read_only_rootfs: bool
    user: str
    limits: t.Mapping[str, float | int | None]


@dataclasses.dataclass(frozen=True)
class NetworkProven:
    """What the engine reports about a container's networks.

    Attributes:
        request: what was asked for.
        networks: the networks that the container is attached to; empty for none.
        notes: what is open beyond the name of the request.
    """

    request: str
    networks: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        """The finding as plain data."""
        return {
            "holds": True,
            "request": self.request,
            "networks": list(self.networks),
            "notes": list(self.notes),
        }


@dataclasses.dataclass(frozen=True)
class ContainerVerdict:
    """What was verified before the sandbox was handed out.

    Attributes:
        privileges: what the probe inside the container read about itself.
        confinement: what the engine reports about the container.
        egress: what the engine reports about its networks.
        network_probe: what was tried from inside, as plain data, or None.
        isolation: how it is isolated from the kernel of the machine.
    """

    privileges: Privileges
    confinement: Confinement
    egress: NetworkProven
    network_probe: t.Mapping[str, t.Any] | None = None
    isolation: IsolationVerdict | None = None


@dataclasses.dataclass(frozen=True)
class ContainerSandbox:
    """A sandbox that is held, reachable and verified.

    Attributes:
        name: the sandbox's name; with it the sandbox is used and released.
        uid: the container's id.
        container: the container's name.
        agent: where the agent answers, with its bind token; the token shows in no text form.
        labels: the container's labels, those of ours left out.
        expires_at: when the container ends.
        timings: milliseconds a stage: ``claim``, ``ready``, ``bind``, ``probe``, ``boundary``, ``total``.
        verdict: what was verified.
        created: whether this acquire created it.
    """

    name: str
    uid: str
    container: str
    agent: AgentAddress
    labels: t.Mapping[str, str]
    expires_at: datetime.datetime
    timings: t.Mapping[str, float]
    verdict: ContainerVerdict
    created: bool
