# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals while a verb runs: it cleans up once and undisturbed, and then the signal takes its usual course."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from ansible_collections.namzu.sandbox.plugins.module_utils.front.interrupts import Interrupted, interruptible

def say(word):
    print(word, flush=True)

def wait_for_a_signal():
    say("waiting")
    while True:
        time.sleep(0.01)

def signalled(number):
    os.kill(os.getpid(), number)
    time.sleep(0.05)
"""


def run(body: str, *, send: signal.Signals | None = None) -> tuple[list[str], int]:
    """Run a program, signal it when it says ``waiting``, and return what it said and how it ended."""
    program = [sys.executable, "-c", PROGRAM + textwrap.dedent(body)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line.strip())
            if line.strip() == "waiting" and send is not None:
                process.send_signal(send)
        return said, process.wait(30)


VERB_WITH_CLEANUP = """
{before}
try:
    with interruptible():
        try:
            wait_for_a_signal()
        except BaseException as error:
            say(type(error).__name__)
            {during}
            say("cleaned up")
            raise
except KeyboardInterrupt:
    say("KeyboardInterrupt")
"""


def test_sigint_cleans_up_and_becomes_a_keyboard_interrupt() -> None:
    said, code = run(VERB_WITH_CLEANUP.format(before="", during=""), send=signal.SIGINT)
    assert said == ["waiting", "Interrupted", "cleaned up", "KeyboardInterrupt"]
    assert code == 0


def test_sigterm_cleans_up_and_ends_the_process() -> None:
    said, code = run(VERB_WITH_CLEANUP.format(before="", during=""), send=signal.SIGTERM)
    assert said == ["waiting", "Interrupted", "cleaned up"]
    assert code == -signal.SIGTERM


@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM"])
def test_second_signal_does_not_abort_the_cleanup(second: str) -> None:
    during = f"signalled(signal.{second}); signalled(signal.{second})"
    said, code = run(VERB_WITH_CLEANUP.format(before="", during=during), send=signal.SIGTERM)
    assert said == ["waiting", "Interrupted", "cleaned up"]
    assert code == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_previous_handler_runs_afterwards(number: signal.Signals) -> None:
    before = f"signal.signal({number.value}, lambda *_: (say('previous handler'), os._exit(7)))"
    said, code = run(VERB_WITH_CLEANUP.format(before=before, during=""), send=number)
    assert said == ["waiting", "Interrupted", "cleaned up", "previous handler"]
    assert code == 7


def test_handlers_are_restored_when_nothing_came() -> None:
    said, code = run(
        """
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        with interruptible():
            pass
        say([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before)
        """
    )
    assert (said, code) == (["True"], 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_that_was_ignored_stays_ignored(number: signal.Signals) -> None:
    said, code = run(
        f"""
        signal.signal({number.value}, signal.SIG_IGN)
        with interruptible():
            signalled({number.value})
            say("went on")
        say(signal.getsignal({number.value}) == signal.SIG_IGN)
        """
    )
    assert (said, code) == (["went on", "True"], 0)


def test_signal_after_the_verb_is_not_lost() -> None:
    said, code = run(
        """
        try:
            with interruptible():
                try:
                    wait_for_a_signal()
                except Interrupted:
                    say("swallowed")
            time.sleep(5)
        except KeyboardInterrupt:
            say("KeyboardInterrupt")
        """,
        send=signal.SIGINT,
    )
    assert (said, code) == (["waiting", "swallowed", "KeyboardInterrupt"], 0)


def test_verb_in_another_thread_runs_as_it_is() -> None:
    said, code = run(
        """
        def verb():
            with interruptible():
                say("ran")
        thread = threading.Thread(target=verb)
        thread.start()
        thread.join()
        """
    )
    assert (said, code) == (["ran"], 0)


def test_error_of_the_verb_is_passed_on() -> None:
    said, code = run(
        """
        try:
            with interruptible():
                raise ValueError("its own")
        except ValueError as error:
            say(error)
        """
    )
    assert (said, code) == (["its own"], 0)
