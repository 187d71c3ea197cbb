# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Docker Engine API on a Unix socket, with containers that are nothing but a socket on which an agent answers.

``faults`` maps the number of a request, from 0, to what becomes of it: ``refuse`` (closed unread), ``hang``
(never answered), ``cut`` (half an answer), ``error`` (500, and nothing done) or ``lose`` (done, not answered).
"""

from __future__ import annotations

import base64
import email.utils
import io
import json
import pathlib
import re
import socket
import tarfile
import threading
import time
import typing as t
import urllib.parse
import uuid

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import FrameDecoder, encode

Json = dict[str, t.Any]
Fault = t.Literal["refuse", "hang", "cut", "error", "lose"]
FAULTS: tuple[Fault, ...] = ("refuse", "hang", "cut", "error", "lose")

#: What a process without privileges reads about itself.
STATUS = "".join(
    f"{name}:\t{value}\n"
    for name, value in {
        "Uid": "1000\t1000\t1000\t1000",
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }.items()
)


class FakeEngine:
    """Serves until it is closed.

    Attributes:
        containers: by id, as they are inspected.
        requests: method and path of each request, as it came.
        info: what ``/info`` answers.
        images: names of the images that it has.
        changes: fields of HostConfig that it sets without being asked to.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / "engine.sock"
        self.containers: dict[str, Json] = {}
        self.leases: dict[str, int] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        self.requests: list[str] = []
        self.faults: dict[int, Fault] = {}
        #: From this request on all are refused, as after the engine was killed.
        self.dead_from: int | None = None
        self.info: Json = {
            "OSType": "linux",
            "Runtimes": {"runc": {"path": "runc"}},
            "DefaultRuntime": "runc",
            "SecurityOptions": ["name=seccomp,profile=default"],
            **dict.fromkeys(("CpuCfsQuota", "MemoryLimit", "PidsLimit"), True),
        }
        self.images = {"python"}
        self.pull_errors: dict[str, str] = {}
        self.changes: Json = {}
        self.networks: dict[str, Json] = {}
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self._serve_in_thread(self._listener, self._handle)

    def close(self) -> None:
        self._closing.set()
        for sock in (self._listener, *self._sockets):
            sock.close()

    def _serve_in_thread(self, listener: socket.socket, handle: t.Callable[[socket.socket], None]) -> None:
        def serve() -> None:
            while not self._closing.is_set():
                try:
                    connection, _peer = listener.accept()
                except OSError:
                    return
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        def guarded(connection: socket.socket) -> None:
            with connection:
                try:
                    handle(connection)
                except OSError:
                    return

        listener.settimeout(None)
        threading.Thread(target=serve, daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        head, body = _read_request(connection)
        method, target = head.split(" ")[:2]
        with self._lock:
            number = len(self.requests)
            self.requests.append(f"{method} {re.sub('[0-9a-f]{32}', 'ID', target.partition('?')[0])}")
            dead = self.dead_from is not None and number >= self.dead_from
            fault = "refuse" if dead else self.faults.get(number)
        if fault == "refuse":
            return
        if fault == "hang":
            self._closing.wait(60)
            return
        status, answer, headers = (
            (500, b'{"message":"the engine is broken"}', {})
            if fault == "error"
            else (self._answer(method, target, body))
        )
        if fault == "lose":
            return
        lines = [
            f"HTTP/1.1 {status} X",
            f"Content-Length: {len(answer)}",
            f"Date: {email.utils.formatdate(usegmt=True)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        whole = "\r\n".join([*lines, "", ""]).encode() + (b"" if method == "HEAD" else answer)
        connection.sendall(whole[: len(whole) // 2] if fault == "cut" else whole)

    def _answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        split = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(split.query))
        path = re.sub(r"^/v[0-9.]+", "", split.path)
        with self._lock:
            for pattern, handler in self._routes():
                match = re.fullmatch(pattern, f"{method} {path}")
                if match:
                    found = handler(query, body, *map(urllib.parse.unquote, match.groups()))
                    status, value, *headers = found if isinstance(found, tuple) else (200, found)
                    data = value if isinstance(value, bytes) else json.dumps(value).encode()
                    return status, data, headers[0] if headers else {}
        return 404, json.dumps({"message": f"page not found: {method} {path}"}).encode(), {}

    def _routes(self) -> list[tuple[str, t.Callable[..., t.Any]]]:
        one = "/containers/([^/]+)"
        return [
            ("GET /version", lambda _q, _b: {"ApiVersion": "1.41", "MinAPIVersion": "1.12"}),
            ("GET /info", lambda _q, _b: self.info),
            ("GET /images/(.+)/json", self._image),
            ("POST /images/create", self._pull),
            ("GET /networks/([^/]+)", self._network),
            ("GET /containers/json", self._list),
            ("POST /containers/create", self._create),
            ("POST /volumes/prune", lambda _q, _b: {"VolumesDeleted": []}),
            (f"GET {one}/json", lambda _q, _b, name: self._of(name)),
            (f"DELETE {one}", self._remove),
            (f"PUT {one}/archive", self._put),
            (f"HEAD {one}/archive", self._stat),
            (f"GET {one}/archive", self._get),
            (f"POST {one}/start", self._start),
            (f"POST {one}/exec", self._exec),
            ("POST /exec/([^/]+)/start", lambda _q, _b, _name: {}),
            ("GET /exec/([^/]+)/json", lambda _q, _b, _name: {"Running": True}),
            (f"GET {one}/logs", lambda _q, _b, _name: b"\x01\0\0\0\0\0\0\x05hello"),
        ]

    def _image(self, _query: Json, _body: bytes, name: str) -> t.Any:
        return {"Id": "sha256:0", "Config": {}} if name in self.images else (404, {"message": "No such image"})

    def _pull(self, query: Json, _body: bytes) -> t.Any:
        name = f"{query['fromImage']}:{query['tag']}"
        if name in self.pull_errors:
            return 200, b'{"status":"Pulling"}\r\n' + json.dumps({"error": self.pull_errors[name]}).encode()
        self.images.add(query["fromImage"])
        return 200, b'{"status":"Downloaded"}\r\n'

    def _network(self, _query: Json, _body: bytes, name: str) -> t.Any:
        return self.networks.get(name) or (404, {"message": f"network {name} not found"})

    def _find(self, name: str) -> Json | None:
        return next((one for one in self.containers.values() if name in (one["Id"], one["Name"].lstrip("/"))), None)

    def _of(self, name: str) -> t.Any:
        return self._find(name) or (404, {"message": f"No such container: {name}"})

    def _list(self, query: Json, _body: bytes) -> t.Any:
        wanted = json.loads(query["filters"])["label"]
        return [
            {
                "Id": one["Id"],
                "State": one["State"]["Status"],
                "Labels": one["Config"]["Labels"],
                "Created": int(time.time()),
                "Image": one["Config"]["Image"],
            }
            for one in self.containers.values()
            if all(
                one["Config"]["Labels"].get(label.partition("=")[0])
                in ({label.partition("=")[2]} if "=" in label else one["Config"]["Labels"].values())
                for label in wanted
            )
        ]

    def _create(self, query: Json, body: bytes) -> t.Any:
        if self._find(query["name"]):
            return 409, {"message": f"The container name {query['name']} is already in use"}
        spec, key = json.loads(body), uuid.uuid4().hex
        mounts = [
            {"Type": one["Type"], "Source": one.get("Source", "/volumes/x"), "Destination": one["Target"]}
            for one in spec["HostConfig"]["Mounts"]
        ]
        host = {**spec["HostConfig"], "Runtime": spec["HostConfig"].get("Runtime", "runc"), **self.changes}
        self.containers[key] = {
            "Id": key,
            "Name": f"/{query['name']}",
            "Config": {name: value for name, value in spec.items() if name != "HostConfig"},
            "HostConfig": host,
            "Mounts": mounts,
            "State": {"Status": "created", "Running": False},
            "NetworkSettings": {"Networks": {host["NetworkMode"]: {}}, "Ports": {}},
        }
        return 201, {"Id": key}

    def _remove(self, _query: Json, _body: bytes, name: str) -> t.Any:
        found = self._find(name)
        if found is None:
            return 404, {"message": f"No such container: {name}"}
        del self.containers[found["Id"]]
        return 204, b""

    def _put(self, _query: Json, body: bytes, name: str) -> t.Any:
        found = self._find(name)
        if found is None:
            return 404, {"message": f"No such container: {name}"}
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            self.leases[found["Id"]] = int(tar.getmember("lease").mtime)
            for entry in filter(tarfile.TarInfo.isfile, tar):
                file = tar.extractfile(entry)
                assert file is not None
                self.files[found["Id"], entry.name] = file.read()
        return 200, b""

    def _stat(self, _query: Json, _body: bytes, name: str) -> t.Any:
        found = self._find(name)
        if found is None or found["Id"] not in self.leases:
            return 404, {"message": "no such file"}
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.leases[found["Id"]]))
        described = base64.b64encode(json.dumps({"name": "lease", "mtime": moment}).encode()).decode()
        return 200, b"", {"X-Docker-Container-Path-Stat": described}

    def _get(self, query: Json, _body: bytes, name: str) -> t.Any:
        found = self._find(name)
        if found is None:
            return self._of(name)
        content = self.files.get((found["Id"], pathlib.PurePath(query["path"]).name), b"")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo("file")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        return 200, buffer.getvalue()

    def _exec(self, _query: Json, _body: bytes, name: str) -> t.Any:
        found = self._find(name)
        return self._of(name) if found is None else (201, {"Id": found["Id"]})

    def _start(self, _query: Json, _body: bytes, name: str) -> t.Any:
        found = self._find(name)
        if found is None:
            return self._of(name)
        found["State"] = {"Status": "running", "Running": True}
        binds = [mount for mount in found["Mounts"] if mount["Type"] == "bind"]
        if binds:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{binds[0]['Source']}/agent.sock")
            listener.listen(8)
            self._sockets.append(listener)
            self._serve_in_thread(listener, _answer_as_agent)
        return 204, b""


def _answer_as_agent(connection: socket.socket) -> None:
    decoder = FrameDecoder()
    while not decoder.feed(connection.recv(65536)):
        pass
    connection.sendall(encode(json.dumps({"status": {"text": STATUS}, "program": {"exit": 0}}).encode()))


def _read_request(connection: socket.socket) -> tuple[str, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65536)
        if not data:
            raise ConnectionResetError
        received += data
    head, _end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head.decode(), body
