# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network probe expects of a place, what an answer proves, and the program that tries it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import struct
import subprocess
import sys
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import Request
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.network_probe import (
    Attempt,
    NetworkProbe,
    Place,
    _attempt,
    places_near,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.network_program import PROGRAM

DNS = Place("dns", "10.96.0.10", 53, "UDP", listens=True)
DNS_TCP = dataclasses.replace(DNS, protocol="TCP")
NODE_CACHE = dataclasses.replace(DNS, host="169.254.20.10")
PUBLIC_DNS = dataclasses.replace(DNS, host="8.8.8.8")
API = Place("api", "10.96.0.1", 443, listens=True)
POD = Place("pod", "10.244.0.9", 1024, listens=True)
NODE = Place("node", "192.168.1.5", 10250)
PUBLIC = Place("public", "1.1.1.1", 443)
METADATA = Place("metadata", "169.254.169.254", 80)

WITH_CACHE = {"kind": "dns_only", "dns": {"addresses": ["169.254.20.10/32"]}}
EXPECTED: list[tuple[t.Any, dict[Place, str]]] = [
    ("no_network", dict.fromkeys((DNS, DNS_TCP, NODE_CACHE, API, POD, NODE, PUBLIC, METADATA), "closed")),
    (
        "dns_only",
        {DNS: "open", DNS_TCP: "either", NODE_CACHE: "closed", PUBLIC_DNS: "closed", API: "closed", POD: "closed"},
    ),
    (WITH_CACHE, {DNS: "open", NODE_CACHE: "open", API: "closed", METADATA: "closed"}),
    (
        "public_internet",
        {DNS: "open", API: "either", POD: "closed", NODE: "closed", PUBLIC: "either", METADATA: "closed"},
    ),
    ({"kind": "public_internet", "except_cidrs": ["1.0.0.0/8"]}, {PUBLIC: "closed"}),
    ({"kind": "hosts", "hosts": ["example.com"]}, {DNS: "open", API: "closed", PUBLIC: "closed"}),
    ("allow_all", {DNS: "open", API: "either", POD: "either", PUBLIC: "either"}),
]
ROWS = [(request, place, expected) for request, places in EXPECTED for place, expected in places.items()]


@pytest.mark.parametrize(
    ("request_", "place", "expected"),
    ROWS,
    ids=lambda value: f"{value.name}-{value.host}-{value.protocol}" if isinstance(value, Place) else None,
)
def test_request_says_what_each_place_must_be(request_: t.Any, place: Place, expected: str) -> None:
    assert _attempt((place, "connected"), Request.of(request_)).expected == expected


def attempts(*given: tuple[Place, str, str]) -> NetworkProbe:
    return NetworkProbe(tuple(Attempt(place, t.cast("t.Any", wanted), outcome) for place, wanted, outcome in given), 1)


def test_silence_proves_something_only_where_somebody_listens() -> None:
    assert Attempt(API, "closed", "no answer").says == "closed"
    assert Attempt(PUBLIC, "closed", "no answer").says == "cannot tell"
    assert Attempt(PUBLIC, "closed", "connected").says == "open"


def test_probe_holds_when_nothing_contradicts_and_something_is_proven() -> None:
    assert attempts((API, "closed", "refused"), (PUBLIC, "closed", "no answer"), (DNS, "open", "connected")).holds
    assert not attempts((PUBLIC, "closed", "no answer"), (METADATA, "closed", "EHOSTUNREACH")).holds
    assert not attempts((API, "closed", "refused"), (PUBLIC, "closed", "connected")).holds
    assert not attempts((API, "closed", "refused"), (DNS, "open", "no answer")).holds
    assert attempts((PUBLIC, "either", "no answer")).holds


def test_name_server_outside_proves_nothing_by_its_silence() -> None:
    attempt = _attempt((PUBLIC_DNS, "no answer"), Request.of("dns_only"))
    assert (attempt.expected, attempt.says) == ("closed", "cannot tell")


def pod(name: str, ip: str | None, *, ready: bool = True, host_network: bool = False) -> dict[str, t.Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name, "namespace": "agents", "uid": f"uid-of-{name}"},
        "spec": {"hostNetwork": host_network},
        "status": {"podIP": ip, "hostIP": "192.168.1.5", "conditions": conditions},
    }


def test_agents_of_other_ready_pods_are_tried_and_the_pods_own_node() -> None:
    own = pod("own", "10.244.0.1")
    others = [pod("late", None), pod("not-ready", "10.244.0.3", ready=False), pod("node", "1.2.3.4", host_network=True)]
    others += [pod(f"ready-{number}", f"10.244.1.{number}") for number in range(5)]
    client = t.cast("t.Any", type("Listing", (), {"list": lambda *_given, **_named: {"items": [own, *others]}})())
    found = places_near(client, own, 1024, t.cast("t.Any", None))
    assert [(place.name, place.host, place.port) for place in found] == [
        ("node", "192.168.1.5", 10250),
        ("pod", "10.244.1.0", 1024),
        ("pod", "10.244.1.1", 1024),
    ]


def run_program(*places: dict[str, t.Any], seconds: float = 0.3) -> list[dict[str, t.Any]]:
    asked = json.dumps({"seconds": seconds, "places": list(places)})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, asked], capture_output=True, text=True, check=True
    )
    answers: list[dict[str, t.Any]] = json.loads(done.stdout)
    return answers


def place(name: str, host: str | None, port: int, protocol: str = "TCP") -> dict[str, t.Any]:
    return {"name": name, "host": host, "port": port, "protocol": protocol}


@contextlib.contextmanager
def name_server(*answers: bytes) -> t.Iterator[int]:
    """Answers each question with the next of these, and names 127.0.0.1 in them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("127.0.0.1", 0))

        def serve() -> None:
            for answer in answers:
                question, peer = wire.recvfrom(512)
                header = question[:2] + struct.pack(">5H", 0x8180, 1, 1 if answer else 0, 0, 0)
                wire.sendto(header + question[12:] + answer, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(wire.getsockname()[1])
        thread.join()


ADDRESS = b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, 30, 4) + socket.inet_aton("127.0.0.1")


def test_program_tells_who_answers_and_who_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answers = run_program(
            place("pod", "127.0.0.1", listening.getsockname()[1]), place("pod", "127.0.0.1", free.getsockname()[1])
        )
    assert [answer["outcome"] for answer in answers] == ["connected", "refused"]


@pytest.mark.parametrize("answer", [ADDRESS, b"", b"\xc0"], ids=["address", "none", "garbage"])
def test_program_takes_any_answer_of_a_name_server_as_one(answer: bytes) -> None:
    with name_server(answer) as port:
        answers = run_program(place("dns", "127.0.0.1", port, "UDP"), place("api", None, 443))
    assert answers[0]["outcome"] == "connected"
    # The API server is where the name server says, if it says so.
    assert answers[1]["host"] == ("127.0.0.1" if answer == ADDRESS else None)
    assert answers[1]["outcome"] in ({"refused", "connected"} if answer == ADDRESS else {"unknown"})


def test_program_gives_up_on_who_never_answers() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        answers = run_program(place("dns", "127.0.0.1", silent.getsockname()[1], "UDP"))
    assert answers[0]["outcome"] == "no answer"
