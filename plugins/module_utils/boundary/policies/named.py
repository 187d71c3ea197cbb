# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The named policy of a boundary: its name, and which labels of a sandbox's pod it selects.

Role ``boundary`` writes it, an acquire looks for it.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ...cluster.resources import TEMPLATE_LABEL
from ..errors import QuestionError
from ..reach.reach import Reach
from ..reach.requests import Request
from ..world.objects import Body, Pod
from .translation import differences, translate

#: A policy's name is a DNS subdomain (Kubernetes, object names and IDs: RFC 1123, at most 253 characters).
_POLICY_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

#: In a domain that the controller lets a claim put on a pod unless its operator says otherwise.
DEFAULT_PROFILE_KEY = "sandbox.users.io/egress-profile"


#: Of a label's value (Kubernetes, labels and selectors).
_LONGEST_LABEL = 63


@dataclasses.dataclass(frozen=True)
class Profile:
    """One of several boundaries of a template; a sandbox chooses one by a label on its pod.

    Attributes:
        value: the label's value, and part of the policy's name: lower-case letters, digits, dashes and dots, at most
            63 characters, with a letter or digit at both ends and beside each dot.
        key: the label's key.
    """

    value: str
    key: str = DEFAULT_PROFILE_KEY

    def __post_init__(self) -> None:
        if not _POLICY_NAME.fullmatch(self.value) or len(self.value) > _LONGEST_LABEL:
            raise QuestionError(
                f"Profile {self.value!r}: its value is a part of the policy's name and cannot be one.",
                next_step="Use at most 63 lower-case letters, digits, dashes and dots, with a letter or digit at both "
                "ends.",
            )

    @classmethod
    def of(cls, value: object) -> Profile:
        """A profile from plain data: a value, or a mapping with ``value`` and perhaps ``key``; raises QuestionError."""
        if isinstance(value, Profile):
            return value
        body = {"value": value} if isinstance(value, str) else value
        if not isinstance(body, c.Mapping) or not body.keys() <= {"key", "value"}:
            raise QuestionError(f"A profile is a text, or a mapping with value and key, got {value!r}.")
        text, key = body.get("value"), body.get("key") or DEFAULT_PROFILE_KEY
        if not isinstance(text, str) or not isinstance(key, str) or not text:
            raise QuestionError(f"A profile's value and key are texts, got {value!r}.")
        return cls(text, key)


def policy_name(
    template: str, profile: Profile | None = None, direction: t.Literal["egress", "ingress"] = "egress"
) -> str:
    """The policy's name unless the caller gives another one."""
    return "-".join(["namzu", template, *([profile.value] if profile else []), direction])


def check_policy_name(name: object) -> None:
    """Raise QuestionError for a text that cannot be the name of a policy."""
    if not isinstance(name, str) or not _POLICY_NAME.fullmatch(name):
        raise QuestionError(
            f"Policy {name!r}: the API server accepts no object of that name.",
            next_step="Use lower-case letters, digits, dashes and dots, with a letter or digit at both ends.",
        )


def policy_labels(template: str, profile: Profile | None = None) -> dict[str, str]:
    """The labels of the pods that it selects."""
    return {TEMPLATE_LABEL: template, **({profile.key: profile.value} if profile else {})}


@dataclasses.dataclass(frozen=True)
class Named:
    """The named policy of a boundary, looked for.

    Attributes:
        policy: ``Kind namespace/name``.
        fault: what is wrong with it, as what follows its name in a sentence; None when it grants the request, no more
            and no less, and selects the pod.
        next_step: what to do about that, or None.
    """

    policy: str
    fault: str | None = None
    next_step: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.fault is None

    @property
    def problem(self) -> str | None:
        """The fault as a clause of its own."""
        return None if self.fault is None else f"it {self.fault}"


def look_for(reach: Reach, request: Request, name: str, labels: c.Mapping[str, str]) -> Named:
    """The policy that should grant a request to a pod.

    Args:
        reach: of the pod.
        request: what it may reach.
        name: how the policy is called.
        labels: what the policy selects by, when role ``boundary`` has written it.
    """
    pod, engine = reach.pod, reach.engine
    wanted = translate(request, namespace=pod.namespace, name=name, labels=labels, engine=engine)
    ref = f"{wanted['kind']} {pod.namespace}/{name}"
    found = (
        body
        for body in reach.world.policies(wanted["kind"])
        if body["metadata"].get("name") == name and (body["metadata"].get("namespace") or "default") == pod.namespace
    )
    live = next(found, None)
    if live is None:
        return Named(
            ref,
            f"does not exist, so nothing grants {request} to Pod {pod}, and nothing limits it to that",
            "Apply role namzu.sandbox.boundary, or set egress.name to the name of another policy.",
        )
    selector = "podSelector" if engine == "core" else "endpointSelector"
    # Whom it selects is judged by the pod itself, below.
    wanted["spec"][selector] = (live.get("spec") or {}).get(selector)
    faults = differences(live, wanted)
    if faults:
        return Named(
            ref,
            f"does not grant {request}: {'; '.join(faults)}",
            "Apply role namzu.sandbox.boundary again, or ask for what the policy grants.",
        )
    if ref not in {str(one) for tier in reach.compiled.egress.tiers for one in tier.policies}:
        return Named(
            ref,
            f"does not select Pod {pod}: {_lacking(live['spec'].get(selector) or {}, pod)}",
            "Find out what changed the labels of the pod; a new sandbox has those of its template.",
        )
    return Named(ref)


def _lacking(selector: Body, pod: Pod) -> str:
    """Why a selector does not select a pod, in words."""
    missing = [
        f"{key}={value} (it has {pod.labels[key]})" if key in pod.labels else f"{key}={value}"
        for key, value in (selector.get("matchLabels") or {}).items()
        if pod.labels.get(key) != value
    ]
    return f"the pod lacks the label {', '.join(missing)}" if missing else f"its selector is {selector}"
