# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The program that tries connections from inside a sandbox. It runs there, on whatever python3 (3.8 or newer) it has.

Its argument is a JSON object: ``seconds`` for each connection, and ``places``, each with ``name``, ``host``, ``port``
and ``protocol``. A place without a host is looked up inside: ``dns`` is the first name server of ``/etc/resolv.conf``,
``api`` is what that server answers for ``kubernetes.default.svc``. It prints a JSON list of the places with ``host``
and ``outcome``: ``connected``, or how it failed.
"""

from __future__ import annotations

PROGRAM = r"""
import errno, json, socket, struct, sys, threading

asked = json.loads(sys.argv[1])


def resolver():
    servers, domain = [], "cluster.local"
    try:
        lines = open("/etc/resolv.conf").read().splitlines()
    except OSError:
        lines = []
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            servers.append(words[1])
        if words and words[0] == "search":
            domain = next((word[4:] for word in words[1:] if word.startswith("svc.")), domain)
    return servers, domain.rstrip(".")


def failure(error):
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "no answer"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    return errno.errorcode.get(error.errno, str(error))


def tcp(host, port):
    socket.create_connection((host, port), asked["seconds"]).close()


def dns(host, port):
    labels = ("kubernetes.default.svc." + domain).split(".")
    name = b"".join(struct.pack("B", len(label)) + label.encode() for label in labels) + b"\0"
    question = struct.pack(">6H", 0x4E5A, 0x0100, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as wire:
        wire.settimeout(asked["seconds"])
        wire.connect((host, port))
        wire.send(question)
        answered.append(first_address(wire.recv(512), len(question)))


def first_address(reply, at):
    count = struct.unpack(">H", reply[6:8])[0]
    for _ in range(count):
        while reply[at] and reply[at] < 0xC0:
            at += 1 + reply[at]
        at += 2 if reply[at] else 1
        kind, _, _, length = struct.unpack(">2HIH", reply[at : at + 10])
        at += 10
        if kind == 1 and length == 4:
            return socket.inet_ntoa(reply[at : at + 4])
        at += length
    return None


def attempt(place):
    if not place["host"]:
        place["outcome"] = "unknown"
        return
    try:
        (dns if place["protocol"] == "UDP" else tcp)(place["host"], place["port"])
        place["outcome"] = "connected"
    except OSError as error:
        place["outcome"] = failure(error)
    except (IndexError, struct.error):
        place["outcome"] = "connected"


def attempt_all(places):
    threads = [threading.Thread(target=attempt, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


answered = []
servers, domain = resolver()
for place in asked["places"]:
    if place["name"] == "dns" and not place["host"]:
        place["host"] = servers[0] if servers else None
later = [place for place in asked["places"] if place["name"] == "api" and not place["host"]]
attempt_all([place for place in asked["places"] if place not in later])
for place in later:
    place["host"] = next((address for address in answered if address), None)
attempt_all(later)
print(json.dumps(asked["places"]))
"""
