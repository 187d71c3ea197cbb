# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between standard input and output and the agent's socket: ``python3 -E -s -S -B bridge.py SOCKET``.

An engine runs it in the container where there is no other way to the agent.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

from handover import address

CHUNK = 64 * 1024


def main() -> None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(address(sys.argv[1]))
    except OSError as error:
        sys.exit(f"connection refused: {error.strerror}")
    # A thread for each direction: whoever sends while the agent sends must not wait for it.
    threading.Thread(target=carry, args=(0, sock.fileno()), daemon=True).start()
    carry(sock.fileno(), 1)


def carry(source: int, target: int) -> None:
    """Carry bytes until either side ends, which ends the connection: the protocol has no half-open one."""
    try:
        data = os.read(source, CHUNK)
        while data:
            while data:
                data = data[os.write(target, data) :]
            data = os.read(source, CHUNK)
    except OSError:
        pass
    os._exit(0)


main()
