# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The boundary that a sandbox is asked to have: checked as a whole before anything is made."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ...boundary.errors import PolicyError
from ...boundary.policies.named import Profile, check_policy_name, policy_labels
from ...boundary.policies.translation import translate
from ...boundary.reach.ingress import allowed_region
from ...boundary.reach.reach import ENGINES
from ...boundary.reach.requests import Request
from ...boundary.reach.verdict import Verdict
from ...errors import InputError

Verify = t.Literal["union", "named_object"]

#: The ingress of a sandbox about which nothing is asked.
UNVERIFIED: t.Final = "unverified"
Unverified = t.Literal["unverified"]

_OWN_FIELDS = ("engine", "name", "profile", "verify")


@dataclasses.dataclass(frozen=True)
class EgressBoundary:
    """What a sandbox may reach, and how that is proven.

    Attributes:
        request: what it may reach.
        engine: who enforces policies: ``core`` (NetworkPolicy) or ``cilium``.
        name: the policy that grants the request; None for the name that role ``boundary`` gives it.
        profile: the one of several boundaries of a template; its label is put on the pod.
        verify: ``union`` asks for the named policy and that no other one adds to it; ``named_object`` for the named
            policy alone.
    """

    request: Request
    engine: str = "core"
    name: str | None = None
    profile: Profile | None = None
    verify: Verify = "union"

    def __post_init__(self) -> None:
        if self.verify not in t.get_args(Verify):
            raise InputError(f"egress.verify is one of {', '.join(t.get_args(Verify))}, got {self.verify!r}.")
        if self.name is not None:
            check_policy_name(self.name)
        # What the engine cannot express, and labels that it cannot select by, show in the translation.
        labels = policy_labels("template", self.profile)
        translate(self.request, namespace="any", name="any", labels=labels, engine=self.engine)

    @classmethod
    def of(cls, value: object) -> EgressBoundary:
        """A boundary from plain data.

        Args:
            value: what ``Request.of`` takes; a mapping may have ``engine``, ``name``, ``profile`` and ``verify`` too.

        Raises:
            QuestionError, InputError: it is not a request, or one that the engine cannot express.
        """
        if isinstance(value, EgressBoundary):
            return value
        if not isinstance(value, c.Mapping):
            return cls(Request.of(value))
        given = _without_nothing(value)
        own = {key: given.pop(key) for key in _OWN_FIELDS if key in given}
        if "profile" in own:
            own["profile"] = Profile.of(own["profile"])
        return cls(Request.of(given), **own)

    def as_dict(self) -> dict[str, t.Any]:
        """The boundary as plain data, from which ``of`` makes it again."""
        profile = None if self.profile is None else {"key": self.profile.key, "value": self.profile.value}
        own = {"engine": self.engine, "name": self.name, "profile": profile, "verify": self.verify}
        return {**self.request.as_dict(), **{key: item for key, item in own.items() if item is not None}}

    @property
    def pod_labels(self) -> dict[str, str]:
        """The labels that the pod needs for it."""
        return {self.profile.key: self.profile.value} if self.profile else {}


def _without_nothing(value: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The fields that were given; Ansible hands over every suboption of a dictionary."""
    given = {key: item for key, item in value.items() if item is not None}
    return {key: _without_nothing(item) if isinstance(item, c.Mapping) else item for key, item in given.items()}


@dataclasses.dataclass(frozen=True)
class IngressBoundary:
    """Who may reach the agent's port.

    Attributes:
        allow_from: peers as in a NetworkPolicy's rule, an empty tuple for nobody; None for whoever a policy names, but
            not everyone, not every namespace and not the internet.
        engine: who enforces policies; None for the engine of the egress boundary, or ``core``.
    """

    allow_from: tuple[c.Mapping[str, t.Any], ...] | None = None
    engine: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in {None, *ENGINES}:
            raise InputError(f"ingress.engine is one of {', '.join(ENGINES)}, got {self.engine!r}.")
        try:
            allowed_region(self.peers or [], "any")
        except PolicyError as error:
            raise InputError(f"ingress.allow_from cannot be read: {error.message}.") from None

    @property
    def peers(self) -> list[dict[str, t.Any]] | None:
        """``allow_from`` as plain data."""
        return None if self.allow_from is None else [dict(peer) for peer in self.allow_from]

    def as_dict(self) -> dict[str, t.Any]:
        """The boundary as plain data, from which ``of`` makes it again."""
        return {"allow_from": self.peers, "engine": self.engine}

    @classmethod
    def of(cls, value: object) -> IngressBoundary | Unverified:
        """A boundary from plain data: None for the default, ``unverified``, or a mapping with ``allow_from``.

        Raises:
            InputError: it is none of them.
        """
        if value == UNVERIFIED:
            return UNVERIFIED
        if value is None or isinstance(value, IngressBoundary):
            return value or cls()
        if not isinstance(value, c.Mapping) or not value.keys() <= {"allow_from", "engine"}:
            raise InputError(f"ingress is {UNVERIFIED}, or a mapping with allow_from and engine, got {value!r}.")
        peers = value.get("allow_from")
        if peers is not None and not (
            isinstance(peers, (list, tuple)) and all(isinstance(p, c.Mapping) for p in peers)
        ):
            raise InputError(f"ingress.allow_from is a list of peers, got {peers!r}.")
        return cls(None if peers is None else tuple(peers), value.get("engine"))


@dataclasses.dataclass(frozen=True)
class Proven:
    """What was proven about the boundary of a pod.

    Attributes:
        egress: the verdict on the sum of all policies; None when it was not asked for.
        ingress: the same for the agent's port.
        policy: the named policy that grants the egress, as ``Kind namespace/name``, or None.
    """

    egress: Verdict | None = None
    ingress: Verdict | None = None
    policy: str | None = None


def one_engine(egress: EgressBoundary | None, ingress: IngressBoundary | Unverified) -> str:
    """The engine of both boundaries; a cluster has one.

    Raises:
        InputError: they name two.
    """
    asked = [each for each in (egress, ingress) if isinstance(each, (EgressBoundary, IngressBoundary))]
    named = {each.engine for each in asked if each.engine is not None}
    if len(named) > 1:
        raise InputError("egress.engine and ingress.engine differ, and a cluster has one engine.")
    return named.pop() if named else "core"
