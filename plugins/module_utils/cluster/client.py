# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Requests to the API server: bounded in time and size, plain dicts in and out, typed errors."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import typing as t
import urllib.parse

from ..deadline import SYSTEM_CLOCK, Clock, Deadline
from ..errors import AccessError, ApiAnswerError, ApiTimeoutError, ApiUnreachableError, NotServedError
from ..resolution import unknown_host
from ..text import clean_text
from .auth.access import Access
from .resources import Body, Kind, ObjectRef
from .responses import error_from_answer
from .server_time import ServerTime
from .transport.pools import HAS_URLLIB3, cuttable, open_ahead, open_pools

if HAS_URLLIB3:
    import urllib3
    import urllib3.exceptions as failures

    from .transport.pools import HandshakeError

#: The bound on one request unless a caller sets another; it cannot be switched off.
REQUEST_TIMEOUT = 30.0

#: The least bound that a caller may set.
MINIMUM_REQUEST_TIMEOUT = 1.0

#: The largest answer that is read: 64 MiB hold about 10,000 objects of 6 KiB.
MAXIMUM_ANSWER = 64 * 1024 * 1024

_CHUNK = 64 * 1024
_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"


#: Given a function that ends what has been opened.
OnOpen = t.Callable[[t.Callable[[], None]], None]


