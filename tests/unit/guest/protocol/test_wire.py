# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame decoders: ours, and the agent's, which must agree on every byte."""

from __future__ import annotations

import itertools
import types
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestProtocolError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import (
    END_OF_STREAM,
    FIRST_FRAME_LIMIT,
    FRAME_LIMIT,
    HEADER_SIZE,
    FrameDecoder,
    decode_json,
    encode,
    encode_channel,
    encode_json,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import FOLDER

LIMIT = 64

payloads = st.lists(st.binary(max_size=LIMIT), max_size=6)
#: Bytes that are likely to be almost a frame.
almost_frames = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text("0123456789abcdefABCDEF\n", max_size=10).map(str.encode),
        st.binary(max_size=LIMIT).map(encode),
    ),
    max_size=6,
).map(b"".join)


def agents_wire() -> types.ModuleType:
    """The agent's wire module, without leaving byte code beside it."""
    module = types.ModuleType("agents_wire")
    path = FOLDER / "wire.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)  # noqa: S102
    return module


AGENTS = agents_wire()


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def agent_frames(data: bytes) -> tuple[list[bytes], bool]:
    """What the agent's decoder makes of ``data``, and whether it refused."""
    decoder = AGENTS.Decoder(LIMIT)
    frames: list[bytes] = []
    start = 0
    try:
        while True:
            piece = data[start : start + max(decoder.wanted, 0)]
            if not piece and decoder.wanted > 0:
                return frames, False
            start += len(piece)
            frame = decoder.feed(piece)
            if frame is not None:
                frames.append(frame)
    except AGENTS.Refused:
        return frames, True


def our_frames(parts: t.Iterable[bytes]) -> tuple[list[bytes], bool]:
    """What ours makes of it, byte by byte, so that frames before a fault are seen."""
    decoder = FrameDecoder(LIMIT)
    frames: list[bytes] = []
    try:
        for part in parts:
            frames += decoder.feed(part)
    except GuestProtocolError:
        return frames, True
    return frames, False


@given(payloads, st.lists(st.integers(min_value=0), max_size=30))
def test_frames_survive_any_cut(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(encode(frame) for frame in frames)
    assert our_frames(pieces(data, cuts)) == (frames, False)


@given(payloads)
def test_frames_survive_being_cut_at_every_byte(frames: list[bytes]) -> None:
    data = b"".join(encode(frame) for frame in frames)
    assert our_frames(data[index : index + 1] for index in range(len(data))) == (frames, False)


@given(almost_frames)
def test_garbage_gives_the_typed_error_or_frames_and_both_sides_agree(data: bytes) -> None:
    ours = our_frames(data[index : index + 1] for index in range(len(data)))
    assert ours == agent_frames(data)


@given(almost_frames, st.lists(st.integers(min_value=0), max_size=10))
def test_whether_bytes_are_refused_does_not_depend_on_their_cuts(data: bytes, cuts: list[int]) -> None:
    assert our_frames(pieces(data, cuts))[1] == our_frames([data])[1]


@given(payloads)
def test_the_agents_frames_are_our_frames(frames: list[bytes]) -> None:
    assert b"".join(map(AGENTS.encode, frames)) == b"".join(map(encode, frames))
    for frame in frames:
        assert AGENTS.encode_channel(1, frame) == encode_channel(1, frame)


def test_the_two_sides_have_the_same_limits() -> None:
    assert (FIRST_FRAME_LIMIT, FRAME_LIMIT) == (AGENTS.FIRST_FRAME_LIMIT, AGENTS.FRAME_LIMIT)
    assert AGENTS.END_OF_STREAM == END_OF_STREAM


def test_an_oversize_frame_is_refused_at_its_header() -> None:
    decoder = FrameDecoder(limit=10)
    with pytest.raises(GuestProtocolError, match="announces 11 bytes; at most 10"):
        decoder.feed(b"0000000b\n")
    with pytest.raises(GuestProtocolError, match="announces 11 bytes"):
        decoder.feed(encode(b"later"))


@pytest.mark.parametrize("start", [b"HTTP/1.1 400 Bad Request\r\n", b"SSH-2.0-", b"0000000A\n", b"00000001 "])
def test_another_protocol_is_refused_at_its_first_wrong_byte(start: bytes) -> None:
    decoder = FrameDecoder()
    with pytest.raises(GuestProtocolError, match="where eight hex digits and a newline belong"):
        decoder.feed(start)


def test_the_decoder_knows_whether_an_end_is_a_cut() -> None:
    decoder = FrameDecoder()
    assert not decoder.midway
    decoder.feed(b"00000001")
    assert decoder.midway
    assert decoder.feed(b"\nx0") == [b"x"]
    assert decoder.midway
    assert decoder.feed(b"0000000\n") == [b""]
    assert not decoder.midway


def test_a_frame_that_is_too_large_is_not_made() -> None:
    assert len(encode(bytes(FRAME_LIMIT))) == FRAME_LIMIT + HEADER_SIZE
    with pytest.raises(ValueError, match="at most 8388608"):
        encode(bytes(FRAME_LIMIT + 1))


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 5_000, b"[" * 100_000, b'{"a":' * 100_000, b'"text"']
)
def test_a_frame_that_holds_no_object_is_refused(payload: bytes) -> None:
    with pytest.raises(GuestProtocolError):
        decode_json(payload)


def test_json_is_ascii_whatever_the_text() -> None:
    assert decode_json(encode_json({"a": "ü\ud800\U0001f600"})) == {"a": "ü\ud800\U0001f600"}
    assert encode_json({"a": "ü"}).isascii()
