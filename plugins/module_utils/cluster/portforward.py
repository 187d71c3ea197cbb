# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A connection to a port of a pod through the API server, for machines without a route to the pod network.

The wire is Kubernetes' port-forward subresource over a WebSocket, subprotocol ``v4.channel.k8s.io``: every message
begins with a channel number, 0 for data and 1 for an error text, and the first message of each channel repeats the port
(Kubernetes v1.36, ``k8s.io/streaming/pkg/portforward``).
"""

from __future__ import annotations

import contextlib
import functools
import re
import select
import socket
import ssl
import threading
import typing as t
import urllib.parse

from ..deadline import Deadline
from ..errors import ApiTimeoutError, ApiUnreachableError, CredentialError, GoneError, MissingDependencyError
from ..text import clean_text
from .auth.access import Access
from .client import Client
from .resources import ObjectRef
from .responses import EXPIRED, grant
from .transport.pools import ssl_context

_SUBPROTOCOL = "v4.channel.k8s.io"
_DATA = 0
_CHUNK = 64 * 1024

#: Seconds of silence from the pod after which a connection ends: longer than any command may run.
_IDLE_SECONDS = 2 * 86400.0


#: What an error text may name that is nobody's business: a pod's uid is its bind token.
_IDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}")
_ERROR_TEXT_CHARACTERS = 600

Result = t.TypeVar("Result")


class PodSocket(socket.socket):
    """Our end of a connection to a port of a pod.

    Attributes:
        errors: what the API server said about why it ended, as it came.
    """

    errors: t.Sequence[bytes] = ()

    @property
    def said(self) -> str:
        """The same in words, without ids; nothing while it is open, or when nothing was said."""
        return clean_text(_IDS.sub("...", clean_text(b"".join(self.errors))), _ERROR_TEXT_CHARACTERS)


def open_port(client: Client, pod: ObjectRef, port: int, deadline: Deadline) -> PodSocket:
    """Connect to a port of a pod; the socket speaks with the program behind it.

    Closing the socket ends the connection. A thread for each direction carries the bytes while it is open. After the
    end, its ``said`` is what the API server said about it.

    Raises:
        CredentialError: port-forwarding is not allowed to us (``create`` or ``get`` on ``pods/portforward``).
        GoneError: there is no such pod.
        ApiUnreachableError, ApiTimeoutError: no WebSocket to the API server in time.
        MissingDependencyError: websocket-client is not installed here.
    """
    remote = _dial(client, pod, port, deadline)
    caller_end, relay_end = socket.socketpair()
    ours = PodSocket(fileno=caller_end.detach())
    # Shared without the socket itself, which closes when it is forgotten.
    ours.errors = errors = list[bytes]()
    threading.Thread(target=_carry, args=(remote, relay_end, errors), name="namzu-port-forward", daemon=True).start()
    return ours


def _dial(client: Client, pod: ObjectRef, port: int, deadline: Deadline) -> t.Any:
    try:
        import websocket
    except ImportError:
        raise MissingDependencyError(
            "agent.address: port_forward needs the Python library websocket-client.",
            next_step="Install websocket-client (it comes with kubernetes) for the Python that runs this.",
        ) from None
    access = client.access
    url = f"{_websocket_address(access.server)}{pod.path}/portforward?ports={port}"
    seconds = max(0.001, deadline.remaining())
    remote: t.Any = websocket.WebSocket(sslopt=_tls_options(access) if url.startswith("wss:") else None)
    # The library bounds each read of its own; this bounds all of them together.
    bound = threading.Timer(seconds, _cut, (remote,))
    bound.daemon = True
    bound.start()
    try:
        with deadline.cancellation.cutting(functools.partial(_cut, remote)):
            remote.connect(
                url,
                timeout=seconds,
                header=[f"{name}: {value}" for name, value in client.headers(seconds).items() if name != "Accept"],
                subprotocols=[_SUBPROTOCOL],
                suppress_origin=True,
                # Whoever we are would be told to the server that an answer names.
                redirect_limit=0,
                **_proxy_options(access.proxy),
            )
    except websocket.WebSocketBadStatusException as error:
        raise _refused(pod, error.status_code) from None
    except (websocket.WebSocketException, OSError) as error:
        late = isinstance(error, (websocket.WebSocketTimeoutException, TimeoutError)) or deadline.expired
        if late:
            text = f"CONNECT {pod} port {port}: the API server did not answer in time."
            raise ApiTimeoutError(text, object=str(pod)) from None
        words = getattr(error, "strerror", None) or type(error).__name__
        raise ApiUnreachableError(f"CONNECT {pod} port {port}: no connection ({words}).", object=str(pod)) from None
    finally:
        bound.cancel()
    return remote


def _cut(remote: t.Any) -> None:
    if remote.sock is not None:
        _shut(remote.sock)


def _shut(end: socket.socket) -> None:
    # Past TLS, whose own shutdown takes its state away from the other thread.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(end, socket.SHUT_RDWR)


def _tls_options(access: Access) -> dict[str, t.Any]:
    # The library sets the first two on the context that it is given, over what stands there.
    return {
        "context": ssl_context(access),
        "check_hostname": access.verify,
        "cert_reqs": ssl.CERT_REQUIRED if access.verify else ssl.CERT_NONE,
        "server_hostname": access.server_name,
    }


def _websocket_address(server: str) -> str:
    scheme, _unused, rest = server.partition("://")
    return f"{'wss' if scheme == 'https' else 'ws'}://{rest}"


def _proxy_options(proxy: str | None) -> dict[str, t.Any]:
    if proxy is None:
        # Without any it would go by the environment of the process, which access has weighed already; and it looks at
        # the exceptions, here everybody, only when there is a proxy.
        return {"http_proxy_host": "nowhere.invalid", "http_proxy_port": 1, "http_no_proxy": ["*"]}
    parts = urllib.parse.urlsplit(proxy)
    options: dict[str, t.Any] = {
        "http_proxy_host": parts.hostname,
        "http_proxy_port": parts.port,
        "proxy_type": "http",
        # No host is called so, and without a list the environment's would count.
        "http_no_proxy": ["nowhere.invalid"],
    }
    if parts.username:
        options["http_proxy_auth"] = (urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
    return options


def _refused(pod: ObjectRef, status: int) -> Exception:
    request = f"CONNECT {pod}/portforward: the API server answered {status}."
    if status in (401, 403):
        right = grant("create and get on pods/portforward", ["claimant_port_forward"])
        return CredentialError(request, status=status, object=str(pod), next_step=EXPIRED if status == 401 else right)
    if status in (404, 410):
        return GoneError(request, status=status, object=str(pod))
    return ApiUnreachableError(request, object=str(pod))


def _carry(remote: t.Any, relay_end: socket.socket, errors: list[bytes]) -> None:
    """Carry bytes both ways until either side ends, then close both."""
    wire = remote.sock  # the library forgets it when the other side closes
    if isinstance(wire, ssl.SSLSocket):
        remote.sock = _SharedTls(wire)
    outward = threading.Thread(target=_to_them, args=(remote, wire, relay_end), name="namzu-port-forward", daemon=True)
    outward.start()
    try:
        _to_us(remote, relay_end, errors)
    finally:
        # Not the WebSocket's own close, which waits for the other side's answer.
        for end in (relay_end, wire):
            _shut(end)
        outward.join()
        relay_end.close()
        wire.close()


class _SharedTls:
    """A TLS connection that one thread reads while another writes, as far as the WebSocket library uses it.

    OpenSSL allows one call at a time for a connection, and the ``ssl`` module of Python 3.11 and 3.12 does not see to
    that: a read and a write at the same moment corrupted the connection, and the API server closed it. Here each call
    has the lock, and none waits for the other side while it has it.
    """

    def __init__(self, sock: ssl.SSLSocket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._lock = threading.Lock()

    def recv(self, size: int) -> bytes:
        return self._done(lambda: self._sock.recv(size))

    def send(self, data: bytes) -> int:
        return self._done(lambda: self._sock.send(data))

    def gettimeout(self) -> float:
        return _IDLE_SECONDS

    def settimeout(self, seconds: float) -> None:
        """It is always the time of silence after which a connection ends."""

    def close(self) -> None:
        """The socket is closed when both threads have ended."""

    def _done(self, call: t.Callable[[], Result]) -> Result:
        while True:
            event = select.POLLIN
            try:
                with self._lock:
                    return call()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            ready = select.poll()
            ready.register(self._sock, event)
            if not ready.poll(_IDLE_SECONDS * 1000):
                raise TimeoutError


def _to_us(remote: t.Any, relay_end: socket.socket, errors: list[bytes]) -> None:
    import websocket

    introduced: set[int] = set()
    # Any failure ends the connection, and the socket's other end sees that as one of its own.
    with contextlib.suppress(websocket.WebSocketException, OSError):
        remote.settimeout(_IDLE_SECONDS)
        while (message := remote.recv()) and isinstance(message, bytes):
            channel, content = message[0], message[1:]
            if channel not in introduced:
                introduced.add(channel)  # the first message of a channel repeats the port
            elif channel == _DATA:
                relay_end.sendall(content)
            elif content:
                errors.append(content)
                return


def _to_them(remote: t.Any, wire: socket.socket, relay_end: socket.socket) -> None:
    import websocket

    with contextlib.suppress(websocket.WebSocketException, OSError):
        while content := relay_end.recv(_CHUNK):
            remote.send_binary(bytes([_DATA]) + content)
        # We say no more, which this wire cannot tell the pod; what the pod says still comes until we have closed.
        _wait_until_closed(relay_end)
    # End the receiving, which waits for the pod.
    _shut(wire)


def _wait_until_closed(end: socket.socket) -> None:
    closed = select.poll()
    closed.register(end, 0)  # nothing but the hang-up, which is always told
    closed.poll()