class Client:
    """Speaks to one API server. Safe to share between threads."""

    def __init__(self, access: Access, request_timeout: float = REQUEST_TIMEOUT, clock: Clock = SYSTEM_CLOCK) -> None:
        self.access = access
        self.clock = clock
        self.server_time = ServerTime(clock)
        self._request_timeout = max(MINIMUM_REQUEST_TIMEOUT, request_timeout)
        self._requests, self._watches = open_pools(access)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._requests.clear()
        self._watches.clear()

    def get(self, ref: ObjectRef, deadline: Deadline | None = None) -> Body:
        """Read one object."""
        return self._object("GET", ref.path, ref, deadline)

    def list(
        self, kind: Kind, namespace: str | None, *, label_selector: str | None = None, deadline: Deadline | None = None
    ) -> Body:
        """Read all objects of a kind in a namespace (None: in the cluster), with the list's own metadata."""
        query = {"labelSelector": label_selector} if label_selector else None
        subject = f"{kind.plural} in {namespace or 'the cluster'}"
        answer = self._request("GET", kind.collection(namespace), subject, deadline, query=query)
        items = answer.get("items", "none") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self._no_answer("GET", subject)
        return {**answer, "items": items}

    def served_versions(self, group: str, deadline: Deadline | None = None) -> t.Sequence[str]:
        """The versions of an API group that the server serves, in its order; none when it has no such group."""
        subject = f"the API group {group}"
        try:
            answer = self._request("GET", f"/apis/{group}", subject, deadline)
        except NotServedError:
            return ()
        versions = answer.get("versions")
        if not isinstance(versions, list):
            raise self._no_answer("GET", subject)
        return [str(one.get("version")) for one in versions if isinstance(one, dict)]

    def create(self, ref: ObjectRef, body: Body, deadline: Deadline | None = None, *, dry_run: bool = False) -> Body:
        """Create an object; a lost answer raises with ``sent`` set and is never repeated here."""
        query = {"dryRun": "All"} if dry_run else None
        path = ref.kind.collection(ref.namespace)
        return self._object("POST", path, ref, deadline, query=query, body=body)

    def patch(self, ref: ObjectRef, body: Body, deadline: Deadline | None = None, *, dry_run: bool = False) -> Body:
        """Change an object by a JSON merge patch (RFC 7386)."""
        query = {"dryRun": "All"} if dry_run else None
        return self._object("PATCH", ref.path, ref, deadline, query=query, body=body, content_type=_MERGE_PATCH)

    def json_patch(
        self, ref: ObjectRef, operations: t.Sequence[Body], deadline: Deadline | None = None, *, dry_run: bool = False
    ) -> Body:
        """Change an object by a JSON patch (RFC 6902), as a whole or not at all; a ``test`` that fails is a 422."""
        query = {"dryRun": "All"} if dry_run else None
        return self._object("PATCH", ref.path, ref, deadline, query=query, body=operations, content_type=_JSON_PATCH)

    def delete(
        self, ref: ObjectRef, deadline: Deadline | None = None, *, uid: str | None = None, version: str | None = None
    ) -> Body:
        """Delete an object; with ``uid`` only that very one, with ``version`` only as it was read (else 409)."""
        must = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": must} if must else None
        return self._request("DELETE", ref.path, str(ref), deadline, body=body)

    def expect_watch(self, deadline: Deadline) -> None:
        """Open the connection of the next watch already; for use before the object is made that will be watched."""
        open_ahead(self._watches, self.access, self._bound(deadline), deadline)

    def watch(
        self, ref: ObjectRef, resource_version: str, deadline: Deadline
    ) -> t.Generator[dict[str, t.Any], None, None]:
        """The events of one object after a resourceVersion, for as long as one request may take.

        The server is asked to end it a little before that, so that a quiet watch ends without a failure.

        Yields:
            Watch events as the server sends them (``type`` and ``object``).

        Raises:
            As every request; ApiTimeoutError when the server has not ended it in time.
        """
        chosen = {"fieldSelector": f"metadata.name={ref.name}"}
        return self._watch(ref.kind.collection(ref.namespace), str(ref), chosen, resource_version, deadline)

    def watch_labelled(
        self,
        kind: Kind,
        namespace: str,
        label_selector: str,
        resource_version: str,
        deadline: Deadline,
        *,
        on_open: OnOpen | None = None,
    ) -> t.Generator[dict[str, t.Any], None, None]:
        """The same for all objects of a kind in a namespace that carry a label.

        ``on_open`` is given a function that ends the watch from any thread, when there is something to end.
        """
        chosen = {"labelSelector": label_selector}
        subject = f"{kind.plural} in {namespace}"
        return self._watch(kind.collection(namespace), subject, chosen, resource_version, deadline, on_open)

    def _watch(
        self,
        path: str,
        subject: str,
        chosen: dict[str, str],
        resource_version: str,
        deadline: Deadline,
        on_open: OnOpen | None = None,
    ) -> t.Generator[dict[str, t.Any], None, None]:
        seconds = self._bound(deadline)
        query = {
            "watch": "true",
            **chosen,
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds) - 1)),
        }
        with cuttable(deadline):
            answer = self._open("GET", path, subject, seconds, query, None, "", self._watches)
        wire = getattr(answer.connection, "sock", None)
        cut = functools.partial(_cut, wire) if isinstance(wire, socket.socket) else _nothing
        try:
            if on_open is not None:
                on_open(cut)
            with deadline.cancellation.cutting(cut):
                yield from _events(answer, subject)
        except _failures() as error:
            raise self._unanswered("GET", subject, error, sent=True) from None
        finally:
            # A watch that has been left cannot serve another request: its connection is closed, not returned.
            answer.close()

    def _object(self, method: str, path: str, ref: ObjectRef, deadline: Deadline | None, **request: t.Any) -> Body:
        """A request that is answered with an object; everything that is read or made has a uid."""
        answer = self._request(method, path, str(ref), deadline, **request)
        metadata = answer.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("uid"):
            raise self._no_answer(method, str(ref))
        return answer

    def _request(
        self,
        method: str,
        path: str,
        subject: str,
        deadline: Deadline | None,
        *,
        query: dict[str, str] | None = None,
        body: Body | t.Sequence[Body] | None = None,
        content_type: str = "application/json",
    ) -> Body:
        with cuttable(deadline):
            answer = self._open(method, path, subject, self._bound(deadline), query, body, content_type, self._requests)
            document = _document(self._read(answer, method, subject))
        if document is None:
            raise self._no_answer(method, subject)
        return document

    def _open(
        self,
        method: str,
        path: str,
        subject: str,
        seconds: float,
        query: dict[str, str] | None,
        body: Body | t.Sequence[Body] | None,
        content_type: str,
        pool: urllib3.PoolManager,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request and return its answer with the body unread; answers of 300 and above raise.

        ``seconds`` bound connecting, sending and the whole answer, its body included.
        """
        url = self.access.server + path + ("?" + urllib.parse.urlencode(query) if query else "")
        began = self.clock.monotonic()
        headers = self.headers(seconds)
        seconds = max(0.001, seconds - (self.clock.monotonic() - began))
        data = None
        if body is not None:
            data = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        sent = self.clock.monotonic()
        try:
            answer = pool.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(total=seconds),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except _failures() as error:
            raise self._unanswered(method, subject, error, sent=_may_have_been_sent(error)) from None
        self.server_time.heard(answer.headers.get("Date"), sent)
        if answer.status >= 300:
            content = self._read(answer, method, subject)
            raise error_from_answer(
                method, path, subject, answer.status, answer.headers, content, self.clock.now()
            ) from None
        return answer

    def _read(self, answer: urllib3.BaseHTTPResponse, method: str, subject: str) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            for part in answer.stream(_CHUNK):
                parts.append(part)
                size += len(part)
                if size > MAXIMUM_ANSWER:
                    answer.close()
                    raise ApiAnswerError(
                        f"{method} {subject}: the answer is larger than {MAXIMUM_ANSWER} bytes.",
                        sent=True,
                        object=subject,
                    )
        except _failures() as error:
            answer.close()
            raise self._unanswered(method, subject, error, sent=True) from None
        answer.release_conn()
        return b"".join(parts)

    def headers(self, seconds: float) -> dict[str, str]:
        """The headers of every request: user agent, credential and impersonation; a login takes at most ``seconds``."""
        headers = {"Accept": "application/json", "User-Agent": "namzu.sandbox"}
        if self.access.credential is not None:
            headers["Authorization"] = self._checked("credential", self.access.credential.header(seconds))
        if self.access.impersonate_user:
            headers["Impersonate-User"] = self._checked("impersonate_user", self.access.impersonate_user)
        if self.access.impersonate_groups:
            # One header a group in HTTP; urllib3 sends a repeated header from its own multi-value dict.
            multiple = urllib3.HTTPHeaderDict(headers)
            for group in self.access.impersonate_groups:
                multiple.add("Impersonate-Group", self._checked("impersonate_groups", group))
            return t.cast("dict[str, str]", multiple)
        return headers

    def _checked(self, what: str, value: str) -> str:
        # http.client refuses such a value too, with an error that quotes it.
        if value.isascii() and value.isprintable():
            return value
        raise AccessError(
            f"The {what} of the {self.access.source} has characters that no HTTP header can carry.",
            next_step="Look for line breaks, blanks and letters beyond ASCII in it.",
        )

    def _bound(self, deadline: Deadline | None) -> float:
        """Seconds for one request: its own bound, or what the operation has left; never 0, which would mean none."""
        if deadline is None:
            return self._request_timeout
        return max(0.001, deadline.at_most(self._request_timeout))

    def _unanswered(self, method: str, subject: str, error: Exception, *, sent: bool) -> ApiUnreachableError:
        if isinstance(error, failures.ReadTimeoutError):
            return self._timed_out(method, subject)
        if isinstance(error, (failures.ProtocolError, failures.DecodeError)) and sent:
            return ApiUnreachableError(
                f"{method} {subject}: the connection to {self.access.server} was cut before the answer was complete.",
                sent=True,
                object=subject,
            )
        if isinstance(error, HandshakeError) and error.distrusted:
            return ApiUnreachableError(
                f"{method} {subject}: the certificate of {self.access.server} is not trusted: {_cause(error)}.",
                object=subject,
                retryable=False,
                next_step=f"Check ca_cert and the address (from: {self.access.source}).",
            )
        # A refused connection is a NewConnectionError, which urllib3 derives from ConnectTimeoutError.
        slow = isinstance(error, failures.ConnectTimeoutError) and not isinstance(error, failures.NewConnectionError)
        return (ApiTimeoutError if slow else ApiUnreachableError)(
            f"{method} {subject}: no connection to {self.access.server}: {_cause(error)}.",
            sent=sent,
            object=subject,
            retryable=not unknown_host(error),
            next_step=f"Check that the server is up and that this is the right address (from: {self.access.source}).",
        )

    def _timed_out(self, method: str, subject: str) -> ApiTimeoutError:
        return ApiTimeoutError(
            f"{method} {subject}: {self.access.server} did not answer in time.",
            sent=True,
            object=subject,
            next_step="The API server may be overloaded: try again later, or raise request_timeout or ready_timeout.",
        )

    def _no_answer(self, method: str, subject: str) -> ApiAnswerError:
        return ApiAnswerError(
            f"{method} {subject}: the answer from {self.access.server} is not what a Kubernetes API server answers.",
            sent=True,
            object=subject,
            next_step="Check that the address is a Kubernetes API server.",
        )


def _cut(wire: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Past TLS, whose own shutdown takes its state away from the thread that reads.
        socket.socket.shutdown(wire, socket.SHUT_RDWR)


def _nothing() -> None:
    """An answer that is whole already has no connection to cut."""


def _failures() -> tuple[type[Exception], ...]:
    return (failures.HTTPError, OSError)


def _may_have_been_sent(error: Exception) -> bool:
    return not isinstance(error, (failures.ConnectTimeoutError, HandshakeError, failures.ProxyError))


def _cause(error: BaseException) -> str:
    """The innermost reason in a few words; urllib3's own text repeats the address."""
    while (inner := getattr(error, "reason", None) or error.__cause__) and isinstance(inner, BaseException):
        error = inner
    words = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
    return clean_text(words).rstrip(".") or type(error).__name__


def _document(content: bytes) -> Body | None:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _events(answer: urllib3.BaseHTTPResponse, subject: str) -> t.Generator[dict[str, t.Any], None, None]:
    rest = b""
    for part in answer.stream(_CHUNK):
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > MAXIMUM_ANSWER:
            raise ApiAnswerError(f"GET {subject}: an event is larger than {MAXIMUM_ANSWER} bytes.", object=subject)
        for line in lines:
            event = _document(line)
            if event is None:
                raise ApiAnswerError(f"GET {subject}: the watch sent a line that is no JSON object.", object=subject)
            yield event
