# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program finds in a sandbox: run by playbooks/demo.yml, inside."""

import os
import platform
import socket
import sys
import time


def say(question, answer):
    sys.stdout.write(f"{question:<34} {answer}\n")


def attempt(action):
    """Try what should not be possible."""
    try:
        action()
    except OSError as error:
        return f"no ({error.strerror or error})"
    return "YES"


def write(folder):
    with open(os.path.join(folder, "demo"), "w") as file:
        file.write("hello")


def primes(limit):
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


def main():
    say("Who am I?", f"uid {os.getuid()}, gid {os.getgid()}, on {socket.gethostname()}")
    say("What runs me?", f"Python {platform.python_version()} on Linux {platform.release()}")
    say("May I become root?", attempt(lambda: os.setuid(0)))
    say("May I write to /?", attempt(lambda: write("/")))
    say("May I write to my workspace?", attempt(lambda: write(os.getcwd())).lower())
    say("Is there a Kubernetes token?", attempt(lambda: os.stat("/var/run/secrets/kubernetes.io/serviceaccount/token")))
    say("Do I reach the internet?", attempt(lambda: socket.create_connection(("1.1.1.1", 443), 1).close()))
    started = time.monotonic()
    found = primes(1_000_000)
    say("How many primes below a million?", f"{found}, counted in {(time.monotonic() - started) * 1000:.0f} ms")


main()
