# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The operator's fence around policies of one sandbox: whether it stands, before any such policy is written.

Who may write policies can widen every sandbox of the namespace. Role ``admission_fence`` makes a
ValidatingAdmissionPolicy and its binding that refuse every policy but those of one sandbox each. Both are read and
compared with what the role makes, and then the API server is asked, in a dry run and as who we are, for a policy that
must be refused; that shows what no reading can: who is exempt, which namespaces are fenced, and whether it is enforced.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import typing as t

from ...boundary.errors import PolicyError
from ...boundary.sets.boxes import NAMESPACE_NAME_LABEL
from ...boundary.world.strict_reader import Reader
from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import (
    ADMISSION_BINDING,
    ADMISSION_POLICY,
    CILIUM_POLICY,
    NETWORK_POLICY,
    Body,
    Kind,
    ObjectRef,
)
from ...cluster.retry import retry
from ...deadline import Deadline
from ...errors import ApiError, ConflictError, CredentialError, GoneError, InvalidError, NotServedError, SandboxError

#: How policy and binding are called.
FENCE_NAME = "namzu-fence-egress"

#: The policy that is asked for in a dry run, and must be refused.
PROBE_NAME = "namzu-fence-probe"

#: SHA-256 over the fence's CEL expressions, as ``fingerprint`` reads them. A test holds it against role
#: ``admission_fence``.
EXPRESSIONS = "9076708d39aaed43ba3623d9758b3aa0d4c142c9f36ddbf358abe4efb836761d"

#: Where each engine's policies are written.
POLICY_KINDS: c.Mapping[str, Kind] = {"core": NETWORK_POLICY, "cilium": CILIUM_POLICY}

