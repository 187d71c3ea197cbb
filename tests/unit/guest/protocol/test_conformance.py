# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wire as docs/reference/guest.md says it, whatever the network does to it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import pathlib
import socket
import sys
import types
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.changes import watch
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError, GuestUnsupportedError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import Files
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.filesystem import FileSystem
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.forwarding import open_tcp
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.quiescence import flush, quiesce
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.detached import Executions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.trees import Trees
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    FOLDER,
    TOKEN,
    RunningAgent,
    eventually,
    running_agent,
    within,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap
from tests.unit.guest.agent.test_client import Server, agent_at, answer

CAT = {"op": "execute", "token": TOKEN, "body": {"argv": ["cat"], "stdin": {"encoding": "frames"}}}
WORDS = "añ€😀".encode()


def whole_conversation() -> bytes:
    return encode(json.dumps(CAT).encode()) + encode(b"\x00" + WORDS) + encode(b"\x00" + WORDS[::-1]) + encode(b"")


def output_and_end(frames: t.Iterable[bytes]) -> tuple[bytes, int]:
    output, code = b"", -1
    for frame in frames:
        if frame[:1] == b"\x01":
            output += frame[1:]
        elif frame[:1] == b"\x03":
            code = json.loads(frame[1:])["end"]["exit"]
    return output, code


def converse(agent: RunningAgent, parts: t.Iterable[bytes]) -> tuple[bytes, int]:
    with agent.connect() as wire:
        for part in parts:
            wire.socket.sendall(part)
        assert "started" in wire.json()
        return output_and_end(iter(wire.frame, b""))


def test_a_conversation_may_be_cut_at_every_byte(agent: RunningAgent) -> None:
    said = whole_conversation()
    # Around every border between header and content, and in the middle of characters.
    for cut in [*range(1, 24), *range(len(said) - 70, len(said))]:
        assert converse(agent, [said[:cut], said[cut:]]) == (WORDS + WORDS[::-1], 0)


def test_a_conversation_may_come_byte_by_byte_or_all_at_once(agent: RunningAgent) -> None:
    said = whole_conversation()
    assert converse(agent, [said]) == (WORDS + WORDS[::-1], 0)
    assert converse(agent, [said[at : at + 1] for at in range(len(said))]) == (WORDS + WORDS[::-1], 0)


def test_every_operation_survives_a_line_that_passes_on_single_bytes(agent: RunningAgent) -> None:
    with Tap(agent.port, piece=1) as tap:
        client = tap.client()
        assert client.execute(["cat"], stdin=WORDS, deadline=within()).stdout == WORDS
        assert Executions(client).run(["printf", "x"], deadline=within()).stdout == b"x"
        Files(client).put(WORDS * 200, "bytewise", deadline=within())
        sink = io.BytesIO()
        Files(client).fetch("bytewise", sink, deadline=within())
        assert sink.getvalue() == WORDS * 200
        assert Files(client).read("bytewise", offset=1, length=5, deadline=within()).data == (WORDS * 2)[1:6]
        assert [entry.path for entry in FileSystem(client).list(deadline=within())] == ["bytewise"]
        assert Sessions(client).list(within())
        assert flush(client, deadline=within()).path


@pytest.mark.parametrize("cut", range(len(WORDS) + 1))
def test_a_character_that_is_cut_by_the_limit_is_left_out_of_the_text_and_kept_in_the_bytes(
    agent: RunningAgent, cut: int
) -> None:
    done = agent.client.execute(["printf", "%s", WORDS.decode()], max_output=cut, deadline=within())
    assert done.stdout == WORDS[:cut]
    assert done.stdout_text == WORDS[:cut].decode("utf-8", "ignore")


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("execute", {"argv": ["sleep", "1000"]}),
        ("open-terminal", {"argv": ["sleep", "1000"], "terminal": {"rows": 1, "columns": 1}}),
        ("open-tcp", {"port": 0}),
        ("write-file", {"path": "half-closed"}),
        ("read-file-stream", {"path": "/proc/self/status"}),
        ("list-files", {"path": "/proc/self"}),
        ("write-tree", {"path": "half", "parents": True}),
        ("read-tree", {"path": "/proc/self/net"}),
        ("watch-folder", {"path": "."}),
    ],
)
def test_half_a_connection_is_none(agent: RunningAgent, operation: str, body: dict[str, t.Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        if operation == "open-tcp":
            body = {"port": server.getsockname()[1]}
        with agent.connect().request(operation, body) as wire:
            assert "error" not in wire.json()
            wire.socket.shutdown(socket.SHUT_WR)
            wire.rest()
        eventually(lambda: agent.status("Threads") == "2")
        assert list(agent.workspace.glob(".namzu-*")) == []


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("execute", {"argv": ["sleep", "1000"]}),
        ("session-attach", {}),
        ("open-terminal", {"argv": ["sleep", "1000"], "terminal": {"rows": 1, "columns": 1}}),
        ("write-file", {"path": "nonsense"}),
        ("write-tree", {"path": "nonsense-tree", "parents": True}),
        ("watch-folder", {"path": "."}),
        ("read-file-stream", {"path": "large"}),
    ],
)
def test_a_client_that_talks_nonsense_is_left(agent: RunningAgent, operation: str, body: dict[str, t.Any]) -> None:
    sessions = Sessions(agent.client)
    key = sessions.start(["sleep", "1000"], deadline=within()).id
    body = {"id": key} if operation == "session-attach" else body
    with (agent.workspace / "large").open("wb") as file:
        file.truncate(100_000_000)
    for nonsense in (encode(b"\x09?"), b"GET / HTTP/1.1\r\n\r\n", b"00800001\n", encode(b"\x03[[[")):
        if operation in ("session-attach", "open-terminal") and nonsense.endswith(b"[[["):
            continue  # an event that cannot be honoured is answered there
        with agent.connect().request(operation, body) as wire:
            assert "error" not in wire.json()
            wire.socket.sendall(nonsense)
            with contextlib.suppress(ConnectionResetError):
                wire.rest()
    sessions.kill(key, deadline=within())
    eventually(lambda: agent.status("Threads") == "2")


