# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Subjects, peers and ports of the administrators' policies, in their present and their older shapes."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ..sets import boxes
from ..sets.addresses import union_of as join
from ..sets.boxes import DNS_NAME, NAMESPACE_NAME_LABEL, NODE, OUTSIDE, Box, node_label
from ..sets.names import DEEP, NameSet, Pattern, is_name
from ..sets.ports import ALL_PORTS, NO_PORTS, TRANSPORTS, PortSet, union_of
from ..sets.selectors import EVERYTHING, Selector, ValueSet
from ..world.objects import Pod
from ..world.strict_reader import Reader, read_selector
from .model import ALLOW, EGRESS, PortName, Uncertainty
from .rule_source import Relative

Labels = c.Mapping[str, str]

_UNKNOWN_LABELS = "the labels of the pod's namespace are not known"


def read_subject(spec: Reader) -> c.Callable[[Pod, Labels | None], bool | str]:
    """Which pods a policy is about, as a question: True, False, or why it cannot be known.

    Raises:
        PolicyError: the subject is missing or malformed.
    """
    subject = spec.mapping("subject")
    if subject is None:
        raise spec.error("expected a mapping", "subject")
    if subject.has("namespaces") and subject.has("pods"):
        raise subject.error("exactly one of namespaces and pods")
    pods = subject.mapping("pods")
    if pods is not None:
        namespaces = pods.selector("namespaceSelector") or EVERYTHING
        labels = pods.selector("podSelector") or EVERYTHING
        for path in pods.unknown({"namespaceSelector", "podSelector"}):
            return _cannot_know(path)
    else:
        found = subject.selector("namespaces")
        if found is None:
            return _cannot_know(subject.path)
        namespaces, labels = found, EVERYTHING

    def selects(pod: Pod, namespace_labels: Labels | None) -> bool | str:
        if not labels.matches(pod.labels):
            return False
        return _namespace_matches(namespaces, pod.namespace, namespace_labels)

    return selects


def _cannot_know(path: str) -> c.Callable[[Pod, Labels | None], bool | str]:
    return lambda _pod, _labels: f"unknown kind of subject at {path}"


def _namespace_matches(namespaces: Selector, name: str, labels: Labels | None) -> bool | str:
    if labels is not None:
        return namespaces.matches(labels)
    needs = namespaces.needs()
    if not needs.pop(NAMESPACE_NAME_LABEL, ValueSet(frozenset(), others=True)).contains(name):
        return False
    return _UNKNOWN_LABELS if needs else True


Peers = tuple[list[Box], list[Uncertainty], list[Relative]]


def read_peers(entry: Reader, key: str, direction: str, action: str) -> Peers:
    """The peers of a rule.

    Raises:
        PolicyError: the list is missing or empty, which the API refuses, or a peer is malformed.
    """
    peers = entry.items(key)
    if not peers:
        raise entry.error("expected at least one peer", key)
    found: list[Box] = []
    uncertain: list[Uncertainty] = []
    relative: list[Relative] = []
    for peer in peers:
        forms = [form for form in _FORMS if peer.has(form)]
        odd = peer.unknown(_FORMS.keys())
        if len(forms) > 1:
            raise peer.error(f"exactly one of {', '.join(forms)}")
        if odd or not forms:
            uncertain.append(
                Uncertainty(f"unknown peer field {(odd or [peer.path])[0]}", (boxes.EVERYTHING,), closed=True)
            )
            continue
        if forms[0] in {"networks", "domainNames", "nodes"} and direction != EGRESS:
            raise peer.error("only an egress rule has such peers", forms[0])
        made, wide, depends = _FORMS[forms[0]](peer, action)
        found.extend(made)
        uncertain.extend(wide)
        relative.extend(depends)
    return found, uncertain, relative


def _namespaces(peer: Reader, _action: str) -> Peers:
    held = peer.required("namespaces")
    return _in_namespaces(held, EVERYTHING)


