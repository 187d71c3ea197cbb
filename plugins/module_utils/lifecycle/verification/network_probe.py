# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Trying a boundary from inside: what must be closed must fail to connect, and what must be open must connect.

Policies are words; whether the network enforces them shows in connections alone. Only a place of which it is known that
something listens there proves anything by failing: the cluster's DNS, the API server as that names it, another
sandbox's agent. Of the others a success says that the boundary is open, and a failure says nothing.

Who reaches the agent's port cannot be tried from inside.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import typing as t

from ...boundary.reach.requests import ALLOW_ALL, NO_NETWORK, NOT_PUBLIC, PUBLIC_INTERNET, Request, public
from ...boundary.sets.addresses import AddressSet, parse_address
from ...cluster.client import Client
from ...cluster.resources import POD, Body, condition
from ...deadline import Backoff, Deadline
from ...errors import SandboxError
from ...guest.agent import Agent
from ...guest.errors import GuestRefusedError, GuestTimeoutError
from ...text import clean_text
from ..errors import BoundaryError
from .network_program import PROGRAM

#: Seconds after which a connection that nobody answers has failed.
CONNECT_SECONDS = 1.0

#: Seconds for one round of attempts, with the start of its program: a clock of its own, so that a round is never cut.
ROUND_SECONDS = 8.0

#: Other pods whose agents are tried.
MOST_PODS = 2

#: Well-known public resolvers; a metadata service, which every cloud has at this address.
PUBLIC_ADDRESS = ("1.1.1.1", 443)
METADATA_ADDRESS = ("169.254.169.254", 80)
KUBELET_PORT = 10250

Expected = t.Literal["open", "closed", "either"]
Said = t.Literal["open", "closed", "cannot tell"]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a connection is tried.

    Attributes:
        name: what it is, for people and programs: ``dns``, ``api``, ``pod``, ``node``, ``public``, ``metadata``.
        host: its address; None for ``dns`` and ``api``, which are looked up inside.
        port, protocol: ``TCP``; ``UDP`` asks a DNS server.
        listens: whether something is known to listen there.
    """

    name: str
    host: str | None
    port: int
    protocol: str = "TCP"
    listens: bool = False


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One connection that was tried.

    Attributes:
        place: where; its host is the address.
        expected: what the request makes of it.
        outcome: ``connected``, or how it failed, in the words of the sandbox.
    """

    place: Place
    expected: Expected
    outcome: str

    @property
    def connected(self) -> bool:
        """Whether somebody answered."""
        return self.outcome == "connected"

    @property
    def says(self) -> Said:
        """What is known by it."""
        if self.connected:
            return "open"
        return "closed" if self.place.listens and self.place.host else "cannot tell"

    @property
    def contradicts(self) -> bool:
        """Whether it is not as it must be."""
        if self.expected == "open":
            return not self.connected
        return self.expected == "closed" and self.connected

    def as_dict(self) -> dict[str, t.Any]:
        """The attempt as plain data."""
        place = self.place
        return {
            "place": place.name,
            "address": place.host,
            "port": place.port,
            "protocol": place.protocol,
            "expected": self.expected,
            "outcome": self.outcome,
            "says": self.says,
        }

    def __str__(self) -> str:
        place = self.place
        where = f"[{place.host}]" if ":" in str(place.host) else place.host
        return f"{_WORDS.get(place.name, place.name)} at {where}:{place.port}/{place.protocol}"


_WORDS = {
    "dns": "the DNS server",
    "api": "the API server",
    "pod": "another sandbox's agent",
    "node": "the node's kubelet",
    "public": "a public address",
    "metadata": "the metadata service",
}


