# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever tries tokens learns nothing from the answers: not from their bytes, and not from their time."""

from __future__ import annotations

import json
import pathlib
import random
import socket
import statistics
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    PATIENCE,
    TOKEN,
    RunningAgent,
    running_agent,
)

#: Attempts of each kind.
ATTEMPTS = 100

#: What a stranger could send instead of the token.
GUESSES: dict[str, t.Any] = {
    "no byte right": "".join("0" if letter != "0" else "1" for letter in TOKEN),
    "half of it right": TOKEN[:18] + "x" * 18,
    "all but the last byte right": TOKEN[:-1] + "x",
    "all but the first byte right": "x" + TOKEN[1:],
    "too short by one": TOKEN[:-1],
    "too long by one": TOKEN + "x",
    "much too long": TOKEN * 25,
    "empty": "",
    "null": None,
    "missing": ...,
}


def request(guess: t.Any) -> bytes:
    """A first frame with the guess in it; all are of one length, for a longer one takes longer to send."""
    said = {"op": "healthz", "body": {}} if guess is ... else {"op": "healthz", "body": {}, "token": guess}
    said["body"] = {"padding": "x" * (1200 - len(json.dumps(said)))}
    return encode(json.dumps(said).encode())


def attempt(port: int, frame: bytes) -> tuple[float, bytes]:
    """Seconds from the last byte sent to the end of the answer, and the answer."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
        began = time.perf_counter()
        sock.sendall(frame)
        answer = b""
        while data := sock.recv(4096):
            answer += data
        return time.perf_counter() - began, answer


def told_apart(port: int) -> tuple[set[bytes], list[str]]:
    """All answers to all guesses, and the guesses that stand apart twice: a moment of the machine does so once."""
    answers, apart = measured(port)
    if apart:
        more, again = measured(port)
        answers, apart = answers | more, [name for name in apart if name in again]
    return answers, apart


def measured(port: int) -> tuple[set[bytes], list[str]]:
    """All answers to all guesses, and the guesses whose usual time is not within the middle half of the others'."""
    frames = {name: request(guess) for name, guess in GUESSES.items()}
    assert len({len(frame) for frame in frames.values()}) == 1
    times: dict[str, list[float]] = {name: [] for name in frames}
    answers = set()
    turns = list(frames)
    order = random.Random(1)  # noqa: S311
    for _unused in range(ATTEMPTS):
        # In turns, so that what the machine does meanwhile hits all alike.
        order.shuffle(turns)
        for name in turns:
            took, answer = attempt(port, frames[name])
            times[name].append(took)
            answers.add(answer)
    apart = []
    for name, values in times.items():
        low, _middle, high = statistics.quantiles(
            (one for other in times if other != name for one in times[other]), n=4
        )
        apart += [] if low <= statistics.median(values) <= high else [name]
    return answers, apart


def test_every_guess_gets_the_same_bytes_in_the_same_time(agent: RunningAgent) -> None:
    """A comparison that ends at the first wrong byte differs by nanoseconds, which nobody sees through a socket.

    What this finds is a kind of guess that takes another way: a check before or after, a line in a log, a pause.
    """
    answers, apart = told_apart(agent.port)
    assert len(answers) == 1
    assert b'"unauthorized"' in answers.pop()
    assert apart == []


def test_an_agent_that_looks_at_one_guess_for_longer_is_found_out(tmp_path: pathlib.Path) -> None:
    """It looks for longer than six busy programs on two processors delay an answer; of 1 ms nothing is seen there."""
    patch = """
import server, time
def slow(given, own, real=server.compare_digest):
    if len(given) == len(own) and given[:-1] == own[:-1]: time.sleep(0.02)
    return real(given, own)
server.compare_digest = slow
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        assert told_apart(agent.port)[1] == ["all but the last byte right"]


@pytest.mark.parametrize("guess", GUESSES.values(), ids=GUESSES)
def test_nothing_but_the_comparison_in_constant_time_decides(tmp_path: pathlib.Path, guess: t.Any) -> None:
    """Whoever it lets pass is served, whatever the guess was, so nothing looks at it before or after.

    The comparison's length is that of its second argument (Python's Modules/_operator.c, _tscmp), which is the token.
    """
    patch = f"""
import _operator, server
assert server.compare_digest is _operator._compare_digest
server.compare_digest = lambda given, own: isinstance(given, bytes) and own == {TOKEN.encode()!r}
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        answer = attempt(agent.port, request(guess))[1]
    assert json.loads(answer.partition(b"\n")[2])["protocol"] == 1
