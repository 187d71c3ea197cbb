# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a port rule still asks of the traffic above the port: HTTP, DNS, TLS server names.

These are limits of Cilium's proxy on a port that is open at L3 and L4, so they are read as "at least this much passes".
Whatever this module cannot decide passes: secrets, kinds of rules that it does not know (``kafka``, ``l7proto``,
removed in v1.20), custom listeners, and regular expressions that Python cannot read the way Envoy does.

Sources: Cilium v1.20.2 ``pkg/policy/api/l4.go`` and ``http.go`` (fields),
``pkg/envoy/policy/envoy_l7_rules_translator.go`` (HTTP rules become whole-string regular expressions, headers are
exact or present), ``pkg/envoy/utils.go`` (server names), ``Documentation/security/policy/layer7.rst`` (a request passes
if one rule matches; an empty list is no limit).
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

from ..sets.names import NameSet
from .names import NamePattern, name_set, selector_patterns

_REPEATED_GROUP = re.compile(r"[*+}]\??[^()]*\)[*+{]")
_LONGEST_EXPRESSION = 1024
_PORT_RULE_FIELDS = frozenset({"ports", "rules", "serverNames", "terminatingTLS", "originatingTLS", "listener"})


@functools.lru_cache(maxsize=4096)
def _expression(text: str) -> re.Pattern[str] | None:
    """Compile an expression of a rule, or return None for one that Python may read otherwise or slowly."""
    if len(text) > _LONGEST_EXPRESSION or "[[:" in text or "\\p" in text or _REPEATED_GROUP.search(text):
        return None
    try:
        return re.compile(text, re.DOTALL)
    except (re.error, RecursionError, OverflowError):
        return None


def _text_matches(expression: str | None, value: object) -> bool:
    """Match as Envoy does: the whole value, an empty expression is no limit."""
    if not expression:
        return True
    pattern = _expression(expression)
    return pattern is None or (isinstance(value, str) and pattern.fullmatch(value) is not None)


def _header_passes(headers: t.Mapping[str, str], name: str, value: str | None) -> bool:
    found = headers.get(name.lower())
    return found is not None and (value is None or found == value)


def _http_matches(rule: t.Mapping[str, t.Any], request: t.Mapping[str, t.Any]) -> bool:
    headers = {name.lower(): value for name, value in request.get("headers", {}).items()}
    host = request.get("host", headers.get("host", ""))
    if not (
        _text_matches(rule.get("method"), request.get("method", "GET"))
        and _text_matches(rule.get("path"), request.get("path", "/"))
        and _text_matches(rule.get("host"), host)
    ):
        return False
    for header in rule.get("headers") or ():
        name, _unused, value = header.partition(" ")
        if not _header_passes(headers, name.rstrip(":") if value else name, value or None):
            return False
    for match in rule.get("headerMatches") or ():
        # A rule with a mismatch action matches all the same, and what a secret holds is not known here.
        undecided = match.get("mismatch") or match.get("secret")
        if not undecided and not _header_passes(headers, match["name"], match.get("value") or None):
            return False
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class Layer7:
    """The limits of one port rule above its ports.

    Attributes:
        http: HTTP rules, or None where there are none.
        dns: names that may be looked up, or None where there are no DNS rules.
        sni: TLS server names, or None where any may be used.
        terminates: whether the proxy opens TLS, so that HTTP rules look inside.
        undecided: what the rule asks that only more data could decide, for people.
    """

    http: tuple[t.Mapping[str, t.Any], ...] | None = None
    dns: tuple[NamePattern, ...] | None = None
    sni: tuple[NamePattern, ...] | None = None
    terminates: bool = False
    undecided: tuple[str, ...] = ()

    @property
    def limits(self) -> bool:
        """Whether the proxy holds anything back."""
        return self.http is not None or self.dns is not None or self.sni is not None

    def permits(self, request: t.Mapping[str, t.Any]) -> bool:
        """Tell whether the proxy lets *request* through.

        Args:
            request: ``{"dns": name}``, ``{"http": {"method": …, "path": …, "host": …, "headers": …}}`` or
                ``{"sni": name}``.
        """
        if not self.limits:
            return True
        if "dns" in request:
            return self.dns is not None and any(pattern.matches(str(request["dns"])) for pattern in self.dns)
        if "sni" in request:
            if self.sni is not None:
                return any(pattern.matches(str(request["sni"])) for pattern in self.sni)
            return self.http is not None and self.terminates
        if self.dns is not None:
            return False
        http = request.get("http")
        if self.http is None or not isinstance(http, dict):
            # HTTP inside a permitted TLS stream cannot be seen.
            return True
        return any(_http_matches(rule, http) for rule in self.http)

    def looks_up_within(self, names: NameSet) -> bool:
        """Tell whether the proxy lets DNS questions about *names* alone through, and nothing else."""
        return self.dns is not None and name_set(self.dns).minus(names).empty

    def describe(self) -> str:
        """Return the limits in a few words."""
        parts = []
        if self.http is not None:
            parts.append("HTTP " + ", ".join(_describe_http(rule) for rule in self.http))
        if self.dns is not None:
            parts.append("DNS for " + ", ".join(pattern.text for pattern in self.dns))
        if self.sni is not None:
            parts.append("TLS to " + ", ".join(pattern.text for pattern in self.sni))
        return "; ".join(parts) or "no limit above the port"