_APPLY = "Let an operator apply role namzu.sandbox.admission_fence."
_WIDEST: c.Mapping[str, Body] = {
    "core": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
    "cilium": {"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]},
}


class FenceError(SandboxError):
    """The fence around policies of one sandbox does not hold, so no such policy is written."""

    reason = "fence"


class FenceMissingError(FenceError):
    """There is no ValidatingAdmissionPolicy of the fence."""

    reason = "fence-missing"


class FenceBindingMissingError(FenceError):
    """The policy of the fence is bound to nothing."""

    reason = "fence-unbound"


class FenceUnreadableError(FenceError):
    """Who we are may not read the fence, so it is not known whether it stands."""

    reason = "fence-unreadable"


class FenceNotDenyingError(FenceError):
    """The binding of the fence denies nothing; it only audits or warns."""

    reason = "fence-not-denying"


class FenceWeakenedError(FenceError):
    """The fence is another than role ``admission_fence`` makes."""

    reason = "fence-weakened"


class FenceElsewhereError(FenceError):
    """The binding of the fence leaves this namespace out."""

    reason = "fence-elsewhere"


class FenceNotHeldError(FenceError):
    """The API server would take a policy that the fence must refuse, from who we are."""

    reason = "fence-not-held"


@dataclasses.dataclass(frozen=True)
class Fence:
    """A fence that stands.

    Attributes:
        policy: the ValidatingAdmissionPolicy, for people.
        held: whether it holds who asked; False for an operator, who may change the fence itself.
    """

    policy: str
    held: bool


def require_fence(client: Client, namespace: str, deadline: Deadline, *, engine: str = "core") -> Fence:
    """Make sure that the fence stands around policies of one sandbox in a namespace.

    It costs three requests, and one more for who is exempt.

    Args:
        client: who is going to write a policy.
        namespace: where.
        deadline: bounds all requests.
        engine: ``core`` (NetworkPolicy) or ``cilium`` (CiliumNetworkPolicy).

    Raises:
        FenceError: a subclass for each way in which it does not hold.
        SandboxError: the API server could not be asked.
    """
    kind = POLICY_KINDS[engine]
    raise_if_weak_policy(_read(client, ADMISSION_POLICY, FenceMissingError, deadline), kind, namespace)
    raise_if_weak_binding(_read(client, ADMISSION_BINDING, FenceBindingMissingError, deadline), kind, namespace)
    return Fence(str(_ref(ADMISSION_POLICY)), _is_held(client, kind.ref(namespace, PROBE_NAME), engine, deadline))


def raise_if_weak_policy(policy: Body, kind: Kind, namespace: str) -> None:
    """Raise when a ValidatingAdmissionPolicy is not the fence that role ``admission_fence`` makes.

    Raises:
        FenceWeakenedError, FenceElsewhereError.
    """
    spec = _mapping(policy.get("spec"))
    if spec.get("failurePolicy", "Fail") != "Fail":
        raise _weakened(ADMISSION_POLICY, "its failurePolicy is not Fail")
    if spec.get("paramKind"):
        raise _weakened(ADMISSION_POLICY, "it takes parameters")
    if fingerprint(spec) != EXPRESSIONS:
        raise _weakened(ADMISSION_POLICY, "its expressions are others than role admission_fence of this release writes")
    constraints = _mapping(spec.get("matchConstraints"))
    if not _covers(constraints.get("resourceRules"), kind):
        raise _weakened(ADMISSION_POLICY, f"it does not see every creation and change of {kind.plural}.{kind.group}")
    _raise_if_gaps(ADMISSION_POLICY, constraints, namespace)


def raise_if_weak_binding(binding: Body, kind: Kind, namespace: str) -> None:
    """Raise when a ValidatingAdmissionPolicyBinding does not make the fence hold in a namespace.

    Raises:
        FenceNotDenyingError, FenceWeakenedError, FenceElsewhereError.
    """
    spec = _mapping(binding.get("spec"))
    if spec.get("policyName") != FENCE_NAME:
        raise _weakened(ADMISSION_BINDING, f"it binds another policy than {FENCE_NAME}")
    if "Deny" not in (spec.get("validationActions") or []):
        raise FenceNotDenyingError(
            f"{_ref(ADMISSION_BINDING)} has no validationAction Deny, so it refuses nothing.",
            object=str(_ref(ADMISSION_BINDING)),
            next_step=_APPLY,
        )
    if spec.get("paramRef"):
        raise _weakened(ADMISSION_BINDING, "it takes parameters")
    matched = _mapping(spec.get("matchResources"))
    if matched.get("resourceRules") and not _covers(matched["resourceRules"], kind):
        raise _weakened(ADMISSION_BINDING, f"it leaves out some {kind.plural}.{kind.group}")
    _raise_if_gaps(ADMISSION_BINDING, matched, namespace)


def fingerprint(spec: c.Mapping[str, t.Any]) -> str:
    """The expressions of a ValidatingAdmissionPolicy's spec as one number; white space and messages do not count."""
    variables = [[one.get("name"), _words(one)] for one in spec.get("variables") or []]
    validations = [_words(one) for one in spec.get("validations") or []]
    return hashlib.sha256(json.dumps([variables, validations]).encode()).hexdigest()


def _words(entry: c.Mapping[str, t.Any]) -> str:
    return " ".join(str(entry.get("expression")).split())


def _read(client: Client, kind: Kind, missing: type[FenceError], deadline: Deadline) -> Body:
    ref = _ref(kind)
    try:
        body = read(client, ref, deadline)
    except (GoneError, NotServedError) as error:
        raise missing(
            f"There is no {ref}, so nothing keeps policies of one sandbox to that sandbox.",
            object=str(ref),
            next_step=_APPLY,
        ) from error
    except CredentialError as error:
        if error.status == 401:
            raise
        raise FenceUnreadableError(
            f"{ref} may not be read, so it is not known whether the fence stands: {error.message}",
            object=str(ref),
            next_step=f"Grant get on {kind.plural}.{kind.group} (role namzu.sandbox.claimant with claimant_egress).",
        ) from error
    if body["metadata"].get("deletionTimestamp"):
        raise missing(f"{ref} is being deleted.", object=str(ref), next_step=_APPLY)
    return body


def _ref(kind: Kind) -> ObjectRef:
    return kind.ref("", FENCE_NAME)


def _covers(rules: t.Any, kind: Kind) -> bool:
    """Whether some rules together see every creation and change of a kind; one for each will do."""
    seen: set[str] = set()
    for rule in rules or []:
        named = {
            "apiGroups": kind.group,
            "apiVersions": kind.version,
            "resources": kind.plural,
        }
        matches = all({"*", value} & set(rule.get(field) or []) for field, value in named.items())
        if matches and not rule.get("resourceNames") and rule.get("scope", "*") in {"*", "Namespaced"}:
            seen.update(rule.get("operations") or [])
    return "*" in seen or {"CREATE", "UPDATE"} <= seen


def _raise_if_gaps(kind: Kind, matched: Body, namespace: str) -> None:
    """Raise when a match leaves objects of the namespace out, as far as that can be known without reading it."""
    if matched.get("objectSelector"):
        raise _weakened(kind, "it leaves out objects by their labels")
    if matched.get("excludeResourceRules"):
        raise _weakened(kind, "it excludes resources")
    try:
        selector = Reader(matched, str(_ref(kind))).selector("namespaceSelector")
    except PolicyError as error:
        raise _weakened(kind, f"its namespaceSelector cannot be read ({error.message})") from error
    named = None if selector is None else selector.needs().get(NAMESPACE_NAME_LABEL)
    if named is not None and not named.contains(namespace):
        raise FenceElsewhereError(
            f"{_ref(kind)} leaves namespace {namespace} out.",
            object=str(_ref(kind)),
            next_step="Add it to admission_fence_namespaces of role namzu.sandbox.admission_fence.",
        )


def _weakened(kind: Kind, why: str) -> FenceWeakenedError:
    return FenceWeakenedError(
        f"{_ref(kind)} is not what it was made as: {why}.", object=str(_ref(kind)), next_step=_APPLY
    )


def _is_held(client: Client, probe: ObjectRef, engine: str, deadline: Deadline) -> bool:
    """Whether the fence refuses the widest policy from who we are; False for who may change the fence."""
    metadata = {"name": probe.name, "namespace": probe.namespace}
    body = {
        "apiVersion": probe.kind.api_version,
        "kind": probe.kind.name,
        "metadata": metadata,
        "spec": _WIDEST[engine],
    }
    try:
        retry(deadline, lambda: client.create(probe, body, deadline, dry_run=True))
    except (InvalidError, CredentialError) as error:
        if _is_by_admission(error):
            return True
        if isinstance(error, CredentialError) or error.api_reason is None:
            raise  # what lacks is a rule, or the answer is not the API server's
        raise _not_held(probe, f"it refused a policy for every pod for another reason: {error.message}") from error
    except ConflictError:
        pass  # one of that name stands there, and that is looked at after the fence would have refused
    if _may_change_the_fence(client, deadline):
        return False
    raise _not_held(probe, "it would take a policy that opens the egress of every pod there")


def _is_by_admission(error: ApiError) -> bool:
    # Whichever ValidatingAdmissionPolicy comes first speaks; another operator's may refuse the same.
    return "ValidatingAdmissionPolicy" in (error.api_message or "")


def _may_change_the_fence(client: Client, deadline: Deadline) -> bool:
    try:
        retry(deadline, lambda: client.patch(_ref(ADMISSION_POLICY), {}, deadline, dry_run=True))
    except (CredentialError, GoneError, NotServedError):
        return False
    return True


def _not_held(probe: ObjectRef, why: str) -> FenceNotHeldError:
    return FenceNotHeldError(
        f"The fence does not hold in namespace {probe.namespace}: the API server was asked, and {why}.",
        object=str(_ref(ADMISSION_POLICY)),
        next_step="Look at the namespaces and the exempt users of role namzu.sandbox.admission_fence, and whether the "
        "API server enforces ValidatingAdmissionPolicies.",
    )


def _mapping(value: t.Any) -> Body:
    return value if isinstance(value, dict) else {}
