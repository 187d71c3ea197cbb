# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in a real, hardened pod."""

from __future__ import annotations

import io
import os

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import Files
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.forwarding import open_tcp
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.quiescence import flush, quiesce
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.attachment import open_terminal
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import eventually, within

LISTEN = "import socket; s = socket.create_server(('', 8080)); c, a = s.accept(); c.sendall(c.recv(9)[::-1]); c.recv(9)"


def test_everything_works_in_a_pod_without_privileges(hold):
    agent = hold().agent
    workspace = agent.healthz(within()).workspace
    files, sessions = Files(agent), Sessions(agent)
    data = os.urandom(5_000_000)
    files.put(data, "big/file", parents=True, mode=0o640, sync=True, deadline=within())
    sink = io.BytesIO()
    assert files.fetch("big/file", sink, deadline=within()).path == f"{workspace}/big/file"
    assert sink.getvalue() == data
    assert agent.execute(["id", "-u"], deadline=within()).stdout != b"0\n"
    with open_terminal(agent, ["sh", "-c", "stty size"], rows=12, columns=34, deadline=within()) as terminal:
        said = b""
        while (piece := terminal.read(within())) is not None:
            said += piece[1]
    assert said == b"12 34\r\n"
    server = sessions.start(["python3", "-c", LISTEN], name="server", deadline=within())
    eventually(lambda: agent.execute(["grep", "-q", ":1F90", "/proc/net/tcp"], deadline=within()).rc == 0)
    with open_tcp(agent, 8080, deadline=within()) as stream:
        stream.send(b"abc", within())
        assert stream.receive(within()) == b"cba"
        report = quiesce(agent, deadline=within(), grace=0.5)
    assert server.id in {process.id for process in report.stopped}
    assert flush(agent, deadline=within()).path == workspace
    assert agent.execute(["echo", "on"], deadline=within()).stdout == b"on\n"


def test_a_fork_bomb_meets_the_pods_limit_and_passes(hold):
    agent = hold().agent
    bomb = (
        "import os, time\nn = 0\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(1000)\n"
        "        n += 1\n"
        "    except OSError as error:\n"
        "        print(n, error.errno, flush=True); time.sleep(1000)\n"
    )
    done = agent.execute(["python3", "-c", bomb], timeout=8, grace=0.2, deadline=within())
    assert done.timed_out
    number, error = map(int, done.stdout.split()[:2])
    assert (number > 10, error) == (True, 11), "fork failed with EAGAIN"
    eventually(lambda: agent.execute(["true"], deadline=within()).rc == 0)
    # Every one of them was an orphan when its parent was killed, and none is left as a zombie.
    eventually(lambda: len(agent.execute(["sh", "-c", "ls -d /proc/[0-9]*"], deadline=within()).stdout.split()) < 6)
