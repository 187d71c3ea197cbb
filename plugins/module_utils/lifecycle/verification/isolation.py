# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the API server reports about the isolation of a pod, or of the pod that a template will have."""

from __future__ import annotations

from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import RUNTIME_CLASS, TEMPLATE, WARM_POOL, Body, ObjectRef, entries, mapping, spec
from ...cluster.resources import pod_template as pod_template_of
from ...deadline import Deadline
from ...errors import ApiError, CredentialError, GoneError, InputError, NotServedError
from ...guest.isolation import Isolation, IsolationVerdict, RuntimeEvidence, check_runtime, judge_isolation
from ...guest.isolation import runtime_level as level_of
from ...guest.privileges import Privileges

#: Fields of a PodSpec that share a namespace of the node; ``shareProcessNamespace`` shares one of the pod's own.
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")

NEXT_STEP = (
    "Use a template whose runtimeClassName is such a RuntimeClass (template_runtime_class of role "
    "namzu.sandbox.template), or ask for less isolation."
)


def runtime_evidence(client: Client, pod_spec: Body, deadline: Deadline, *, planned: bool = False) -> RuntimeEvidence:
    """What the API server reports about a pod with this spec; one read where the pod has a RuntimeClass.

    Args:
        pod_spec: ``spec`` of a pod, or of a pod template.
        planned: whether the pod is still to be created.

    Raises:
        InputError: the RuntimeClass of a planned pod does not exist, so that the pod would never be admitted.
        ApiError, ApiUnreachableError: it cannot be read for another reason than missing rights.
    """
    runtime_class = pod_spec.get("runtimeClassName") or None
    handler = problem = overhead = None
    if runtime_class is not None:
        ref = RUNTIME_CLASS.ref("", str(runtime_class))
        try:
            body = read(client, ref, deadline)
        except (CredentialError, NotServedError) as error:
            problem = f"{ref} could not be read ({_why(error)})"
        except GoneError:
            if planned:
                raise _missing(ref) from None
            problem = f"{ref} does not exist any more"
        else:
            handler = str(body.get("handler") or "") or None
            overhead = mapping(mapping(body.get("overhead")).get("podFixed"))
    return RuntimeEvidence(
        runtime_class=None if runtime_class is None else str(runtime_class),
        handler=handler,
        level=level_of(handler),
        overhead=mapping(pod_spec.get("overhead")) or overhead or None,
        user_namespace=pod_spec.get("hostUsers") is False,
        seccomp=_seccomp(pod_spec),
        host_namespaces=tuple(field for field in _HOST_NAMESPACES if pod_spec.get(field)),
        problem=problem,
    )


def _missing(ref: ObjectRef) -> InputError:
    return InputError(
        f"runtime_class is {ref.name!r}: {ref} does not exist.",
        object=str(ref),
        next_step="Use a name that kubectl get runtimeclasses lists, in runtime_class or in the template's "
        "runtimeClassName.",
    )


def judge_pod(
    client: Client, pod: Body, privileges: Privileges, demanded: Isolation, subject: str, deadline: Deadline
) -> IsolationVerdict:
    """The isolation of a live pod.

    Raises:
        IsolationError: it is weaker than demanded, or the pod shares a namespace of its node.
        ApiError, ApiUnreachableError: as ``runtime_evidence``.
    """
    evidence = runtime_evidence(client, spec(pod), deadline)
    return judge_isolation(privileges, evidence, demanded, subject, NEXT_STEP)


def check_planned_isolation(
    client: Client, pod_spec: Body, demanded: Isolation, subject: str, deadline: Deadline
) -> RuntimeEvidence:
    """Refuse a pod template before anything is created, where the template shows that it is too weak.

    Args:
        pod_spec: ``spec`` of the pod template.
        subject: the template, for errors.

    Raises:
        IsolationError: it is weaker than demanded, or its pods share a namespace of their node.
        InputError, ApiError, ApiUnreachableError: as ``runtime_evidence``.
    """
    evidence = runtime_evidence(client, pod_spec, deadline, planned=True)
    check_runtime(evidence, demanded, subject, NEXT_STEP)
    return evidence


def check_pool_isolation(
    client: Client, namespace: str, warm_pool: str, demanded: Isolation, deadline: Deadline
) -> RuntimeEvidence | None:
    """The same for the template of a warm pool; None where pool or template do not exist yet.

    The controller reports those when it serves the claim.
    """
    try:
        pool = read(client, WARM_POOL.ref(namespace, warm_pool), deadline)
        template = str(mapping(spec(pool).get("sandboxTemplateRef")).get("name"))
        ref = TEMPLATE.ref(namespace, template)
        body = read(client, ref, deadline)
    except NotServedError:
        raise
    except GoneError:
        return None
    return check_planned_isolation(client, spec(pod_template_of(body)), demanded, str(ref), deadline)


def _seccomp(pod_spec: Body) -> str | None:
    """The weakest profile of the pod's containers; a container without one has the pod's."""
    own = _profile(pod_spec)
    found = [_profile(one) or own for one in entries(pod_spec.get("containers"))] or [own]
    for weakest in (None, "Unconfined"):
        if weakest in found:
            return weakest
    return found[0]


def _profile(holder: Body) -> str | None:
    profile = mapping(mapping(holder.get("securityContext")).get("seccompProfile")).get("type")
    return None if profile is None else str(profile)


def _why(error: ApiError) -> str:
    return "not allowed" if isinstance(error, CredentialError) else "not served"
