# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and what passes above a port, by themselves."""

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.cilium.l7 import NO_LIMIT, read_layer7
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.cilium.names import NamePattern, selector_patterns
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.cilium.selectors import encoded, in_identity

LABEL = "[-a-z0-9_]"
PATTERNS = st.from_regex(r"(\*\*\.)?[ab*-]{1,4}(\.[ab*]{1,3}){0,2}\.?", fullmatch=True)
NAMES = st.from_regex(r"[ab-]{1,3}(\.[ab]{1,3}){0,3}", fullmatch=True)


def as_cilium_does(pattern: str) -> re.Pattern[str]:
    """The pattern as the one regular expression that Cilium makes of it."""
    if re.fullmatch(r"\*+\.?", pattern):
        return re.compile(rf"({LABEL}+\.)+")
    deep, rest = re.fullmatch(r"(\*{2,}\.)?(.*)", pattern.removesuffix(".") + ".").groups()  # type: ignore[union-attr]
    body = re.sub(r"\*+", lambda _: LABEL + "*", rest.replace(".", r"\."))
    return re.compile((rf"{LABEL}+(\.{LABEL}+)*\." if deep else "") + body)


@given(pattern=PATTERNS, name=NAMES)
def test_patterns_match_as_ciliums_expression_does(pattern: str, name: str) -> None:
    expected = as_cilium_does(pattern).fullmatch(name + ".") is not None
    found = NamePattern(pattern)
    assert found.matches(name) is expected
    assert found.matches(name.upper() + ".") is expected
    if not found.every:
        assert found.as_pattern().matches(name) is expected


@pytest.mark.parametrize("text", ["a b", "a/b", "ä.org", "a" * 256])
def test_texts_that_are_no_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        NamePattern(text)


def test_a_star_is_no_part_of_a_name() -> None:
    with pytest.raises(ValueError, match="is not a name"):
        selector_patterns([{"matchName": "*.org"}])


def test_an_empty_item_selects_no_name() -> None:
    assert not selector_patterns([{}])[0].matches("pypi.org")


@pytest.mark.parametrize(
    "rule", [{}, {"rules": {}}, {"rules": {"http": []}}, {"rules": {"dns": []}}, {"serverNames": []}]
)
def test_empty_lists_are_no_limit(rule: dict[str, t.Any]) -> None:
    assert read_layer7(rule) is NO_LIMIT
    assert NO_LIMIT.permits({"dns": "anything"})


def test_an_empty_http_rule_is_any_request() -> None:
    assert read_layer7({"rules": {"http": [{}]}}).permits({"http": {"method": "DELETE", "path": "/"}})


def test_kinds_that_a_proxy_does_not_speak_are_closed() -> None:
    dns = read_layer7({"rules": {"dns": [{"matchPattern": "*"}]}})
    assert not dns.permits({"http": {"method": "GET"}})
    assert not dns.permits({"sni": "pypi.org"})
    http = read_layer7({"rules": {"http": [{}]}})
    assert not http.permits({"dns": "pypi.org"})
    assert not http.permits({"sni": "pypi.org"})
    inside = read_layer7({"rules": {"http": [{}]}, "terminatingTLS": {"secret": {"name": "s"}}})
    assert inside.permits({"sni": "pypi.org"})


def test_http_inside_a_permitted_tls_stream_is_not_seen() -> None:
    assert read_layer7({"serverNames": ["pypi.org"]}).permits({"http": {"method": "GET"}})


@pytest.mark.parametrize(
    ("rule", "request_", "passes"),
    [
        ({"host": "^external-service.org$"}, {"host": "external-service.org"}, True),
        ({"host": "pypi.org"}, {"headers": {"Host": "pypi.org"}}, True),
        ({"host": "pypi.org"}, {}, False),
        ({"method": "GET|HEAD"}, {"method": "HEAD"}, True),
        ({"method": "GET|HEAD"}, {"method": "GETHEAD"}, False),
        ({"path": "/a.*"}, {"path": "/a\nb"}, True),
        ({"headerMatches": [{"name": "X", "value": "1"}]}, {"headers": {"x": "1"}}, True),
        ({"headerMatches": [{"name": "X", "value": "1"}]}, {"headers": {"x": "2"}}, False),
        ({"headerMatches": [{"name": "X", "value": "1", "mismatch": "REPLACE"}]}, {}, True),
        ({"headerMatches": [{"name": "X"}]}, {}, False),
        ({"path": "[[:alpha:]]+"}, {"path": "1"}, True),
    ],
)
def test_http_rules(rule: dict[str, t.Any], request_: dict[str, t.Any], *, passes: bool) -> None:
    assert read_layer7({"rules": {"http": [rule]}}).permits({"http": request_}) is passes


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("app", True),
        ("app.kubernetes.io/name", True),
        ("agents.x-k8s.io/sandbox-name-hash", True),
        ("sandbox.namzu.ai/template", True),
        ("batch.kubernetes.io/job-name", True),
        ("io.kubernetes.pod.namespace", True),
        ("io.kubernetes.container", False),
        ("kubernetes.io/hostname", False),
        ("k8s.io/x", False),
        ("k8s-app", True),
        ("node.beta.kubernetes.io/x", False),
        ("pod-template-hash", False),
        ("controller-revision-hash", False),
        ("statefulset.kubernetes.io/pod-name", False),
        ("apps.kubernetes.io/pod-index", False),
        ("topology.kubernetes.io/zone", False),
    ],
)
def test_the_labels_that_are_part_of_an_identity_by_default(key: str, *, part: bool) -> None:
    assert in_identity(key) is part


@pytest.mark.parametrize(
    ("key", "expected"),
    [("a", "any:a"), ("k8s:a", "k8s:a"), ("$host", "reserved:host"), (":a", "any:a"), ("a.b/c", "any:a.b/c")],
)
def test_keys_with_their_source(key: str, expected: str) -> None:
    assert encoded(key) == expected
