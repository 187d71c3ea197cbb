# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Start of the agent: ``python3 -I /opt/namzu/agent``.

It starts twice. The first start takes the bind token out of the environment, puts it into a pipe and executes the same
program again without it: the kernel shows in /proc/PID/environ what the last execve was given, so a command that the
agent runs finds no token there. Only ``os`` and ``sys`` are imported before that, to keep a pod's start short.
"""

from __future__ import annotations

import os
import sys

# ``signal`` itself imports ``enum``, which costs more than all that the first start does.
from _signal import SIG_BLOCK, SIGINT, SIGTERM, pthread_sigmask  # type: ignore[import-not-found]

TOKEN_VARIABLE = "NAMZU_AGENT_BIND_TOKEN"  # noqa: S105
#: A pod's uid has 36 characters; a token this size fits a pipe without a reader and the first frame.
TOKEN_LIMIT = 1024


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--token-fd" and sys.argv[2].isdigit():
        serve(receive_token(int(sys.argv[2])))
    token = os.environ.pop(TOKEN_VARIABLE, "").strip()
    if not token:
        sys.exit(f"namzu agent: {TOKEN_VARIABLE} is not set: give it the pod's uid by the downward API (metadata.uid)")
    if len(os.fsencode(token)) > TOKEN_LIMIT:
        sys.exit(f"namzu agent: {TOKEN_VARIABLE} is longer than {TOKEN_LIMIT} bytes")
    start_again(token)


def start_again(token: str) -> None:
    """Execute this program again, with the token in a pipe.

    PID 1 does not get a signal that it has no handler for, so a SIGTERM of these first milliseconds would be lost and
    the pod would stay for its whole grace period. Blocked it is kept until ``Init`` has its handlers.
    """
    pthread_sigmask(SIG_BLOCK, (SIGTERM, SIGINT))
    reading, writing = os.pipe()
    os.write(writing, os.fsencode(token))
    os.close(writing)
    os.set_inheritable(reading, True)
    python = sys.executable or "/proc/self/exe"
    # -I and -S: nothing from the environment or from site-packages; -B: there is nowhere to write byte code to.
    arguments = [python, "-I", "-S", "-B", "-X", "utf8", os.path.dirname(os.path.abspath(__file__))]
    os.execve(python, [*arguments, "--token-fd", str(reading)], dict(os.environ))  # noqa: S606


def receive_token(fd: int) -> bytes:
    token = os.read(fd, TOKEN_LIMIT)
    os.close(fd)
    return token


def serve(token: bytes) -> None:
    from init import Init

    init = Init()

    from server import Server
    from settings import SettingsError, read_settings

    try:
        server = Server(read_settings(os.environ), token, init.children)
    except (SettingsError, OSError) as error:
        sys.exit(f"namzu agent: cannot start: {error}")
    server.start()
    sys.stderr.write(f"namzu agent: listening on {server.where}\n")
    sys.stderr.flush()
    init.run(server)


main()
