# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The agent's settings, all from its environment, and the environment that commands get."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 1024
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: What a command inherits of the container's environment; all else stays with the agent.
INHERITED = ("PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "HOSTNAME")
INHERITED_PREFIX = "LC_"


class SettingsError(Exception):
    """A variable that cannot be used."""


class Settings:
    """Where to listen, where commands start, and what they find in their environment."""

    def __init__(
        self,
        address: str,
        port: int,
        workspace: str,
        environment: dict[str, str],
        roots: tuple[str, ...] = (),
        listener: str = "",
    ) -> None:
        self.address = address
        self.port = port
        #: Where a listening socket is handed over, which is used instead of address and port; none when empty.
        self.listener = listener
        self.workspace = workspace
        self.environment = environment
        #: The folders that files are read and written beneath; none of them means everywhere.
        self.roots = roots


def read_settings(environ: Mapping[str, str]) -> Settings:
    """NAMZU_AGENT_ADDRESS, _PORT and _LISTENER, NAMZU_WORKSPACE, NAMZU_AGENT_ROOTS and NAMZU_AGENT_PASS."""
    port = environ.get("NAMZU_AGENT_PORT") or str(DEFAULT_PORT)
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise SettingsError(f"NAMZU_AGENT_PORT is {port!r}, which is not a TCP port")
    workspace = os.path.abspath(environ.get("NAMZU_WORKSPACE") or os.getcwd())
    roots = [root for root in environ.get("NAMZU_AGENT_ROOTS", "").split(":") if root]
    if not all(map(os.path.isabs, roots)):
        raise SettingsError(f"NAMZU_AGENT_ROOTS is {':'.join(roots)!r}: its folders are absolute, with colons between")
    return Settings(
        address=environ.get("NAMZU_AGENT_ADDRESS", ""),
        port=int(port),
        workspace=workspace,
        environment=command_environment(environ, workspace),
        roots=tuple(map(os.path.realpath, roots)),
        listener=environ.get("NAMZU_AGENT_LISTENER", ""),
    )


def command_environment(environ: Mapping[str, str], workspace: str) -> dict[str, str]:
    """The clean environment of every command.

    Locale, time zone, PATH and who we are come from the container, with defaults where it says nothing, and so does
    every name that NAMZU_AGENT_PASS lists with commas. HOME is the container's when it can be written to, otherwise
    the workspace: runtimes set HOME=/ for a uid that has no entry in /etc/passwd.
    """
    listed = {name.strip() for name in environ.get("NAMZU_AGENT_PASS", "").split(",")}
    names = listed.union(INHERITED, (name for name in environ if name.startswith(INHERITED_PREFIX)))
    home = environ.get("HOME", "")
    defaults = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8", "HOME": home if writable(home) else workspace}
    inherited = {name: environ[name] for name in names if name in environ}
    return {**defaults, **inherited, "NAMZU_WORKSPACE": workspace}


def writable(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
