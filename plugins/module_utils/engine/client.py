# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Requests to a Docker Engine API: each on a connection of its own, bounded by its deadline and cut when cancelled.

The standard library carries them. The ``docker`` library takes 0.12 s more to import than all of this (0.15 s, of a
whole acquire, command and release of 0.6 s), has no bound on a whole response, and nothing cuts a request of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import email.utils
import functools
import http.client
import json
import socket
import typing as t
import urllib.parse

from ..deadline import SYSTEM_CLOCK, Clock, Deadline
from ..errors import (
    ApiAnswerError,
    ApiError,
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    InvalidError,
    UnavailableError,
)
from ..resolution import unknown_host
from ..text import clean_text
from .access import EngineAccess
from .connection import ResponseSource, dial, seconds_left, shut

#: Bytes of the largest response that is read; an inspected container has some ten thousand.
LARGEST_RESPONSE = 32 * 1024 * 1024
#: The one path that has no version.
_VERSION = "/version"
_LARGEST_HEAD = 64 * 1024
#: Characters of an error's text.
_QUOTED = 1000
#: The newest version of the API that this code is tested with; an engine serves older ones beside its own.
TESTED_VERSION = (1, 41)

_CLASSES: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: CredentialError,
    403: CredentialError,
    404: GoneError,
    409: ConflictError,
}

Json = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Response:
    """What an engine answered.

    Attributes:
        status: the HTTP status.
        headers: by name in lower case.
        body: the whole of it.
    """

    status: int
    headers: t.Mapping[str, str]
    body: bytes

    def json(self) -> t.Any:
        """The body as plain data; ValueError when it is not JSON."""
        return json.loads(self.body)