NO_LIMIT = Layer7()


def _describe_http(rule: t.Mapping[str, t.Any]) -> str:
    words = [str(rule[key]) for key in ("method", "host", "path") if rule.get(key)]
    return " ".join(words) or "any request"


def _objects(value: t.Any, what: str) -> tuple[t.Mapping[str, t.Any], ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"{what} is a list of objects")
    return tuple(value)


def _check_http(rule: t.Mapping[str, t.Any]) -> None:
    texts = [rule.get(field) or "" for field in ("method", "path", "host")]
    headers = rule.get("headers") or []
    texts += headers if isinstance(headers, list) else [headers]
    for match in _objects(rule.get("headerMatches") or [], "headerMatches"):
        texts += [match.get("name"), match.get("value") or ""]
    if not all(isinstance(text, str) for text in texts) or not isinstance(headers, list):
        raise ValueError("method, path, host, headers and header matches of an HTTP rule are strings")


def read_layer7(port_rule: t.Mapping[str, t.Any]) -> Layer7:
    """Read what one item of ``toPorts`` asks above its ports.

    Returns:
        ``NO_LIMIT`` when nothing is held back.

    Raises:
        ValueError: for what Cilium refuses: two kinds of rules in one item, names that are none, wrong types.
    """
    undecided = [
        f"the field {field!r} of toPorts is not known" for field in port_rule if field not in _PORT_RULE_FIELDS
    ]
    rules = port_rule.get("rules") or {}
    if not isinstance(rules, dict):
        raise ValueError("rules is an object")  # noqa: TRY004 - the value of a field
    undecided += [f"{kind} rules are not judged" for kind in rules if kind not in {"http", "dns"} and rules[kind]]
    http = _objects(rules.get("http") or [], "rules.http")
    for rule in http:
        _check_http(rule)
    dns = selector_patterns(_objects(rules.get("dns") or [], "rules.dns"))
    names = port_rule.get("serverNames") or []
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("serverNames is a list of names")
    if http and dns:
        raise ValueError("one port rule may not have both HTTP and DNS rules")
    if port_rule.get("listener"):
        undecided.append("a custom Envoy listener decides what passes")
    if undecided:
        return Layer7(undecided=tuple(undecided))
    if not (http or dns or names):
        return NO_LIMIT
    return Layer7(
        http=http or None,
        dns=dns or None,
        sni=tuple(map(NamePattern, names)) or None,
        terminates=bool(port_rule.get("terminatingTLS")),
    )
