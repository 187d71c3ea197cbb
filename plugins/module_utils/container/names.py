# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How a sandbox is named and labelled among the containers of an engine, and what is where inside it."""

from __future__ import annotations

import re
import uuid

from ..errors import InputError

_PREFIX = "sandbox.namzu.ai/"
#: The sandbox's name; every container of ours has it.
NAME_LABEL = f"{_PREFIX}name"
#: Which acquire created it.
ACQUIRE_ID_LABEL = f"{_PREFIX}acquire-id"
#: What was asked for, as JSON, so that another request of the same name can be compared.
REQUEST_LABEL = f"{_PREFIX}request"
#: Seconds since 1970 by which it must have been started; one that was not is a leftover.
START_BY_LABEL = f"{_PREFIX}start-by"
#: How the agent is reached: the path of a socket on this machine, or ``relay``.
CHANNEL_LABEL = f"{_PREFIX}channel"
OWN_LABELS = frozenset((NAME_LABEL, ACQUIRE_ID_LABEL, REQUEST_LABEL, START_BY_LABEL, CHANNEL_LABEL))

#: On the volume of every sandbox.
VOLUME_LABEL = f"{_PREFIX}volume"

RELAY = "relay"

#: The volume with the agent, and what is in it.
FOLDER = "/opt/namzu"
AGENT = f"{FOLDER}/agent"
LEASE = f"{FOLDER}/lease"
#: The agent's bind token; nobody but root reads it, which no process of the sandbox is.
TOKEN = f"{FOLDER}/token"
#: Open to the lease's user alone; the folder of the socket is mounted below it.
PRIVATE = f"{FOLDER}/private"
SOCKET_FOLDER = f"{PRIVATE}/host"
SOCKET_NAME = "agent.sock"
#: Names of the abstract namespace of Unix sockets, which is the container's own.
RELAY_SOCKET = "@namzu-agent"
LISTENER_OFFER = "@namzu-listener"

WORKSPACE = "/workspace"
OUTPUTS = "/outputs"

#: The user of PID 1, which no command runs as. Below 65536, which is what user namespaces usually map.
LEASE_USER = "65431:65431"
DEFAULT_USER = "1000:1000"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def fresh_name() -> str:
    """A name for a sandbox that nobody named."""
    return f"namzu-task-{uuid.uuid4()}"


def container_name(name: str) -> str:
    """The name of the container, apart from the names of others on the engine."""
    return f"namzu-{name}"


def check_name(value: str) -> None:
    """Refuse a name that a sandbox of another backend could not have, before anything is sent."""
    if not _NAME.fullmatch(value):
        raise InputError(
            f"name is {value!r}, which cannot name a sandbox.",
            next_step="Use at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends.",
        )
