# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sandbox a connection is to, and by which way: its options, checked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t

from ...module_utils.errors import InputError
from ...module_utils.front.options.backend import KUBERNETES
from ...module_utils.front.options.specs import ACCESS, BACKEND
from ...module_utils.guest.protocol.heartbeat import check_heartbeat
from ...module_utils.lifecycle.durations import seconds

if t.TYPE_CHECKING:
    from ...module_utils.lifecycle.observed.agent_address import AddressMode

#: Options that say who we are and where the API server is.
ACCESS_OPTIONS = tuple(option for option in ACCESS if option not in ("namespace", "request_timeout"))

#: Options that name a container engine, beside those of its certificates.
ENGINE_OPTIONS = tuple(option for option in BACKEND if option != "backend")


@dataclasses.dataclass(frozen=True)
class Target:
    """A sandbox, and the way to it.

    Attributes:
        name: of the claim, or of the Sandbox that was made directly or is a workspace's.
        workspace: the id of a workspace, which counts instead of ``name``, or None.
        namespace: where it is, or None for the one that the access options name.
        uid: the uid of that claim or Sandbox when no other may stand for it, or None.
        port: the agent's.
        mode: how the agent is reached.
        heartbeat: seconds between the heartbeats of a connection; 0 for none.
        follow: whether a pod that took the place of the first one is good as well.
        connect_timeout: seconds for finding the agent and hearing from it.
        request_timeout: seconds for one request to the API server.
        access: the access options.
        backend: ``kubernetes`` or ``container``.
        engine: the options that name a container engine.
    """

    name: str
    workspace: str | None
    namespace: str | None
    uid: str | None
    port: int
    mode: AddressMode
    heartbeat: float
    follow: bool
    connect_timeout: float
    request_timeout: float
    access: t.Mapping[str, t.Any] = dataclasses.field(repr=False)
    backend: str = KUBERNETES
    engine: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"workspace {self.workspace!r}" if self.workspace is not None else f"sandbox {self.name}"

    @property
    def key(self) -> str:
        """The same for two connections that lead to the same agent on behalf of the same user; nothing can be read
        from it."""
        words = [self.name, self.workspace, self.namespace, self.uid, self.port, self.mode, dict(self.access)]
        words += [self.backend, dict(self.engine)]
        return hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()


def target_from(option: t.Callable[[str], t.Any]) -> Target:
    """The target that a connection's options describe; ``option`` gives the value of one.

    Raises:
        InputError: a value cannot be honoured.
    """
    port = int(option("agent_port"))
    if not 0 < port < 65536:
        raise InputError(f"agent_port (ansible_sandbox_agent_port) is {port}; it must be between 1 and 65535.")
    return Target(
        name=str(option("name") or ""),
        workspace=_text(option("workspace")),
        namespace=_text(option("namespace")),
        uid=_text(option("uid")),
        port=port,
        mode=option("agent_address"),
        heartbeat=check_heartbeat(
            "agent_heartbeat (ansible_sandbox_agent_heartbeat)", seconds("agent_heartbeat", option("agent_heartbeat"))
        ),
        follow=bool(option("follow")),
        connect_timeout=_bound("connect_timeout", option),
        request_timeout=_bound("request_timeout", option),
        access={name: option(name) for name in ACCESS_OPTIONS},
        backend=str(option("backend") or KUBERNETES),
        engine={name: option(name) for name in ENGINE_OPTIONS},
    )


def _text(value: t.Any) -> str | None:
    return str(value) if value else None


def _bound(name: str, option: t.Callable[[str], t.Any]) -> float:
    length = seconds(name, option(name))
    if length < 1.0:
        raise InputError(f"{name} (ansible_sandbox_{name}) is {length:g} s; it must be at least 1 s.")
    return length
