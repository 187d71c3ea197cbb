# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake agent: answers the privilege probe with a status file of choice, and any other command with its own words."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import (
    CHANNEL_EVENT,
    CHANNEL_STDOUT,
    END_OF_STREAM,
    PROTOCOL,
    FrameDecoder,
    encode,
    encode_channel,
    encode_json,
)

#: The pod's uid, by which the agent knows us.
POD_UID = "0f0e0d0c-1111-4222-8333-444455556666"

UNPRIVILEGED = (
    "Uid:\t1000\t1000\t1000\t1000\n"
    "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
)
PRIVILEGED = UNPRIVILEGED.replace("CapBnd:\t0000000000000000", "CapBnd:\t00000000a80425fb")

#: Where the network probe finds what it looks up inside.
INSIDE = {"dns": "10.96.0.10", "api": "10.96.0.1"}

#: What it says about itself.
HEALTH: dict[str, t.Any] = {
    "protocol": PROTOCOL,
    "features": ["flush", "quiesce"],
    "agent": "1",
    "python": "3",
    "executable": "python3",
    "workspace": "/workspace",
    "uptime": 1.0,
}


class FakeAgent:
    """An agent in a thread. Use it as a context manager.

    Attributes:
        status: what the probe reads.
        answers: whether it answers at all.
        settles: what it answers to ``healthz``, ``flush`` and ``quiesce``.
        prints: what a program prints, by its arguments.
        connects: names the places that the network probe reaches, each time that it is asked.
        asked: the operations that it was asked for.
    """

    def __init__(self) -> None:
        self.status = UNPRIVILEGED
        self.answers = True
        self.settles: dict[str, t.Any] = {
            "healthz": HEALTH,
            "flush": {"flushed": {"path": "/workspace", "scope": "file-system", "duration_ms": 1}},
            "quiesce": {"quiesced": {"stopped": [], "stopped_count": 0, "left": [], "left_count": 0, "duration_ms": 1}},
        }
        self.prints: t.Callable[[list[str]], str] = lambda argv: " ".join(argv) + "\n"
        self.connects: t.Callable[[], set[str]] = lambda: {"dns", "api", "pod"}
        self.asked: list[str] = []
        self.stopping = threading.Event()
        self._listener = _Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,), name="fake-agent")

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._listener.server_address[1])

    def tried(self, asked: str) -> str:
        """What the network probe's program prints, in a sandbox whose network lets through what ``connects`` names."""
        places = json.loads(asked)["places"]
        for place in places:
            place["host"] = place["host"] or INSIDE[place["name"]]
            place["outcome"] = "connected" if place["name"] in self.connects() else "no answer"
        return json.dumps(places)

    def answer(self, request: dict[str, t.Any]) -> bytes:
        """All that is sent for a request."""
        self.asked.append(str(request.get("op")))
        if request.get("token") != POD_UID:
            return encode(encode_json({"error": {"kind": "unauthorized", "message": "not ours"}}))
        if request["op"] == "privileges":
            return encode(encode_json({"status": {"text": self.status}, "program": {"exit": 0, "signal": None}}))
        if request["op"] in self.settles:
            return encode(encode_json(self.settles[request["op"]]))
        argv = request["body"]["argv"]
        said = self.prints(argv)
        if argv[:2] == ["python3", "-I"]:
            said = self.tried(argv[-1])
        end = {
            "exit": 0,
            "signal": None,
            "timed_out": False,
            "dropped_stdout": 0,
            "dropped_stderr": 0,
            "duration_ms": 1,
        }
        return (
            encode(encode_json({"started": {"pid": 7}}))
            + encode_channel(CHANNEL_STDOUT, said.encode())
            + encode_channel(CHANNEL_EVENT, encode_json({"end": end}))
            + END_OF_STREAM
        )


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = False
    block_on_close = True

    def __init__(self, agent: FakeAgent) -> None:
        self.agent = agent
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(socketserver.BaseRequestHandler):
    request: socket.socket
    server: _Listener

    def handle(self) -> None:
        if not self.server.agent.answers:
            self.server.agent.stopping.wait()
            return
        decoder, frames = FrameDecoder(), []
        while not frames:
            data = self.request.recv(65536)
            if not data:
                return
            frames = decoder.feed(data)
        self.request.sendall(self.server.agent.answer(json.loads(frames[0])))