def test_requests_that_are_no_good_have_one_kind_in_every_operation(agent: RunningAgent) -> None:
    bodies: dict[str, list[dict[str, t.Any]]] = {
        "execute": [{"argv": ["true"], "detach": True, "stdin": {"encoding": "frames"}}],
        "attach": [{}, {"id": 1}, {"id": ""}, {"id": "x" * 65}, {"id": "a", "more": 1}],
        "cancel": [{}, {"id": "-a"}, {"id": "a b"}],
        "read-file": [{}, {"path": 1}, {"path": "a", "offset": -1}, {"path": "a", "length": 1 << 30}],
        "read-file-stream": [{"path": "a", "checksum": 1}, {"path": "a", "offset": True}],
        "write-file": [{"path": "a", "mode": 0o10000}, {"path": "a", "mode": "644"}, {"path": "a", "id": "../x"}],
        "open-terminal": [{"argv": ["sh"]}, {"argv": ["sh"], "terminal": {"rows": 1}}],
        "session-start": [{"argv": ["sh"], "max_output": 1}, {"argv": ["sh"], "name": "a/b"}],
        "session-list": [{"all": True}],
        "session-read": [{"id": "a", "limit": 0}, {}],
        "quiesce": [{"grace": 61}],
        "list-files": [{}, {"path": ".", "limit": 0}, {"path": ".", "recursive": 1}, {"path": ".", "more": 1}],
        "stat-file": [{}, {"path": ".", "follow": False}],
        "make-folder": [{"path": "x", "mode": 0o1000}, {"path": ""}],
        "move-file": [{"path": "x"}, {"path": "x", "target": ".."}, {"path": "x", "target": "y", "replace": "no"}],
        "read-tree": [{}, {"path": ".", "only": "x"}, {"path": ".", "only": [1]}, {"path": ".", "limit": 1 << 40}],
        "write-tree": [
            {},
            {"path": ".", "delete": ["../x"]},
            {"path": ".", "delete": [None]},
            {"path": ".", "mode": 1},
        ],
        "watch-folder": [{}, {"path": ".", "interval": 0}, {"path": ".", "limit": 0}, {"path": ".", "interval": "1"}],
        "remove-file": [{"path": "."}, {"path": "x/.."}, {"path": "/"}],
    }
    sessions = Sessions(agent.client)
    sessions.start(["true"], name="a", deadline=within())
    for operation, tried in bodies.items():
        for body in tried:
            with agent.connect().request(operation, body) as wire:
                assert wire.json()["error"]["kind"] == "bad-request", (operation, body)


def test_the_health_names_what_every_call_asks_for(agent: RunningAgent) -> None:
    assert agent.client.healthz(within()).features == {
        "detach", "execute", "files", "flush", "heartbeat", "open-terminal", "quiesce", "read-file", "read-file-stream",
        "sessions", "open-tcp", "privileges", "trees", "watch", "write-file",
    }  # fmt: skip