class EngineClient:
    """Talks to one engine. Safe to share between threads.

    Every request raises ApiUnreachableError (no connection, or it ended early; ``sent`` when it may have been carried
    out), ApiTimeoutError, ApiAnswerError (not an answer of an engine) and ApiError by status: InvalidError (400),
    CredentialError (401, 403), GoneError (404), ConflictError (409), UnavailableError (5xx).
    """

    def __init__(self, access: EngineAccess, clock: Clock = SYSTEM_CLOCK) -> None:
        self.access = access
        self.clock = clock
        self._version = "" if access.api_version == "auto" else f"/v{access.api_version}"
        self._offset = datetime.timedelta()

    def __repr__(self) -> str:
        return f"EngineClient({self.access.docker_host!r})"

    @property
    def name(self) -> str:
        """The engine in words, for messages."""
        return f"engine {self.access.docker_host}"

    @property
    def is_local(self) -> bool:
        """Whether it is reached over a Unix socket."""
        return self.access.socket_path is not None

    def now(self) -> datetime.datetime:
        """The engine's own time, by the last response; whole seconds count, and it may be one second early."""
        return self.clock.now() + self._offset

    def request(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        subject: str,
        query: t.Mapping[str, t.Any] | None = None,
        body: object = None,
        content: bytes | None = None,
    ) -> Response:
        """Send one request and read the whole response.

        Args:
            path: without the version.
            deadline: bounds it, together with the access option ``timeout``.
            subject: what it is about, in words for errors (``Container namzu-build``).
            query: parameters; None is left out, mappings and lists become JSON, booleans 1 or 0.
            body: plain data that is sent as JSON.
            content: a tar archive that is sent instead.
        """
        with self.open(method, path, deadline, subject=subject, query=query, body=body, content=content) as opened:
            data = opened.read()
            return Response(opened.response.status, opened.headers, data)

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        subject: str,
        query: t.Mapping[str, t.Any] | None = None,
        body: object = None,
        content: bytes | None = None,
        whole: bool = False,
    ) -> t.Iterator[OpenResponse]:
        """Send one request, and give its response before its body is read; as ``request``.

        Args:
            whole: the body may take as long as the deadline, not only as the access option ``timeout``.
        """
        limit = deadline if whole else self._limit(deadline)
        what = f"{method} {subject}"
        target = self._target(path, query, deadline)
        sock = self._dial(what, limit)
        with contextlib.closing(sock), limit.cancellation.cutting(functools.partial(shut, sock)):
            failures = functools.partial(self._failures, what, limit, sent=True)
            with failures():
                _send(sock, method, target, body, content, limit)
                source = ResponseSource(sock, limit)
                response = http.client.HTTPResponse(source, method=method)  # type: ignore[arg-type]
            with contextlib.closing(response):
                with failures():
                    response.begin()
                    if source.ended:
                        # The library takes the end for the empty line after the headers.
                        raise http.client.RemoteDisconnected("")
                headers = {name.lower(): value for name, value in response.getheaders()}
                self._note_time(headers.get("date"))
                opened = OpenResponse(response, headers, failures, what)
                if response.status >= 300:
                    raise _error(what, response.status, opened.read())
                yield opened

    def hijack(self, path: str, deadline: Deadline, *, subject: str, body: object) -> tuple[socket.socket, bytes]:
        """Turn a connection into a stream of bytes; the socket, and what of the stream has been read already."""
        what = f"POST {subject}"
        limit = self._limit(deadline)
        target = self._target(path, None, deadline)
        sock = self._dial(what, limit)
        try:
            with limit.cancellation.cutting(functools.partial(shut, sock)), self._failures(what, limit, sent=True):
                _send(sock, "POST", target, body, None, limit, upgrade=True)
                head, ahead = _read_head(sock, limit)
        except BaseException:
            sock.close()
            raise
        status = head.split(b" ", 2)[1:2]
        if status not in ([b"101"], [b"200"]):
            sock.close()
            raise _error(what, int(status[0]) if status and status[0].isdigit() else 500, ahead)
        return sock, ahead

    def _target(self, path: str, query: t.Mapping[str, t.Any] | None, deadline: Deadline) -> str:
        prefix = "" if path == _VERSION else self._version or self._negotiate(deadline)
        given = {key: _parameter(value) for key, value in (query or {}).items() if value is not None}
        return prefix + path + ("?" + urllib.parse.urlencode(given) if given else "")

    def _negotiate(self, deadline: Deadline) -> str:
        """The version that is spoken: the tested one, or the nearest that the engine serves."""
        response = self.request("GET", _VERSION, deadline, subject=self.name)
        served = [_number(self._field(response, name)) for name in ("MinAPIVersion", "ApiVersion")]
        spoken = min(max(TESTED_VERSION, served[0]), served[1])
        self._version = f"/v{spoken[0]}.{spoken[1]}"
        return self._version

    def _field(self, response: Response, name: str) -> str:
        try:
            return str(response.json()[name])
        except (ValueError, KeyError, TypeError):
            raise no_engine(f"GET {self.name}", f"the answer has no {name}") from None

    def _limit(self, deadline: Deadline) -> Deadline:
        return deadline.child(self.access.timeout)

    def _dial(self, what: str, limit: Deadline) -> socket.socket:
        try:
            with self._failures(what, limit, sent=False):
                return dial(self.access, limit)
        except ApiUnreachableError as error:
            step = error.next_step or "Start the engine, or set docker_host (DOCKER_HOST) to the right one."
            raise error.replace(next_step=step) from error

    def _note_time(self, date: str | None) -> None:
        with contextlib.suppress(TypeError, ValueError):
            sent = email.utils.parsedate_to_datetime(str(date))
            offset = sent - self.clock.now()
            # The header has whole seconds; a clock that agrees is the better one.
            agrees = datetime.timedelta(seconds=-1) <= offset <= datetime.timedelta()
            self._offset = datetime.timedelta() if agrees else offset

    @contextlib.contextmanager
    def _failures(self, what: str, limit: Deadline, *, sent: bool) -> t.Iterator[None]:
        """Turn what the system raises into errors with a reason."""
        where = self.access.docker_host
        try:
            yield
        except TimeoutError:
            raise ApiTimeoutError(
                f"{what}: {where} did not answer within {round(limit.seconds, 2):g} s.", sent=sent, object=self.name
            ) from None
        except PermissionError:
            raise ApiUnreachableError(
                f"{what}: this user may not use {where}.",
                reason="forbidden",
                retryable=False,
                object=self.name,
                next_step="Add the user to the group that owns the socket, or use an engine of the user's own.",
            ) from None
        except OSError as error:
            if limit.expired and sent:
                raise ApiTimeoutError(f"{what}: {where} was cut off.", sent=True, object=self.name) from None
            words = error.strerror or type(error).__name__
            lost = "the connection broke" if sent else "no connection"
            raise ApiUnreachableError(
                f"{what}: {lost} ({words}) at {where}.", sent=sent, object=self.name, retryable=not unknown_host(error)
            ) from None
        except (http.client.HTTPException, ValueError) as error:
            if isinstance(error, (http.client.RemoteDisconnected, http.client.IncompleteRead)):
                raise ApiUnreachableError(
                    f"{what}: {where} closed the connection.", sent=True, object=self.name
                ) from None
            raise no_engine(what, f"{where} sent what is not HTTP ({type(error).__name__})") from None