@dataclasses.dataclass(frozen=True)
class NetworkProbe:
    """What was tried from inside.

    Attributes:
        attempts: the last round's.
        rounds: how many rounds it took.
    """

    attempts: tuple[Attempt, ...]
    rounds: int

    @property
    def contradicted(self) -> tuple[Attempt, ...]:
        """The attempts that were not as they must be."""
        return tuple(attempt for attempt in self.attempts if attempt.contradicts)

    @property
    def proves(self) -> bool:
        """Whether something that must be closed is known to be closed, where there is any such thing."""
        closed = [attempt for attempt in self.attempts if attempt.expected == "closed"]
        return not closed or any(attempt.says == "closed" for attempt in closed)

    @property
    def holds(self) -> bool:
        """Whether everything is as it must be, and some of it is proven."""
        return not self.contradicted and self.proves

    def as_dict(self) -> dict[str, t.Any]:
        """The probe as plain data."""
        attempts = [attempt.as_dict() for attempt in self.attempts]
        return {"holds": self.holds, "rounds": self.rounds, "attempts": attempts}


def probe_network(
    agent: Agent, request: Request, deadline: Deadline, subject: str, places: t.Sequence[Place] = ()
) -> NetworkProbe:
    """Try an egress request from inside a sandbox, again and again until it holds.

    Policies are enforced some time after a pod has started, so a contradiction counts when the deadline has passed.

    Args:
        agent: the sandbox's agent.
        request: what it may reach.
        deadline: no round begins after it; the last one may end ``ROUND_SECONDS`` later.
        subject: whose boundary it is, in words for the errors.
        places: what is tried beside DNS, the API server, a public address and the metadata service (``places_near``).

    Returns:
        The round in which everything was as it must be.

    Raises:
        BoundaryError: something that must be closed connects, DNS that must be open does not, or nothing is proven.
        GuestError: the sandbox's agent does not answer, or cannot run the program.
    """
    asked = (*_STANDARD, *places)
    probe: NetworkProbe | None = None
    backoff = Backoff()
    while True:
        rounds = 1 if probe is None else probe.rounds + 1
        try:
            tried = _tried(agent, asked, deadline, subject)
        except GuestTimeoutError:
            if probe is None or not deadline.expired:
                raise
            raise _refused(probe, request, deadline, subject) from None
        probe = NetworkProbe(tuple(_attempt(place, request) for place in tried), rounds)
        if probe.holds:
            return probe
        if not backoff.wait(deadline):
            raise _refused(probe, request, deadline, subject)


_STANDARD = (
    Place("dns", None, 53, "UDP", listens=True),
    Place("dns", None, 53, "TCP", listens=True),
    Place("api", None, 443, listens=True),
    Place("public", *PUBLIC_ADDRESS),
    Place("metadata", *METADATA_ADDRESS),
)


