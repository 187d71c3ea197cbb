# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How the agent is reached: by a socket in a folder that is mounted into the container, or over the exec API."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import socket
import stat
import tempfile

from ..deadline import Deadline
from ..engine.client import EngineClient
from ..engine.connection import connect_unix
from ..engine.relay import open_relay
from ..errors import InputError
from ..guest.agent import AgentAddress
from .names import AGENT, LEASE_USER, RELAY, RELAY_SOCKET, SOCKET_FOLDER, SOCKET_NAME

#: Bytes of the path of a Unix socket (unix(7)), with its end.
_LONGEST_PATH = 107


def socket_folder(client: EngineClient, key: str) -> pathlib.Path | None:
    """A new folder for the socket of one sandbox; None where sockets cannot be used.

    Its parents are open to this user alone. The folder itself is writable for everyone, because the process that makes
    the socket is another user; commands in the sandbox do not reach it.
    """
    try:
        folder = engine_folder(client) / key
        if len(os.fsencode(folder / SOCKET_NAME)) > _LONGEST_PATH:
            return None
        folder.mkdir()
        folder.chmod(0o777)
    except (OSError, InputError):
        return None
    return folder


def engine_folder(client: EngineClient) -> pathlib.Path:
    """The folder with the sockets of an engine's sandboxes, created where it is missing.

    Raises OSError, and InputError when another user owns it.
    """
    own = os.environ.get("XDG_RUNTIME_DIR")
    root = pathlib.Path(own, "namzu-sandbox") if own else pathlib.Path(tempfile.gettempdir(), f"namzu-{os.getuid()}")
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InputError(f"{root} is not a folder of this user alone.", next_step="Remove it.")
    folder = root / hashlib.sha256(client.access.docker_host.encode()).hexdigest()[:8]
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_folder(channel: str) -> None:
    """Remove the folder of a sandbox's socket, when it has one; what was put there is never followed."""
    if channel != RELAY and pathlib.Path(channel).name == SOCKET_NAME:
        shutil.rmtree(pathlib.Path(channel).parent, ignore_errors=True)


def listening_path(channel: str) -> str:
    """Where the agent listens, as the container sees it."""
    return RELAY_SOCKET if channel == RELAY else f"{SOCKET_FOLDER}/{SOCKET_NAME}"


def agent_at(client: EngineClient, container: str, uid: str, token: str, channel: str) -> AgentAddress:
    """The address of an agent.

    Args:
        container: the container's name.
        uid: its id.
        channel: the path of the socket on this machine, or ``relay``. A socket that this machine or this user does not
            reach is replaced by the relay.
    """

    def dial(deadline: Deadline) -> socket.socket:
        if channel != RELAY:
            with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
                return connect_unix(channel, deadline)
        argv = ["python3", "-E", "-s", "-S", "-B", f"{AGENT}/bridge.py", listening_path(channel)]
        return open_relay(client, uid, argv, LEASE_USER, deadline)

    return AgentAddress(container, 0, token, dial=dial)
