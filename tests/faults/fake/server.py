# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake API server over real sockets: enough of the API for a claim's life, and every fault that a plan names."""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import http.server
import json
import re
import socket
import threading
import time
import typing as t
import urllib.parse

from .plan import Fault, How, Plan, Request
from .store import KINDS, Body, Event, Key, Refusal, Store

_PATH = re.compile(
    r"/api(?:s/[a-z.0-9-]+)?/v\w+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?"
)
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
#: Faults whose answer is whole, so that the connection goes on.
_ANSWERED = {How.STATUS, How.STATUS_AFTER_ACTING, How.NO_JSON, How.NO_OBJECT}
TOKEN = "fake-server-token-5f1d"


class FakeServer:
    """The server, its objects and its plan of faults. Use it as a context manager.

    Attributes:
        store: the objects.
        plan: what goes wrong, and what was asked.
        headers: the headers of every request, in order.
        connections: how many were opened so far.
        now: the time that it tells with each answer.
        admission: may raise a Refusal of what is created or patched, given the verb, the plural and the body.
        groups: API groups that it tells the versions of; the request is called ``list`` of the group's path.
    """

    def __init__(self) -> None:
        self.store = Store()
        self.plan = Plan()
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.admission: t.Callable[[str, str, Body], object] = lambda _verb, _plural, _body: None
        self.groups: dict[str, list[str]] = {}
        self.now: t.Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC)
        self.stopping = threading.Event()
        self._late: list[threading.Timer] = []
        self._http = _Listener(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="fake-server")

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.store.close()
        for timer in self._late:
            timer.cancel()
            timer.join()
        self._http.shutdown()
        self._http.cut_all()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def later(self, seconds: float, action: t.Callable[[], object]) -> None:
        """Do something after a while, in a thread that ``__exit__`` waits for."""
        timer = threading.Timer(seconds, action)
        self._late.append(timer)
        timer.start()


class _Listener(http.server.ThreadingHTTPServer):
    # Handler threads are joined by server_close, so that none outlives its test.
    daemon_threads = False
    block_on_close = True

    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: t.Any, client_address: t.Any) -> None:
        self._open.add(request)
        self.fake.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: t.Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        """End every connection, so that its handler ends."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A peer that goes away is part of the game."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def date_time_string(self, timestamp: float | None = None) -> str:
        moment = (
            self.server.fake.now() if timestamp is None else datetime.datetime.fromtimestamp(timestamp, datetime.UTC)
        )
        return email.utils.format_datetime(moment, usegmt=True)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def _serve(self) -> None:
        fake = self.server.fake
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body: Body = json.loads(raw) if raw else {}
        match = _PATH.fullmatch(parts.path)
        request = Request(_verb(self.command, match, query), match["plural"] if match else parts.path)
        fake.headers.append(dict(self.headers.items()))
        fault = fake.plan.met_by(request)
        if fault is not None:
            self._fail(fault, request, match, query, body)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(*_refused(Refusal(401, "Unauthorized", "Unauthorized")))
        elif request.verb == "watch" and match is not None:
            self._watch(match, query)
        else:
            self._answer(*self._act(request, match, query, body))

    def _act(
        self, request: Request, match: re.Match[str] | None, query: dict[str, str], body: Body
    ) -> tuple[int, Body]:
        if match is None or request.plural not in KINDS:
            return self._group(request.plural.removeprefix("/apis/"))
        store, namespace = self.server.fake.store, match["namespace"] or ""
        key = Key(request.plural, namespace, match["name"] or "")
        try:
            if request.verb in ("create", "patch") and isinstance(body, dict):
                self.server.fake.admission(request.verb, request.plural, body)
            if request.verb == "create":
                return 201, store.create(request.plural, namespace, body, dry_run="dryRun" in query)
            if request.verb == "list":
                return 200, store.list(request.plural, namespace, _labels(query.get("labelSelector", "")))
            if request.verb == "delete":
                must = body.get("preconditions") or {}
                return 200, store.delete(key, must.get("uid"), must.get("resourceVersion"))
            if request.verb == "patch" and isinstance(body, list):
                return 200, store.json_patch(key, body, dry_run="dryRun" in query)
            if request.verb == "patch":
                return 200, store.patch(key, body, dry_run="dryRun" in query)
            return 200, store.get(key)
        except Refusal as refusal:
            return _refused(refusal)

    def _group(self, name: str) -> tuple[int, Body]:
        versions = self.server.fake.groups.get(name)
        if versions is None:
            return _refused(Refusal(404, "NotFound", "the server could not find the requested resource"))
        return 200, {"kind": "APIGroup", "versions": [{"version": version} for version in versions]}

    def _fail(
        self, fault: Fault, request: Request, match: re.Match[str] | None, query: dict[str, str], body: Body
    ) -> None:
        fake = self.server.fake
        self.close_connection = fault.how not in _ANSWERED
        if fault.how is How.HANG:
            fake.stopping.wait()
            return
        if fault.how is How.CUT_BEFORE:
            return
        if fault.how is How.CUT_THEN_ACT:
            fake.later(fault.delay, lambda: self._act(request, match, query, body))
            return
        if fault.how is How.STATUS:
            self._answer_status(fault)
            return
        status, answer = (200, {}) if request.verb == "watch" else self._act(request, match, query, body)
        if fault.how is How.STATUS_AFTER_ACTING:
            self._answer_status(fault)
        elif fault.how is How.TRUNCATED:
            content = json.dumps(answer).encode()
            self._send(status, content[: len(content) // 2], length=len(content) + 10)
        elif fault.how is How.NO_JSON:
            self._send(status, b"<html>not what you think</html>\n")
        elif fault.how is How.NO_OBJECT:
            self._answer(status, {})

    def _answer_status(self, fault: Fault) -> None:
        refusal = Refusal(fault.status, _REASONS[fault.status], fault.message, fault.name)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
        if fault.body is not None:
            self._send(fault.status, fault.body, headers=headers)
        else:
            self._answer(*_refused(refusal), headers)

    def _answer(self, status: int, body: Body, headers: t.Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), headers=headers)

    def _send(
        self, status: int, content: bytes, *, length: int | None = None, headers: t.Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, match: re.Match[str], query: dict[str, str]) -> None:
        """Stream the events after a resourceVersion until the asked time has passed; then close."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        until = time.monotonic() + float(query.get("timeoutSeconds", "60"))
        seen, store = 0, self.server.fake.store
        while not self.server.fake.stopping.is_set() and time.monotonic() < until:
            events = store.wait_for_event(seen, max(0.0, until - time.monotonic()))
            seen += len(events)
            for event in events:
                if event.version > int(query["resourceVersion"]) and _selected(event, match, query):
                    self._send_chunk(json.dumps({"type": event.type, "object": event.body}).encode() + b"\n")
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def _verb(method: str, match: re.Match[str] | None, query: dict[str, str]) -> str:
    if query.get("watch") == "true":
        return "watch"
    if method == "GET":
        return "get" if match is not None and match["name"] else "list"
    return {"POST": "create", "DELETE": "delete", "PATCH": "patch"}[method]


def _refused(refusal: Refusal) -> tuple[int, Body]:
    return refusal.status, refusal.body


def _labels(selector: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in selector.split(",") if pair)


def _selected(event: Event, match: re.Match[str], query: dict[str, str]) -> bool:
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    wanted = _labels(query.get("labelSelector", "")).items()
    here = (event.key.plural, event.key.namespace) == (match["plural"], match["namespace"])
    return here and name in ("", event.key.name) and wanted <= (event.body["metadata"].get("labels") or {}).items()