def places_near(client: Client, pod: Body, agent_port: int, deadline: Deadline) -> list[Place]:
    """The node of a pod, and agents of other pods in its namespace that are ready; one list, which may fail."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    found = [Place("node", str(status["hostIP"]), KUBELET_PORT)] if status.get("hostIP") else []
    try:
        others = client.list(POD, str(metadata.get("namespace")), deadline=deadline)["items"]
    except SandboxError:
        return found
    ready = [
        str(other["status"]["podIP"])
        for other in others
        if (other.get("metadata") or {}).get("uid") != metadata.get("uid")
        and (other.get("status") or {}).get("podIP")
        and not (other.get("spec") or {}).get("hostNetwork")
        and condition(other, "Ready").get("status") == "True"
    ]
    return [*found, *(Place("pod", address, agent_port, listens=True) for address in ready[:MOST_PODS])]


def _tried(agent: Agent, places: t.Sequence[Place], deadline: Deadline, subject: str) -> list[tuple[Place, str]]:
    """One round: each place with its address, and the outcome."""
    body = {
        "seconds": CONNECT_SECONDS,
        "places": [
            {"name": place.name, "host": place.host, "port": place.port, "protocol": place.protocol} for place in places
        ],
    }
    limit = Deadline(ROUND_SECONDS, deadline.clock, cancellation=deadline.cancellation)
    argv = ["-I", "-S", "-c", PROGRAM, json.dumps(body)]
    try:
        done = agent.execute(["python3", *argv], deadline=limit)
    except GuestRefusedError as error:
        if error.kind not in ("not-found", "not-executable"):
            raise
        done = agent.execute([agent.healthz(limit).executable, *argv], deadline=limit)
    try:
        answers = json.loads(done.stdout)
        return [
            (
                dataclasses.replace(place, host=_address(answer["host"]), port=int(answer["port"])),
                str(answer["outcome"]),
            )
            for place, answer in zip(places, answers, strict=True)
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        said = clean_text(done.stderr_text, 200) or "nothing"
        raise BoundaryError(
            f"The network probe of {subject} could not be read: its program ended with {done.rc} and said {said}.",
            direction="egress",
            object=subject,
            next_step="Look whether python3 in the sandbox is the real one.",
        ) from None


def _address(text: object) -> str | None:
    """An address that the sandbox named, or None for none; raises ValueError for anything else."""
    return None if text is None else str(ipaddress.ip_address(str(text).partition("%")[0]))


def _attempt(tried: tuple[Place, str], request: Request) -> Attempt:
    place, outcome = tried
    outcome = clean_text(outcome, 60)
    if place.host is None:
        return Attempt(place, "either", outcome)
    if place.name == "dns" and not _opens_dns(request, place) and not _is_cluster_dns(place):
        # A name server outside, which may be out of reach for other reasons.
        place = dataclasses.replace(place, listens=False)
    return Attempt(place, _expected(place, request), outcome)


def _expected(place: Place, request: Request) -> Expected:
    """What a request makes of a place; ``either`` where it cannot be known."""
    if request.kind == ALLOW_ALL:
        return "open" if _is_cluster_dns(place) and place.protocol == "UDP" else "either"
    if _opens_dns(request, place):
        return "open" if place.protocol == "UDP" else "either"
    if request.kind == PUBLIC_INTERNET:
        if place.name == "api":
            return "either"  # behind a service's address, which may stand for a public one
        asked = not request.ports or (place.protocol, place.port) in request.ports
        return "either" if asked and public(request.except_cidrs).contains(parse_address(place.host)) else "closed"
    return "closed"


def _opens_dns(request: Request, place: Place) -> bool:
    if request.kind == NO_NETWORK or place.port != 53:
        return False
    named = AddressSet.of(*request.dns.addresses) if request.dns.addresses else None
    return _is_cluster_dns(place) or (named is not None and named.contains(parse_address(place.host)))


def _is_cluster_dns(place: Place) -> bool:
    """Whether the name server is a service of the cluster: private, and not link-local, which is a node's own."""
    address = ipaddress.ip_address(str(place.host))
    return (
        place.name == "dns"
        and not address.is_link_local
        and AddressSet.of(*NOT_PUBLIC).contains(parse_address(place.host))
    )


def _refused(probe: NetworkProbe, request: Request, deadline: Deadline, subject: str) -> BoundaryError:
    must_fail = [attempt for attempt in probe.attempts if attempt.expected == "closed"]
    open_ = [attempt for attempt in must_fail if attempt.connected]
    shut = [attempt for attempt in probe.contradicted if attempt.expected == "open"]
    known = [attempt for attempt in must_fail if attempt.place.listens]
    step = "Look whether the cluster's network plugin enforces NetworkPolicy, and how soon after a pod's start."
    if known and all(attempt.connected for attempt in known):
        what = f"the network enforces nothing: {_listed(open_)} connected, and {request} closes each of them"
    elif open_:
        what = f"{_listed(open_)} connected, and {request} closes that"
    elif shut:
        what = f"{_listed(shut)} did not answer ({shut[0].outcome}), and {request} opens that"
        step = "Look whether the cluster has a DNS server there, and whether egress.dns says where it is."
    else:
        what = "nothing of what must be closed is known to listen, so that its silence proves nothing"
        step = "Start another sandbox beside it, so that there is something to try."
    return BoundaryError(
        f"The network probe of {subject} failed after {probe.rounds} rounds in {deadline.elapsed():.0f} s: {what}.",
        direction="egress",
        object=subject,
        next_step=step,
        probe=probe.as_dict(),
    )


def _listed(attempts: t.Sequence[Attempt]) -> str:
    return ", ".join(dict.fromkeys(map(str, attempts)))