def _pods(peer: Reader, _action: str) -> Peers:
    held = peer.required("pods")
    labels = held.selector("podSelector")
    for path in held.unknown({"namespaceSelector", "podSelector", "namespaces"}):
        return [], [Uncertainty(f"unknown peer field {path}", (boxes.EVERYTHING,), closed=True)], []
    older = held.mapping("namespaces")
    if older is not None:
        return _in_namespaces(older, labels or EVERYTHING)
    return boxes.pods(held.selector("namespaceSelector") or EVERYTHING, labels or EVERYTHING), [], []


def _in_namespaces(held: Reader, labels: Selector) -> Peers:
    """A selector of namespaces, or the older wrapper around one with ``sameLabels`` and ``notSameLabels``."""
    if held.body.keys() <= {"matchLabels", "matchExpressions"}:
        return boxes.pods(read_selector(held), labels), [], []
    forms = [form for form in ("namespaceSelector", "sameLabels", "notSameLabels") if held.has(form)]
    odd = held.unknown({"namespaceSelector", "sameLabels", "notSameLabels"})
    if odd or len(forms) != 1:
        return [], [Uncertainty(f"unknown peer field {(odd or [held.path])[0]}", (boxes.EVERYTHING,), closed=True)], []
    if forms[0] == "namespaceSelector":
        return boxes.pods(held.selector("namespaceSelector") or EVERYTHING, labels), [], []
    keys = held.texts(forms[0]) or []
    make = _same if forms[0] == "sameLabels" else _not_same

    def relative(namespace_labels: Labels | None) -> tuple[list[Box], list[Uncertainty]]:
        if namespace_labels is None:
            return [], [Uncertainty(_UNKNOWN_LABELS, tuple(boxes.pods(EVERYTHING, labels)))]
        found = [box for selector in make(keys, namespace_labels) for box in boxes.pods(selector, labels)]
        missing = [key for key in keys if key not in namespace_labels] if forms[0] == "notSameLabels" else []
        if missing:
            # The API's text does not settle whether an absent label is another value, and the field was removed.
            return [], [Uncertainty(f"the pod's namespace has no label {missing[0]} for notSameLabels", tuple(found))]
        return found, []

    return [], [], [relative]


_PRESENT = ValueSet(frozenset({None}), others=True)


def _same(keys: list[str], mine: Labels) -> list[Selector]:
    """Namespaces that carry all of the keys with the values that the subject's namespace has; none without keys."""
    if not keys or any(key not in mine for key in keys):
        return []
    return [Selector(frozenset((key, mine[key]) for key in keys))]


def _not_same(keys: list[str], mine: Labels) -> list[Selector]:
    """Namespaces that carry all of the keys, and at least one with another value than the subject's namespace."""
    return [
        Selector(other=tuple((key, _but(mine.get(key)) if key == odd else _PRESENT) for key in keys)) for odd in keys
    ]


def _but(value: str | None) -> ValueSet:
    return ValueSet(frozenset({None, value}), others=True)


def _nodes(peer: Reader, _action: str) -> Peers:
    held = peer.selector("nodes") or EVERYTHING
    where = {node_label(key): values for key, values in held.needs().items()}
    box = Box(frozenset({NODE}), where)
    return ([] if box.empty else [box]), [], []


def _networks(peer: Reader, _action: str) -> Peers:
    texts = peer.texts("networks") or []
    if not texts:
        raise peer.error("expected at least one CIDR block", "networks")
    held = join([peer.block(text, f"networks[{index}]") for index, text in enumerate(texts)])
    return boxes.addresses(held), [], []


