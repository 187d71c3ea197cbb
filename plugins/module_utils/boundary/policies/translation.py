# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A request as the policy that grants it, and nothing more: one function for the verifier, the filter and the role."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ..errors import QuestionError
from ..reach.ingress import allowed_region
from ..reach.reach import Reach
from ..reach.requests import ALLOW_ALL, DNS_PORT, HOSTS, NO_NETWORK, PUBLIC_INTERNET, DnsTarget, Request, public_blocks
from ..sets.boxes import ADDRESS, NAMESPACE_NAME_LABEL, POD
from ..world.objects import Body, Pod
from ..world.peers import Endpoint


def translate(request: object, *, namespace: str, name: str, labels: c.Mapping[str, str], engine: str = "core") -> Body:
    """The policy object of an egress request.

    Args:
        request: what ``Request.of`` takes.
        namespace, name: of the object.
        labels: of the pods that it selects; at least one, so that it never selects a whole namespace.
        engine: ``core`` gives a NetworkPolicy, ``cilium`` a CiliumNetworkPolicy.

    Returns:
        The object as plain data, with every default written out but for empty lists, which the API does not store.

    Raises:
        QuestionError: the engine cannot express the request (``hosts`` needs Cilium), or there are no labels.
    """
    wanted = Request.of(request)
    if not labels:
        raise QuestionError("A policy of a sandbox selects its pods by at least one label.")
    if engine == "cilium":
        from .cilium import translate_cilium

        return translate_cilium(wanted, name=name, namespace=namespace, selector_labels=labels)
    if engine != "core":
        raise QuestionError(f"An engine is core or cilium, got {engine!r}.")
    return _policy("Egress", "egress", _egress(wanted), namespace=namespace, name=name, labels=labels)


def translate_ingress(
    allow_from: list[dict[str, t.Any]],
    *,
    namespace: str,
    name: str,
    labels: c.Mapping[str, str],
    port: int = 1024,
    engine: str = "core",
) -> Body:
    """The policy object that lets the named peers reach the agent's port, and nobody reach anything else.

    Args:
        allow_from: peers as in a NetworkPolicy rule; an empty list is nobody.
        namespace, name, labels: as for ``translate``.
        port: the agent's TCP port, 1 to 65535.
        engine: whose reading of the peers counts; the object is a NetworkPolicy with either.

    Raises:
        PolicyError: a peer is malformed.
        QuestionError: the peers take in everyone, every namespace, or the sandboxes themselves.
    """
    if not labels:
        raise QuestionError("A policy of a sandbox selects its pods by at least one label.")
    peers = allowed_region(allow_from, namespace)
    rules = [{"from": allow_from, "ports": [{"protocol": "TCP", "port": port}]}] if allow_from else []
    body = _policy("Ingress", "ingress", rules, namespace=namespace, name=name, labels=labels)
    verdict = Reach.for_labels([body], namespace, labels, (), engine=engine).ingress_verdict(port)
    for finding in (*verdict.findings, *verdict.undecided):
        raise _too_open(f"{finding.peers} (for example {finding.example})")
    sandbox = Endpoint(POD, pod=Pod(namespace, "", labels))
    for box in peers:
        if ADDRESS not in box.where and box.contains(POD, sandbox.value, "TCP", port):
            raise _too_open("the sandboxes themselves")
    return body


def _too_open(whom: str) -> QuestionError:
    return QuestionError(
        f"allow_from lets in {whom}.", next_step="Name the pods, or the network, of those who may reach the agent."
    )


def _policy(
    direction: str, field: str, rules: list[Body], *, namespace: str, name: str, labels: c.Mapping[str, str]
) -> Body:
    """A NetworkPolicy about one direction; no list of rules means that none allows, and the API stores no empty one."""
    spec: Body = {"podSelector": {"matchLabels": dict(labels)}, "policyTypes": [direction]}
    if rules:
        spec[field] = rules
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _egress(request: Request) -> list[Body]:
    if request.kind == HOSTS:
        raise QuestionError(
            "NetworkPolicy has no DNS names, so engine core cannot express a hosts request.",
            next_step="Use engine cilium, or public_internet with except_cidrs.",
        )
    if request.kind == NO_NETWORK:
        return []
    if request.kind == ALLOW_ALL:
        return [{}]
    if request.dns.names:
        raise QuestionError(
            "NetworkPolicy has no DNS names, so engine core cannot limit which names are looked up (dns.names).",
            next_step="Use engine cilium, or no_network, which has no DNS at all.",
        )
    rules = [_dns(request.dns)]
    blocks = public_blocks(request.except_cidrs) if request.kind == PUBLIC_INTERNET else []
    if blocks:
        ports = [{"protocol": protocol, "port": number} for protocol, number in request.ports]
        rules.append({"to": [{"ipBlock": block} for block in blocks], **({"ports": ports} if ports else {})})
    return rules


def _dns(dns: DnsTarget) -> Body:
    peers: list[Body] = [
        {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME_LABEL: dns.namespace}},
            "podSelector": {"matchLabels": dict(dns.labels)},
        }
    ]
    peers.extend({"ipBlock": {"cidr": str(ipaddress.ip_network(text, strict=False))}} for text in dns.addresses)
    return {"to": peers, "ports": [{"protocol": protocol, "port": DNS_PORT} for protocol in ("UDP", "TCP")]}


def differences(live: Body, wanted: Body) -> list[str]:
    """What of a live policy is not as its translation, as paths; empty when it is.

    The API server leaves out empty lists at the top of a spec, so these count as equal to missing ones; nothing else is
    forgiven. Metadata is not compared: other hands may label and annotate.
    """
    found = [
        f"{field}: {live.get(field)!r} instead of {wanted.get(field)!r}"
        for field in ("apiVersion", "kind")
        if live.get(field) != wanted.get(field)
    ]
    mine, theirs = live.get("spec") or {}, wanted.get("spec") or {}
    return found + list(_differences(_plain(mine), _plain(theirs), "spec"))


def _plain(spec: Body) -> Body:
    return {key: value for key, value in spec.items() if value is not None and value != []}


def _differences(live: t.Any, wanted: t.Any, path: str) -> c.Iterator[str]:
    if isinstance(live, dict) and isinstance(wanted, dict):
        for key in sorted(live.keys() | wanted.keys()):
            if key not in live:
                yield f"{path}.{key}: missing"
            elif key not in wanted:
                yield f"{path}.{key}: must not be there"
            else:
                yield from _differences(live[key], wanted[key], f"{path}.{key}")
    elif isinstance(live, list) and isinstance(wanted, list):
        if len(live) != len(wanted):
            yield f"{path}: {len(live)} entries instead of {len(wanted)}"
            return
        for index, (mine, theirs) in enumerate(zip(live, wanted, strict=True)):
            yield from _differences(mine, theirs, f"{path}[{index}]")
    elif isinstance(live, bool) is not isinstance(wanted, bool) or live != wanted:
        yield f"{path}: {live!r} instead of {wanted!r}"