class TestAnOlderAgent:
    """It knows neither the operation nor the field."""

    @pytest.mark.parametrize(
        ("feature", "call"),
        [
            ("read-file", lambda agent: Files(agent).read("x", deadline=within())),
            ("read-file-stream", lambda agent: Files(agent).fetch("x", io.BytesIO(), deadline=within())),
            ("write-file", lambda agent: Files(agent).put(b"", "x", deadline=within())),
            ("files", lambda agent: FileSystem(agent).list(deadline=within())),
            ("files", lambda agent: FileSystem(agent).stat("x", deadline=within())),
            ("files", lambda agent: FileSystem(agent).exists("x", deadline=within())),
            ("files", lambda agent: FileSystem(agent).mkdir("x", deadline=within())),
            ("files", lambda agent: FileSystem(agent).move("x", "y", deadline=within())),
            ("files", lambda agent: FileSystem(agent).remove("x", deadline=within())),
            ("trees", lambda agent: Trees(agent).upload(pathlib.Path(__file__).parent, "x", deadline=within())),
            ("trees", lambda agent: Trees(agent).download("x", "/dev/null/none", deadline=within())),
            ("watch", lambda agent: watch(agent, "x", deadline=within())),
            ("sessions", lambda agent: Sessions(agent).list(within())),
            ("open-tcp", lambda agent: open_tcp(agent, 80, deadline=within())),
            ("quiesce", lambda agent: quiesce(agent, deadline=within())),
            ("flush", lambda agent: flush(agent, deadline=within())),
            ("detach", lambda agent: Executions(agent).attach("x", deadline=within())),
        ],
    )
    def test_is_named_with_the_feature_that_it_lacks(self, feature: str, call: t.Callable[..., object]) -> None:
        with Server(answer({"error": {"kind": "unsupported", "message": "no"}})) as server:
            with pytest.raises(GuestUnsupportedError) as caught:
                call(agent_at(server.port))
            assert len(server.requests) == 1
        error = caught.value
        assert (error.feature, error.reason, error.retryable) == (feature, "agent-unsupported", False)
        assert "template role" in str(error)

    def test_that_refuses_the_field_detach_is_asked_for_its_features(self, tmp_path: pathlib.Path) -> None:
        patch = """
import execute, command, operations
operations.FEATURES.remove("detach")
def old(context, peer, body): command.Command(body, context.settings)
operations.LOADED["execute"] = old
"""
        with running_agent(workspace=tmp_path, patch=patch) as agent:
            executions = Executions(agent.client)
            with pytest.raises(GuestUnsupportedError) as caught:
                executions.start(["true"], deadline=within())
        assert caught.value.feature == "detach"

    def test_that_knows_detach_and_refuses_for_another_reason_is_quoted(self, agent: RunningAgent) -> None:
        with pytest.raises(GuestRefusedError) as caught:
            Executions(agent.client).start(["true"], key="no/slash", deadline=within())
        assert caught.value.kind == "bad-request"


@pytest.fixture(scope="module")
def modules() -> t.Iterator[dict[str, types.ModuleType]]:
    """Files of the agent, loaded here under other names."""
    before = dict(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        loaded = {}
        for name in ("wire", "retained", "server"):
            spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            loaded[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
        yield loaded
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)


@settings(max_examples=100)
@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(1, 50), max_size=20))
def test_no_bytes_make_the_agents_decoder_fail_or_hold_more_than_a_frame(
    modules: dict[str, types.ModuleType], data: bytes, cuts: list[int]
) -> None:
    wire = modules["wire"]
    decoder, at, sizes = wire.Decoder(64), 0, iter(cuts)
    with contextlib.suppress(wire.Refused):
        while at < len(data):
            size = min(decoder.wanted, next(sizes, 50))
            frame = decoder.feed(data[at : at + size])
            assert frame is None or len(frame) <= 64
            assert decoder.wanted <= 64
            at += size


@settings(max_examples=100)
@given(value=st.binary(max_size=100) | st.text(alphabet='{}[]":,\\01e-tn', max_size=60).map(str.encode))
def test_no_first_frame_makes_the_parser_fail(modules: dict[str, types.ModuleType], value: bytes) -> None:
    assert isinstance(modules["server"].parse(value), dict)


@settings(max_examples=100)
@given(
    written=st.lists(st.tuples(st.integers(1, 2), st.binary(min_size=1, max_size=9)), max_size=30),
    limit=st.none() | st.integers(1, 20),
    size=st.integers(1, 9),
)
def test_kept_output_is_what_was_written_from_the_first_byte_that_is_kept(
    modules: dict[str, types.ModuleType], written: list[tuple[int, bytes]], limit: int | None, size: int
) -> None:
    retained = modules["retained"]
    retained._SLACK = 5
    budget = retained.Budget(lambda: False, 10_000)
    log = retained.Log(budget, limit)
    for channel, data in written:
        assert log.append(channel, data)
    expected = [(channel, byte) for channel, data in written for byte in data]
    assert log.next == len(expected)
    assert limit is None or log.next - log.first >= min(limit, len(expected))
    found, offset = [], log.first
    while offset < log.next:
        channel, data = log.read(offset, size)
        assert 0 < len(data) <= size
        found += [(channel, byte) for byte in data]
        offset += len(data)
    assert found == expected[log.first :]
    assert log.read(log.next, size)[1] == b""
    log.close()
    assert budget._left == 10_000
