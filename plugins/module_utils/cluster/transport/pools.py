# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The wire to the API server: pools of connections, with TLS, proxy and bounds set once."""

from __future__ import annotations

import collections
import contextlib

# The first name that a process looks up loads it; here it is loaded once, before Ansible forks a process a task.
import encodings.idna  # noqa: F401  # pylint: disable=unused-import
import os
import socket
import ssl
import tempfile
import threading
import typing as t
import urllib.parse
import weakref

from ...deadline import Deadline
from ...errors import AccessError, MissingDependencyError
from ..auth.access import Access
from .bounded import BoundedResponse

try:
    import urllib3
    import urllib3.exceptions as failures
except ImportError:  # reported when a connection is made: sanity imports this file without libraries
    HAS_URLLIB3 = False
else:
    HAS_URLLIB3 = True

    class HandshakeError(failures.SSLError):
        """TLS was not agreed upon, so no request was sent."""

        @property
        def distrusted(self) -> bool:
            """Whether it was the server's certificate; that does not change by trying again."""
            return isinstance(self.__cause__, ssl.SSLCertVerificationError)

    class _HTTPConnection(urllib3.connection.HTTPConnection):
        response_class = BoundedResponse

        def _new_conn(self) -> socket.socket:
            wire = super()._new_conn()
            _carried_by(wire)
            return wire

        def request(self, *arguments: t.Any, **keywords: t.Any) -> None:
            if self.sock is not None:
                _carried_by(self.sock)
            super().request(*arguments, **keywords)

    class _HTTPSConnection(_HTTPConnection, urllib3.connection.HTTPSConnection):
        response_class = BoundedResponse

        def connect(self) -> None:
            try:
                super().connect()
            except ssl.SSLError as error:
                raise HandshakeError(error) from error
            # What is not verified was asked for; urllib3 would warn about it with every connection.
            self.is_verified = True

    class _HTTPPool(urllib3.HTTPConnectionPool):
        ConnectionCls = _HTTPConnection

        def __init__(self, *arguments: t.Any, **keywords: t.Any) -> None:
            super().__init__(*arguments, **keywords)
            self._ahead: collections.deque[OpenedAhead] = collections.deque()
            # As urllib3 does with those that are in the pool.
            weakref.finalize(self, _leave_unused, self._ahead)

        def open_ahead(self, seconds: float, deadline: Deadline) -> None:
            """Begin to open the connection of the next request, unless one was opened that no request has used yet."""
            # Through a proxy, a request opens a tunnel of its own.
            if self.proxy is None and not self._ahead:
                connection = super()._get_conn()
                connection.timeout = seconds
                self._ahead.append(OpenedAhead(connection, deadline))

        def _get_conn(self, timeout: float | None = None) -> t.Any:
            try:
                # Not by way of the pool: there the session tickets of TLS 1.3, which nobody has read, look like an end.
                return self._ahead.popleft().take()
            except IndexError:
                return super()._get_conn(timeout)

    class _HTTPSPool(_HTTPPool, urllib3.HTTPSConnectionPool):
        ConnectionCls = _HTTPSConnection


