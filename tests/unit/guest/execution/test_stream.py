# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stream of a command, as the client reads it."""

from __future__ import annotations

import codecs
import contextlib
import json
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestProtocolError, GuestRefusedError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.request import stdin_frames
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution, collect
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import FrameDecoder

END: dict[str, t.Any] = {
    "exit": 0,
    "signal": None,
    "timed_out": False,
    "dropped_stdout": 0,
    "dropped_stderr": 0,
    "duration_ms": 1500,
}


def event(**changes: t.Any) -> bytes:
    return b"\x03" + json.dumps({"end": {**END, **changes}}).encode()


def read(*frames: bytes, max_output: int = 100, on_output: t.Callable[[str, bytes], None] | None = None) -> Execution:
    given_frames = iter(frames)
    return collect(lambda: next(given_frames), max_output, on_output)


def test_a_command_that_ended_well() -> None:
    execution = read(b"\x01out", b"\x02err", b"\x01put", event(), b"")
    assert execution == Execution(0, None, b"output", b"err", False, False, False, 1.5)


def test_a_signal_counts_as_shells_count_it() -> None:
    execution = read(event(exit=None, signal=9, timed_out=True), b"")
    assert (execution.rc, execution.signal, execution.timed_out) == (137, 9, True)


def test_an_event_from_a_newer_agent_is_passed_over() -> None:
    assert read(b'\x03{"heartbeat": 1}', event(exit=3), b"").rc == 3


def test_an_error_in_the_stream_is_a_refusal() -> None:
    with pytest.raises(GuestRefusedError) as caught:
        read(b"\x01x", b'\x03{"error": {"kind": "internal", "message": "oh"}}', b"")
    assert caught.value.kind == "internal"


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"\x07what", b""],
        [b"{}", b""],
        [b"\x03[]", b""],
        [b"\x03nonsense", b""],
        [b'\x03{"end": 7}', b""],
        [event(exit=None), b""],
        [event(signal=9), b""],
        [event(exit="0"), b""],
        [event(exit=True), b""],
        [event(dropped_stdout=-1), b""],
        [event(dropped_stderr=None), b""],
        [event(duration_ms="1"), b""],
        [b"\x01" + b"x" * 101, b""],
    ],
)
def test_a_stream_that_is_none_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(GuestProtocolError):
        read(*frames)


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_whatever_comes_there_is_a_result_or_the_typed_error(frames: list[bytes]) -> None:
    with contextlib.suppress(GuestProtocolError, GuestRefusedError):
        assert read(*frames, b"").rc >= 0


@given(st.text("aé€\N{GRINNING FACE}\n", max_size=30), st.integers(min_value=1, max_value=4))
def test_text_that_was_cut_anywhere_is_whole_again(text: str, size: int) -> None:
    data = text.encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    heard = []
    execution = read(
        *(b"\x01" + data[start : start + size] for start in range(0, len(data), size)),
        event(),
        b"",
        max_output=1000,
        on_output=lambda _stream, part: heard.append(decoder.decode(part)),
    )
    assert "".join(heard) + decoder.decode(b"", final=True) == text
    assert execution.stdout_text == text


def test_a_character_that_the_limit_cut_in_two_is_left_out_of_the_text_only() -> None:
    execution = read(b"\x01a\xc3", event(dropped_stdout=1), b"")
    assert (execution.stdout, execution.stdout_text, execution.truncated_stdout) == (b"a\xc3", "a", True)
    assert read(b"\x01a\xc3", event(), b"").stdout_text == "a\N{REPLACEMENT CHARACTER}"


@given(st.binary(max_size=300_000))
def test_input_is_framed_whole(data: bytes) -> None:
    frames = FrameDecoder().feed(b"".join(stdin_frames([data])))
    assert frames.pop() == b""
    assert b"".join(frame[1:] for frame in frames) == data
    assert {frame[0] for frame in frames} <= {0}