class OpenResponse:
    """A response whose body is not read yet."""

    def __init__(
        self,
        response: http.client.HTTPResponse,
        headers: t.Mapping[str, str],
        failures: t.Callable[[], contextlib.AbstractContextManager[None]],
        what: str,
    ) -> None:
        self.response = response
        self.headers = headers
        self._failures = failures
        self._what = what

    def read(self) -> bytes:
        """The whole body; ApiAnswerError when it is too large or cut short."""
        with self._failures():
            data = self.response.read(LARGEST_RESPONSE + 1)
            if len(data) > LARGEST_RESPONSE:
                raise no_engine(self._what, f"the answer has more than {LARGEST_RESPONSE} bytes")
            # Fewer bytes than announced: a read with a size ends without an error.
            if self.response.length:
                raise ConnectionResetError(0, "the answer was cut short")
            return data

    def lines(self) -> t.Iterator[bytes]:
        """The lines of the body as they arrive."""
        while True:
            with self._failures():
                line = self.response.readline(1024 * 1024)
            if not line:
                return
            yield line


def _send(
    sock: socket.socket,
    method: str,
    target: str,
    body: object,
    content: bytes | None,
    limit: Deadline,
    *,
    upgrade: bool = False,
) -> None:
    data, kind = content or b"", "application/x-tar"
    if body is not None:
        data, kind = json.dumps(body).encode(), "application/json"
    lines = [f"{method} {target} HTTP/1.1", "Host: docker", "User-Agent: namzu-sandbox"]
    lines += ["Connection: Upgrade", "Upgrade: tcp"] if upgrade else ["Connection: close"]
    if data or method in ("POST", "PUT"):
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    sock.settimeout(seconds_left(limit))
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + data)


def _read_head(sock: socket.socket, limit: Deadline) -> tuple[bytes, bytes]:
    """The head of a response, and what has arrived after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        sock.settimeout(seconds_left(limit))
        data = sock.recv(4096)
        if not data:
            raise http.client.RemoteDisconnected("")
        received += data
        if len(received) > _LARGEST_HEAD:
            raise http.client.HTTPException
    head, _end, ahead = received.partition(b"\r\n\r\n")
    return head, ahead


def _parameter(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def _number(version: str) -> tuple[int, int]:
    major, _dot, minor = version.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise no_engine("GET version", f"{version[:20]!r} is not a version of the API")
    return int(major), int(minor)


def no_engine(what: str, problem: str) -> ApiAnswerError:
    """The error for an answer that no engine gives."""
    return ApiAnswerError(
        f"{what}: {problem}.",
        sent=True,
        next_step="Look whether docker_host (DOCKER_HOST) names a Docker Engine API.",
    )


def _error(what: str, status: int, body: bytes) -> ApiError:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body[:_QUOTED].decode("utf-8", "replace")
    message = clean_text(" ".join(message.split()), _QUOTED).rstrip(".")
    kind = _CLASSES.get(status, UnavailableError if status >= 500 else ApiError)
    return kind(
        f"{what}: the engine answered {status}: {message or 'no message'}.",
        status=status,
        api_message=message,
    )