class OpenedAhead:
    """A connection that is opened in a thread of its own, for a request that is to come."""

    def __init__(self, connection: t.Any, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline
        self._lock = threading.Lock()
        self._left = self._over = False
        self._opening = threading.Thread(target=self._open, name="namzu-open", daemon=True)
        self._opening.start()

    def take(self) -> t.Any:
        """The connection, once it is open or could not be opened."""
        self._opening.join()
        return self._connection

    def leave(self) -> None:
        """Nobody will take it: close it, now or when it has been opened."""
        with self._lock:
            self._left = True
            if self._over:
                self._connection.close()

    def _open(self) -> None:
        failed = False
        try:
            with cuttable(self._deadline):
                if self._connection.is_closed:
                    self._connection.connect()
        except (failures.HTTPError, OSError):
            # The request will connect anew, meet it, and say so.
            failed = True
        with self._lock:
            self._over = True
            if failed or self._left:
                self._connection.close()


def _leave_unused(ahead: collections.deque[OpenedAhead]) -> None:
    for one in ahead:
        one.leave()


_this_thread = threading.local()


class _Flight:
    """One request on its way, and the connections that carry it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wires: list[socket.socket] = []
        self._cut = False

    def carried_by(self, wire: socket.socket) -> None:
        # A handle of our own: the connection may be closed, or wrapped in TLS, which takes the handle away, meanwhile.
        own = socket.socket(fileno=os.dup(wire.fileno()))
        with self._lock:
            self._wires.append(own)
            if self._cut:
                _shut(own)

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            for wire in self._wires:
                _shut(wire)

    def end(self) -> None:
        with self._lock:
            for wire in self._wires:
                wire.close()
            self._wires.clear()


def _shut(wire: socket.socket) -> None:
    with contextlib.suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)


def _carried_by(wire: socket.socket) -> None:
    flight: _Flight | None = getattr(_this_thread, "flight", None)
    if flight is not None:
        flight.carried_by(wire)


@contextlib.contextmanager
def cuttable(deadline: Deadline | None) -> t.Iterator[None]:
    """Cut the requests that this thread makes inside the block, when their deadline is cancelled.

    From the TLS handshake to the end of the answer; only an attempt to connect goes on until its own bound.
    """
    if deadline is None:
        yield
        return
    flight = _this_thread.flight = _Flight()
    try:
        with deadline.cancellation.cutting(flight.cut):
            yield
    finally:
        _this_thread.flight = None
        flight.end()


#: Connections kept open to the server; a request beyond them opens another and closes it afterwards.
POOL_SIZE = 16


def open_pools(access: Access) -> tuple[urllib3.PoolManager, urllib3.PoolManager]:
    """Make the pools of connections for an access, one for requests and one for watches; nothing is sent yet.

    A watch keeps its connection to itself, so it opens one of its own, while the controller works, and leaves the
    request that follows it the one that is open already.

    Raises:
        AccessError: a certificate or key is not what its name says.
        MissingDependencyError: urllib3 is not installed here.
    """
    if not HAS_URLLIB3:
        raise MissingDependencyError(
            "The Python library urllib3 is needed to talk to the API server.",
            next_step="Install urllib3 (it comes with kubernetes) for the Python that runs this.",
        )
    settings: dict[str, t.Any] = {"maxsize": POOL_SIZE, "block": False, "retries": False}
    if access.server.startswith("https://"):
        settings["ssl_context"] = ssl_context(access)
        settings["server_hostname"] = access.server_name
    return _open_pool(access, settings), _open_pool(access, settings)


def open_ahead(pool: urllib3.PoolManager, access: Access, seconds: float, deadline: Deadline) -> None:
    """Begin to open a connection for the next request, within some seconds and until the deadline is cancelled."""
    opened = pool.connection_from_url(access.server)
    t.cast("_HTTPPool", opened).open_ahead(seconds, deadline)


def _open_pool(access: Access, settings: dict[str, t.Any]) -> urllib3.PoolManager:
    pool = urllib3.PoolManager(**settings) if access.proxy is None else _through_proxy(access.proxy, settings)
    pool.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return pool


def _through_proxy(proxy: str, settings: dict[str, t.Any]) -> urllib3.ProxyManager:
    try:
        user = urllib.parse.urlsplit(proxy)
        if user.username is not None:
            pair = f"{urllib.parse.unquote(user.username)}:{urllib.parse.unquote(user.password or '')}"
            settings["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=pair)
        return urllib3.ProxyManager(proxy, **settings)
    except (failures.HTTPError, ValueError):
        # It is not quoted: a password may stand in it.
        raise AccessError(
            "The proxy is no URL of the form http://host:port.", next_step="Correct proxy, or HTTPS_PROXY."
        ) from None


def ssl_context(access: Access) -> ssl.SSLContext:
    """TLS as an access asks for it.

    Raises:
        AccessError: a certificate or key is not what its name says.
    """
    # Comments in a bundle may be in any language; Python takes ASCII only. An empty text would mean the system's.
    authorities = None if access.ca_pem is None else access.ca_pem.encode("ascii", "ignore").decode("ascii") or "empty"
    try:
        context = ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError):
        raise AccessError(
            f"The certificate authority of the {access.source} is not a PEM certificate.",
            next_step="Check ca_cert, or certificate-authority in the kubeconfig.",
        ) from None
    # Python 3.13 asks for key usage extensions that cluster CAs made by common tools do not carry; kubectl does not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.client_pem:
        _load_client_pem(context, access)
    return context


def _load_client_pem(context: ssl.SSLContext, access: Access) -> None:
    # OpenSSL reads a key from a file only; the file lives for the moment of the reading, readable to us alone.
    descriptor, path = tempfile.mkstemp(prefix="namzu-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(access.client_pem or "")
        # Without a password OpenSSL would ask for one at the terminal when the key is encrypted.
        context.load_cert_chain(path, password="")
    except (ssl.SSLError, OSError, ValueError):
        raise AccessError(
            f"The client certificate and key of the {access.source} do not belong together, are no PEM texts, or the "
            "key is encrypted.",
            next_step="Check client_cert and client_key, or client-certificate and client-key in the kubeconfig.",
        ) from None
    finally:
        os.unlink(path)
