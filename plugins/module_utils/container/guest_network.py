# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The network as it looks from inside a sandbox that has none: interfaces, routes and attempts to connect."""

from __future__ import annotations

import json
import typing as t

from ..deadline import Deadline
from ..guest.agent import Agent
from ..text import clean_text
from .errors import ContainerBoundaryError

#: Seconds for each attempt, and for all of the program.
CONNECT_SECONDS = 2.0
PROBE_SECONDS = 20.0

#: Nothing but connecting is done: an address that answers to everyone, the metadata service of clouds, and Docker's
#: usual bridge and name server.
PLACES: tuple[tuple[str, str, int], ...] = (
    ("public", "1.1.1.1", 443),
    ("metadata", "169.254.169.254", 80),
    ("bridge", "172.17.0.1", 22),
    ("dns", "127.0.0.11", 53),
)

#: Runs on any python3 (3.8 or newer) that the image has.
_PROGRAM = r"""
import errno, json, socket, sys
seconds, places = json.loads(sys.argv[1])
def lines(path):
    try:
        return open(path).read().splitlines()
    except OSError:
        return []
def attempt(host, port):
    try:
        socket.create_connection((host, port), seconds).close()
        return "connected"
    except OSError as error:
        return "no answer" if error.errno is None else errno.errorcode.get(error.errno, str(error))
try:
    interfaces = [name for _index, name in socket.if_nameindex()]
except OSError:
    interfaces = [line.split(":")[0].strip() for line in lines("/proc/net/dev")[2:]]
routes = [line.split()[0] for line in lines("/proc/net/route")[1:] if line.split()]
routes += [line.split()[-1] for line in lines("/proc/net/ipv6_route") if line.split()]
attempts = [[name, host, port, attempt(host, port)] for name, host, port in places]
print(json.dumps({"interfaces": interfaces, "routes": routes, "attempts": attempts}))
"""


def probe_no_network(agent: Agent, deadline: Deadline, subject: str) -> dict[str, t.Any]:
    """Prove from inside that there is no network; what was found, as plain data.

    Raises:
        ContainerBoundaryError: there is an interface or a route beside the loopback, something answers, or the
            program's answer cannot be read.
        GuestError: the agent does not answer, or cannot run the program.
    """
    argument = json.dumps([CONNECT_SECONDS, PLACES])
    argv = ["python3", "-I", "-S", "-c", _PROGRAM, argument]
    done = agent.execute(argv, deadline=deadline.child(PROBE_SECONDS))
    try:
        found = json.loads(done.stdout)
        interfaces = sorted({str(name) for name in found["interfaces"]})
        routes = sorted({str(name) for name in found["routes"]})
        attempts = [
            {"place": name, "address": host, "port": port, "outcome": clean_text(outcome, 60)}
            for (name, host, port), (_n, _h, _p, outcome) in zip(PLACES, found["attempts"], strict=True)
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        said = clean_text(done.stderr_text, 200) or "nothing"
        raise ContainerBoundaryError(
            f"The network probe of {subject} could not be read: its program ended with {done.rc} and wrote {said}.",
            object=subject,
            next_step="Look whether python3 in the image is the real one.",
        ) from None
    findings = [f"interface {clean_text(name, 40)}" for name in interfaces if name != "lo"]
    findings += [f"a route by {clean_text(name, 40)}" for name in routes if name != "lo"]
    findings += [f"{each['address']}:{each['port']} answered" for each in attempts if each["outcome"] == "connected"]
    if findings:
        raise ContainerBoundaryError(
            f"The network probe of {subject} found a network: {'; '.join(findings)}.",
            findings=findings,
            object=subject,
            next_step="Look at the engine's configuration: the container was created without a network.",
        )
    return {"holds": True, "interfaces": interfaces, "routes": routes, "attempts": attempts}
