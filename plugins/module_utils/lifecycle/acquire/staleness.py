# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a sandbox still is what its template says: a pool may hand out members that are older than an edit.

A pool with ``updateStrategy: OnReplenish``, the default, keeps them on purpose (agent-sandbox v0.5.6). The hash of the
template that members are labelled with is taken away when they are claimed, so what they are made of is compared.
"""

from __future__ import annotations

import decimal
import re
import typing as t

from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import SANDBOX, TEMPLATE, Body, ObjectRef, annotation
from ...deadline import Deadline
from ...errors import GoneError, SandboxError

#: On a Sandbox that a claim or a pool made: the name of its template.
TEMPLATE_ANNOTATION = "agents.x-k8s.io/sandbox-template-ref"

#: What the controller puts into the pods of a template that leaves its policy to it (``ApplySandboxSecureDefaults``).
_MANAGED_DNS = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["8.8.8.8", "1.1.1.1"]}}

_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(m|u|n|[kMGTPE]|[KMGTPE]i)?")
_UNITS = {
    **{suffix: decimal.Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": decimal.Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
    **{suffix: decimal.Decimal(1000) ** -power for power, suffix in enumerate("mun", 1)},
}
#: Fields that Go leaves out when they are false.
_LEFT_OUT = ("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty")

_QUANTITIES = ("limits", "requests", "sizeLimit", "overhead", "capacity")


class StaleError(SandboxError):
    """The sandbox is older than its template, and ``on_stale: refuse`` was asked for; it was given back."""

    reason = "stale"
    retryable = True


def raise_if_stale(ref: ObjectRef, drift: t.Sequence[str]) -> None:
    """Raise when there is a difference.

    Raises:
        StaleError: naming each.
    """
    if drift:
        raise StaleError(
            f"{ref} is older than its template: {', '.join(drift)} differ.",
            object=str(ref),
            next_step="Acquire again when the pool has new members, or set the pool's updateStrategy to Recreate.",
        )


def drift_of_member(client: Client, namespace: str, sandbox: str, deadline: Deadline) -> list[str]:
    """In which fields a claimed Sandbox differs from its template as that is now; two reads.

    Returns:
        Names of fields, empty for none; ``the template itself`` when that is gone or not named.

    Raises:
        ApiError, ApiUnreachableError: one of them cannot be read.
    """
    body = read(client, SANDBOX.ref(namespace, sandbox), deadline)
    name = annotation(body, TEMPLATE_ANNOTATION)
    if name is None:
        return ["the template itself"]
    try:
        template = read(client, TEMPLATE.ref(namespace, name), deadline)
    except GoneError:
        return ["the template itself"]
    return drift(body.get("spec") or {}, _with_defaults(template.get("spec") or {}))


def drift(sandbox: Body, template: Body) -> list[str]:
    """The fields of a Sandbox's spec in which it differs from a template's; metadata does not count.

    Null, empty and missing are one, and so are two ways to write a quantity, as the controller writes a Sandbox anew.
    """
    have, want = _pod_spec(sandbox), _pod_spec(template)
    fields = [f"podTemplate.spec.{key}" for key in sorted(have.keys() | want.keys()) if have.get(key) != want.get(key)]
    if _claims(sandbox) != _claims(template):
        fields.append("volumeClaimTemplates")
    if bool(sandbox.get("service")) != bool(template.get("service")):
        fields.append("service")
    return fields


def _pod_spec(spec: Body) -> Body:
    plain = _plain((spec.get("podTemplate") or {}).get("spec") or {})
    return t.cast("Body", plain or {})


def _claims(spec: Body) -> list[t.Any]:
    entries = spec.get("volumeClaimTemplates") or []
    return [((entry.get("metadata") or {}).get("name"), _plain(entry.get("spec"))) for entry in entries]


def _with_defaults(template: Body) -> Body:
    pod = template.get("podTemplate") or {}
    spec = {"automountServiceAccountToken": False, **(pod.get("spec") or {})}
    managed = template.get("networkPolicyManagement", "Managed") == "Managed" and not template.get("networkPolicy")
    if managed and not spec.get("dnsPolicy"):
        spec.update(_MANAGED_DNS)
    return {**template, "podTemplate": {**pod, "spec": spec}}


def _plain(node: t.Any, key: str = "") -> t.Any:
    """A value as it compares: nothing that is empty, and numbers for quantities."""
    if isinstance(node, dict):
        inner = {name: _plain(value, key if key in _QUANTITIES else name) for name, value in node.items()}
        return {name: value for name, value in inner.items() if not _means_nothing(name, value)} or None
    if isinstance(node, list):
        return [_plain(value) for value in node] or None
    return _number(node) if key in _QUANTITIES else node


def _means_nothing(name: str, value: t.Any) -> bool:
    return value is None or value == "" or (value is False and name in _LEFT_OUT)


def _number(value: t.Any) -> t.Any:
    match = _QUANTITY.fullmatch(str(value))
    try:
        return decimal.Decimal(match[1]) * _UNITS.get(match[2] or "", decimal.Decimal(1)) if match else value
    except decimal.InvalidOperation:
        return value
