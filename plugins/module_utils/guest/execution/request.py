# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The request for a command, and the input that follows it."""

from __future__ import annotations

import base64
import typing as t

from ...errors import InputError
from ..protocol.wire import CHANNEL_STDIN, END_OF_STREAM, encode_channel

#: Bytes of each output stream that are returned when the caller sets no other limit.
DEFAULT_MAX_OUTPUT = 1024 * 1024

#: Seconds between SIGTERM and SIGKILL when the caller does not name another grace.
DEFAULT_GRACE = 2.0
#: Seconds after a command's timeout and grace within which the agent must have reported its end.
END_SECONDS = 3.0

#: Input up to this size travels in the request; more is streamed after it.
INLINE_STDIN = 32 * 1024
_PART = 64 * 1024

#: None is no input.
Input = t.Union[bytes, t.Iterable[bytes], None]


def command_body(
    argv: t.Sequence[str],
    stdin: Input = None,
    *,
    cwd: str | None = None,
    env: t.Mapping[str, str] | None = None,
    timeout: float | None = None,
    grace: float | None = None,
    max_output: int | None = None,
    inline: bool = False,
) -> tuple[dict[str, t.Any], t.Iterable[bytes]]:
    """The body of a request that runs a command, and the frames of input that follow it.

    Args:
        stdin: bytes, or an iterable of bytes; None is no input.
        inline: all input is part of the request, whatever its size, because nothing is sent after it.

    Raises InputError for text.
    """
    optional = {
        "cwd": cwd,
        "env": dict(env) if env else None,
        "timeout": timeout,
        "grace": grace,
        "max_output": max_output,
    }
    body: dict[str, t.Any] = {"argv": list(argv)}
    body |= {key: value for key, value in optional.items() if value is not None}
    if stdin is None:
        return body, ()
    if isinstance(stdin, (bytearray, memoryview)):
        stdin = bytes(stdin)
    if isinstance(t.cast("object", stdin), str):
        raise InputError("stdin is a str, not bytes.", next_step="Encode it: text.encode().")
    if inline and not isinstance(stdin, bytes):
        stdin = b"".join(stdin)
    if isinstance(stdin, bytes) and (inline or len(stdin) <= INLINE_STDIN):
        if stdin:
            body["stdin"] = {"encoding": "base64", "data": base64.b64encode(stdin).decode("ascii")}
        return body, ()
    body["stdin"] = {"encoding": "frames"}
    return body, stdin_frames([stdin] if isinstance(stdin, bytes) else stdin)


def stdin_frames(pieces: t.Iterable[bytes]) -> t.Iterator[bytes]:
    """Bytes as stream frames of at most 64 KiB, and the end of the stream."""
    for piece in pieces:
        for start in range(0, len(piece), _PART):
            yield encode_channel(CHANNEL_STDIN, piece[start : start + _PART])
    yield END_OF_STREAM
