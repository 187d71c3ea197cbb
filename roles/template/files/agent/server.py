# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Accepting connections, admitting those that have the token, and handing each to its operation."""

from __future__ import annotations

import collections
import contextlib
import errno
import json
import os
import resource
import socket
import sys
import threading
import time

# ``hmac`` gives the same function, and loads OpenSSL for it.
from _operator import _compare_digest as compare_digest

from operations import Context, find
from wire import (
    FIRST_FRAME_LIMIT,
    FIRST_FRAME_TIME,
    FRAME_LIMIT,
    LONGEST_BEAT,
    REQUEST_TIME,
    SHORTEST_BEAT,
    Peer,
    PeerGone,
    Refused,
    encode_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from children import Children
    from settings import Settings

CONNECTION_LIMIT = 256
#: Each connection and its command hold up to six descriptors.
DESCRIPTORS = 4096
#: A thread's stack. The C library's default is anything from 128 KiB (musl) to a resource limit.
STACK = 1024 * 1024
#: Objects and lists in one request; what we know needs five.
STRUCTURES = 100
#: Refused connections are kept for this long (seconds), so that the refusal arrives; at most this many.
LINGER_TIME = 0.5
LINGER_LIMIT = 64

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


class Server:
    """Listens from its construction; serves from ``start``."""

    def __init__(self, settings: Settings, token: bytes, children: Children) -> None:
        self._token = token
        self._context = Context(settings, children)
        if settings.listener:
            from handover import receive_listener

            self._listener = receive_listener(settings.listener)
        else:
            self._listener = listen(settings.address, settings.port)
        self._stopping = False
        self._lock = threading.Lock()
        self._connections = 0
        self._lingering: collections.deque[tuple[float, socket.socket]] = collections.deque()
        raise_descriptor_limit()
        threading.stack_size(STACK)

    @property
    def where(self) -> str:
        if self._listener.family == socket.AF_UNIX:
            return os.fsdecode(self._listener.getsockname()).replace("\0", "@")
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def busy(self) -> bool:
        """Whether anybody is being served."""
        return self._connections > 0

    def start(self) -> None:
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def stop(self) -> None:
        """Accept no connection from now on."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stopping:
            try:
                sock, _address = self._listener.accept()
            except OSError:
                if not self._stopping:
                    # No descriptor left, or a peer that gave up: others may be served again in a moment.
                    time.sleep(0.05)
                continue
            self._close_lingering()
            if not self._begin(sock):
                self._raise_if_busy(sock)

    def _begin(self, sock: socket.socket) -> bool:
        """Serve a connection in a thread of its own; False when there is no room for one."""
        with self._lock:
            if self._connections >= CONNECTION_LIMIT:
                return False
            self._connections += 1
        try:
            threading.Thread(target=self._serve, args=(sock,), name="peer", daemon=True).start()
        except RuntimeError:
            # The pod's limit of processes counts threads.
            with self._lock:
                self._connections -= 1
            return False
        return True

    def _raise_if_busy(self, sock: socket.socket) -> None:
        """Answer ``busy`` without waiting for anything."""
        try:
            sock.setblocking(False)
            sock.send(encode_json(Refused("busy", f"all {CONNECTION_LIMIT} connections are in use").answer()))
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            sock.close()
            return
        self._lingering.append((time.monotonic(), sock))
        self._close_lingering()

    def _close_lingering(self) -> None:
        now = time.monotonic()
        while self._lingering and (len(self._lingering) > LINGER_LIMIT or now - self._lingering[0][0] > LINGER_TIME):
            self._lingering.popleft()[1].close()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                peer = Peer(sock)
                try:
                    self._operate(peer)
                except Refused as refused:
                    peer.refuse(refused)
        except (PeerGone, OSError):
            pass
        finally:
            with self._lock:
                self._connections -= 1

    def _operate(self, peer: Peer) -> None:
        operation, body = self._admit(peer)
        try:
            find(operation)(self._context, peer, body)
        except (Refused, PeerGone):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not look like a lost connection
            if isinstance(error, OSError) and error.errno in EXHAUSTED:
                raise Refused("exhausted", f"the agent: {error.strerror}") from None
            sys.excepthook(type(error), error, error.__traceback__)
            raise Refused("internal", f"a fault of the agent ({type(error).__name__}); its log says more") from None

    def _admit(self, peer: Peer) -> tuple[str, dict[str, Any]]:
        """Read the first frame and check its token; then the request, which may be a frame of its own."""
        request = parse(peer.read_frame(FIRST_FRAME_LIMIT, FIRST_FRAME_TIME))
        given = request.get("token")
        known = compare_digest(given.encode("utf-8", "replace") if isinstance(given, str) else b"", self._token)
        if not known:
            raise Refused("unauthorized", "the token is missing or is not this agent's")
        if request.get("op") == "auth":
            request = parse(peer.read_frame(FRAME_LIMIT, REQUEST_TIME))
        operation, body = request.get("op"), request.get("body", {})
        if not isinstance(operation, str) or not isinstance(body, dict):
            raise Refused("bad-request", "a request is an object with the text op and the object body")
        peer.decoder.limit = FRAME_LIMIT
        peer.heartbeat = heartbeat(request.get("heartbeat", 0))
        return operation, body


def heartbeat(asked: Any) -> float:
    """Seconds between the heartbeats of a stream, as near to what was asked for as we go; 0 is off."""
    if not isinstance(asked, (int, float)) or isinstance(asked, bool) or not asked >= 0:
        raise Refused("bad-request", "heartbeat is a number of seconds, 0 for none")
    return asked and min(max(float(asked), SHORTEST_BEAT), LONGEST_BEAT)


def parse(frame: bytes) -> dict[str, Any]:
    """The object in a frame. Anything else is an empty one: whoever sent it has shown no token.

    Structures are counted first, outside of strings, because deep nesting makes the C code of ``json`` recurse until a
    thread's stack is gone and the process with it.
    """
    outside = frame.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    if sum(part.count(b"[") + part.count(b"{") for part in outside) > STRUCTURES:
        return {}
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def listen(address: str, port: int) -> socket.socket:
    """A listening socket: on ``address``, or on all of them, over IPv6 and IPv4 where both exist."""
    if address:
        found = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST
        )[0]
        return bound(found[0], found[4])
    try:
        return bound(socket.AF_INET6, ("::", port))
    except OSError:
        return bound(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104


def bound(family: int, where: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(where)
        sock.listen(CONNECTION_LIMIT)
    except OSError:
        sock.close()
        raise
    return sock


def raise_descriptor_limit() -> None:
    """Room for every connection, as far as the hard limit lets us; commands inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