def _domain_names(peer: Reader, action: str) -> Peers:
    texts = peer.texts("domainNames") or []
    if not texts:
        raise peer.error("expected at least one name", "domainNames")
    for index, text in enumerate(texts):
        if not is_name(text.removeprefix("*.")):
            raise peer.error(f"{text!r} is not a DNS name", f"domainNames[{index}]")
    held = NameSet.of(*(Pattern.glob(text, leading=DEEP) for text in texts))
    box = Box(frozenset({OUTSIDE}), {DNS_NAME: held})
    if action == ALLOW:
        return [box], [], []
    return [], [Uncertainty("domainNames are for Accept alone", (box,))], []


_FORMS: dict[str, c.Callable[[Reader, str], Peers]] = {
    "namespaces": _namespaces,
    "pods": _pods,
    "nodes": _nodes,
    "networks": _networks,
    "domainNames": _domain_names,
}


Ports = tuple[PortSet, tuple[PortName, ...], t.Optional[str]]


#: Reads one form of a port given by number, and says what about it is not known.
_Form = c.Callable[[Reader, str], tuple[PortSet, t.Optional[str]]]


def protocols_of(entry: Reader, key: str) -> Ports:
    """``protocols`` of a ClusterNetworkPolicy rule: missing or empty is every port of every protocol."""
    return _listed(entry, key, "protocol", dict.fromkeys(("tcp", "udp", "sctp"), _transport), "destinationNamedPort")


def ports_of(entry: Reader, key: str) -> Ports:
    """``ports`` of an older rule: missing or empty is every port; a number without a protocol is TCP's."""
    return _listed(entry, key, "port", {"portNumber": _number, "portRange": _range}, "namedPort")


def _listed(entry: Reader, key: str, what: str, by_number: c.Mapping[str, _Form], by_name: str) -> Ports:
    """A list of ports, each in one of the forms; an item in none of them may be any port."""
    listed = entry.items(key)
    if not listed:
        return ALL_PORTS, (), None
    held: list[PortSet] = []
    names: list[PortName] = []
    odd: str | None = None
    for item in listed:
        forms = [form for form in (*by_number, by_name) if item.has(form)]
        unknown = item.unknown({*by_number, by_name})
        if len(forms) > 1:
            raise item.error(f"exactly one of {', '.join(forms)}")
        if unknown or not forms:
            odd = f"unknown {what} at {(unknown or [item.path])[0]}"
        elif forms[0] == by_name:
            names.append((item.text(by_name) or "", None))
        else:
            part, strange = by_number[forms[0]](item, forms[0])
            held.append(part)
            odd = strange or odd
    return union_of(held), tuple(names), odd


def _transport(item: Reader, form: str) -> tuple[PortSet, str | None]:
    body = item.required(form)
    protocol = form.upper()
    port = body.mapping("destinationPort")
    unknown = body.unknown({"destinationPort"})
    if unknown:
        return NO_PORTS, f"unknown field {unknown[0]}"
    if port is None:
        return PortSet.of(protocol), None
    unknown = port.unknown({"number", "range"})
    span = port.mapping("range")
    number = port.number("number", 1, 65535)
    if unknown or (span is None) == (number is None):
        if not unknown and span is not None:
            raise port.error("exactly one of number and range")
        return NO_PORTS, f"unknown field {(unknown or [port.path])[0]}"
    return (_span(span, protocol) if span is not None else PortSet.of(protocol, number)), None


def _number(item: Reader, form: str) -> tuple[PortSet, str | None]:
    body = item.required(form)
    number = body.number("port", 1, 65535)
    if number is None:
        raise body.error("expected a number", "port")
    return PortSet.of(body.protocol("protocol") or TRANSPORTS[0], number), None


def _range(item: Reader, form: str) -> tuple[PortSet, str | None]:
    body = item.required(form)
    return _span(body, body.protocol("protocol") or TRANSPORTS[0]), None


def _span(span: Reader, protocol: str) -> PortSet:
    low, high = span.number("start", 1, 65535), span.number("end", 1, 65535)
    if low is None or high is None or high < low:
        raise span.error("a range needs a start and an end at or above it")
    return PortSet.of(protocol, low, high)
