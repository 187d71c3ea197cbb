# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The body of an ``execute`` request, checked, with its defaults filled in."""

from __future__ import annotations

import binascii
import os

from fields import check_fields, is_text, parse_number, parse_seconds, require
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from settings import Settings

DEFAULT_MAX_OUTPUT = 1024 * 1024
MAX_OUTPUT_LIMIT = 256 * 1024 * 1024
DEFAULT_GRACE = 2.0
GRACE_LIMIT = 60.0
TIMEOUT_LIMIT = 1e9

FIELDS = frozenset(("argv", "command", "shell", "cwd", "env", "stdin", "timeout", "grace", "max_output"))


class Command:
    """What to run, and how.

    Built from a request's body: Refused ``bad-request`` for what cannot be honoured, ``bad-cwd`` for a folder that
    cannot be entered.
    """

    def __init__(self, body: dict[str, Any], settings: Settings, more: frozenset[str] = frozenset()) -> None:
        """``more``: fields of the body that are the operation's own."""
        check_fields(body, FIELDS | more, "a command")
        self.argv = parse_argv(body)
        #: The first word that the client asked for; a terminal starts the command with another program.
        self.program = self.argv[0]
        self.cwd = parse_cwd(body.get("cwd"), settings.workspace)
        self.env = {**settings.environment, **parse_env(body.get("env", {}))}
        #: Input that came with the request, and whether more follows in frames; None is /dev/null.
        self.stdin, self.stdin_follows = parse_stdin(body.get("stdin"))
        #: Seconds, or None without a bound.
        self.timeout = parse_seconds(body, "timeout", TIMEOUT_LIMIT)
        require(self.timeout is None or self.timeout > 0, "timeout is above 0")
        #: Seconds between SIGTERM and SIGKILL.
        grace = parse_seconds(body, "grace", GRACE_LIMIT)
        self.grace = DEFAULT_GRACE if grace is None else grace
        #: Bytes of each output stream.
        self.max_output = parse_number(body, "max_output", 0, MAX_OUTPUT_LIMIT, DEFAULT_MAX_OUTPUT)


def parse_argv(body: dict[str, Any]) -> list[str]:
    argv, command, shell = body.get("argv"), body.get("command"), body.get("shell", False)
    if shell is True:
        require(argv is None and is_text(command), "with shell, command is a text and argv is not given")
        return ["/bin/sh", "-c", str(command)]
    require(shell is False and command is None, "command goes with shell: true; without a shell give argv")
    require(isinstance(argv, list) and bool(argv) and all(map(is_text, argv)), "argv is a list of texts without NUL")
    require(bool(argv and argv[0]), "argv names a program first")
    return list(argv or ())


def parse_cwd(cwd: Any, workspace: str) -> str:
    require(cwd is None or is_text(cwd), "cwd is a text without NUL")
    folder = os.path.join(workspace, cwd or "")
    if not os.path.isdir(folder):
        raise Refused("bad-cwd", f"{folder} is not a folder")
    if not os.access(folder, os.X_OK):
        raise Refused("bad-cwd", f"{folder} may not be entered")
    return folder


def parse_env(env: Any) -> dict[str, str]:
    require(isinstance(env, dict), "env is an object")
    for name, value in env.items():
        require(is_text(name) and bool(name) and "=" not in name, "a name in env is not empty, without = and NUL")
        require(is_text(value), f"env {name} is a text without NUL")
    return dict(env)


def parse_stdin(stdin: Any) -> tuple[bytes | None, bool]:
    """The input that came along, and whether more follows."""
    if stdin is None:
        return None, False
    encoding, data = (stdin.get("encoding"), stdin.get("data")) if isinstance(stdin, dict) else (None, None)
    if encoding == "frames" and data is None:
        return b"", True
    require(encoding in ("utf-8", "base64") and isinstance(data, str), "stdin has encoding utf-8, base64 or frames")
    try:
        if encoding == "utf-8":
            return str(data).encode("utf-8"), False
        encoded = str(data).encode("ascii")
        decoded = binascii.a2b_base64(encoded)
        # Before Python 3.11 binascii skips what is not base64.
        require(binascii.b2a_base64(decoded, newline=False) == encoded, "stdin is not base64")
        return decoded, False
    except ValueError:
        raise Refused("bad-request", f"stdin is not {encoding}") from None
