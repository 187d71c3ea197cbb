# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the controller says of a claim or a Sandbox: ready, bound, ended, or refused for good.

Source: agent-sandbox v0.5.6, SandboxClaim and Sandbox v1beta1. Every task that finds a sandbox loads this, so it knows
nothing of how one is made.
"""

from __future__ import annotations

from ...cluster.resources import CLAIM, Body, ObjectRef, condition, mapping, spec
from ...text import clean_text
from ..errors import AcquireError

#: Ready reasons with which the controller has decided; every other one is a delay. Measured on agent-sandbox v0.5.6 by
#: making the claims that cause them (tests/integration/test_acquire_failures.py); InvalidConfiguration and
#: VolumeClaimTemplatesError as the clients of agent-sandbox 1.0.8 list them.
TERMINAL_REASONS = frozenset(
    {"WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata", "InvalidConfiguration", "EnvVarsInjectionRejected",
     "VolumeClaimTemplatesError"}
)  # fmt: skip

#: How the controller words a pod label that the template has already, with another value. It arrives as a
#: ``ReconcilerError``, which it tries again and again, and nothing but an edit of either side changes it.
_METADATA_CONFLICT = "metadata override conflict"

#: Characters of a condition's reason, which is one word.
_REASON = 100

#: Ready reasons of a claim whose lease has ended.
EXPIRED_REASONS = frozenset({"ClaimExpired", "SandboxExpired"})

#: Ready reason of a Sandbox that was put to sleep: it has no pod until somebody wakes it.
SUSPENDED_REASON = "SandboxSuspended"

#: Ready reasons of a Sandbox, forwarded by its claim, that no waiting changes: its container has ended (and is not
#: started again), or a second pod claims to be its.
DEAD_REASONS = {
    "PodSucceeded": "its container ended by itself with 0, so nothing runs in it",
    "PodFailed": "its container ended with an error",
    "MultiplePods": "more than one pod claims to be its",
}

#: What to do about a container that ended.
ENDED_STEP = (
    "Look at the command and the limits in the template, and at the log of its pod while that is there "
    "(kubectl logs -f beside the next try)."
)

_NEXT_STEPS = {
    "WarmPoolNotFound": "Create the SandboxWarmPool (role namzu.sandbox.warm_pool), or name another in warm_pool.",
    "TemplateNotFound": "Create the SandboxTemplate that the pool names (role namzu.sandbox.template).",
    "InvalidMetadata": "Pod labels need a domain of the controller's allowed label domains "
    "(default sandbox.users.io; the file /etc/sandbox-config/allowed-label-domains replaces it).",
    "ReconcilerError": "Leave the label out of pod_labels, or take it out of the template.",
    "InvalidConfiguration": "Correct the claim or the template as the message says.",
    "VolumeClaimTemplatesError": "Put disks into the template, or set its volumeClaimTemplatesPolicy.",
    "EnvVarsInjectionRejected": "Put environment variables into the template; a claim carries none.",
}


def reason_of(ready: Body) -> str | None:
    """The reason of a condition as one printable word; None when the condition has none."""
    return clean_text(ready["reason"], _REASON) if ready.get("reason") else None


def message_of(ready: Body) -> str | None:
    """The message of a condition as one printable line; None when the condition has none."""
    return clean_text(ready["message"]) if ready.get("message") else None


def is_ready(body: Body) -> bool:
    """Whether a claim or Sandbox says that its pod runs and is ready."""
    return bool(condition(body, "Ready").get("status") == "True")


def bound_sandbox(body: Body, ref: ObjectRef) -> str | None:
    """The Sandbox of a claim, or a direct Sandbox itself, by name; None while it is not Ready."""
    if not is_ready(body):
        return None
    return named_sandbox(body) if ref.kind is CLAIM else ref.name


def named_sandbox(claim: Body) -> str | None:
    """The Sandbox that the claim's status names, Ready or not."""
    name = ((claim.get("status") or {}).get("sandbox") or {}).get("name")
    return str(name) if name else None


def is_rejected(ready: Body) -> bool:
    """Whether a Ready condition is a decision against the claim, which no waiting changes."""
    decided = ready.get("reason") in TERMINAL_REASONS or _METADATA_CONFLICT in str(ready.get("message"))
    return decided and ready.get("status") == "False"


def _sent(reason: str, claim: Body) -> str:
    """The pod labels that a claim asks for, when these are what was refused."""
    labels = mapping(mapping(spec(claim).get("additionalPodMetadata")).get("labels"))
    if reason != "InvalidMetadata" or not labels:
        return ""
    return " " + clean_text(f"Pod labels of the claim: {', '.join(f'{key}={value}' for key, value in labels.items())}.")


def raise_if_decided(body: Body, ref: ObjectRef) -> None:
    """Raise when the controller has decided against a claim or Sandbox, so that nobody waits for it.

    Raises:
        AcquireError: with reason ``claim-rejected``, or ``not-ready`` for one that has ended, and the controller's own
            words.
    """
    ready = condition(body, "Ready")
    reason = reason_of(ready) or ""
    message = message_of(ready)
    words = (message or "no message").removesuffix(".")
    if is_ready(body) and ref.kind is CLAIM and named_sandbox(body) is None:
        raise AcquireError(
            f"{ref} is Ready and names no sandbox (status.sandbox.name).",
            reason="not-ready",
            retryable=False,
            controller_reason=reason,
            controller_message=message,
            object=str(ref),
            next_step="Check that the controller serves v1beta1 of agent-sandbox, and release the claim.",
        )
    if ready.get("status") != "False":
        return
    if reason in DEAD_REASONS:
        text, kind = f"{ref} cannot be used: {DEAD_REASONS[reason]} ({reason}: {words}).", "not-ready"
        step = ENDED_STEP
    elif is_rejected(ready) or reason in EXPIRED_REASONS:
        text, kind = f"The controller refused {ref} with {reason}: {words}.{_sent(reason, body)}", "claim-rejected"
        step = _NEXT_STEPS.get(reason, "Release it, then acquire again.")
    else:
        return
    raise AcquireError(
        text,
        reason=kind,
        retryable=False,
        controller_reason=reason,
        controller_message=message,
        object=str(ref),
        next_step=step,
    )
