# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Checking the isolation of a sandbox that runs, or of the pods that a template or a warm pool will have."""

from __future__ import annotations

import typing as t

from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import POD, TEMPLATE, pod_template, spec
from ...deadline import Deadline
from ...guest.agent import Agent
from ...guest.isolation import Isolation, IsolationError, IsolationVerdict, RuntimeEvidence
from ...guest.privileges import probe_privileges
from ..observed.agent_address import AddressMode, locate
from ..verification.isolation import check_planned_isolation, check_pool_isolation, judge_pod


def check_sandbox(
    client: Client, namespace: str, name: str, demanded: Isolation, deadline: Deadline, port: int, mode: AddressMode
) -> dict[str, t.Any]:
    """The isolation of a sandbox that runs, with the privilege probe from inside.

    Args:
        name: the claim, or the direct Sandbox.
        port, mode: where its agent answers.

    Returns:
        ``holds``, ``problem`` (None, or why it does not hold) and the fields of the verdict.

    Raises:
        GoneError: there is no such sandbox.
        GuestError: its agent does not answer, or the probe found privileges.
    """
    found = locate(client, namespace, name, port=port, mode=mode, deadline=deadline)
    ref = POD.ref(namespace, found.pod)
    pod = read(client, ref, deadline)
    try:
        privileges = probe_privileges(Agent(found.agent), deadline, str(ref))
        return _holds(judge_pod(client, pod, privileges, demanded, str(ref), deadline))
    except IsolationError as error:
        return _fails(error)


def check_template(
    client: Client, namespace: str, name: str, demanded: Isolation, deadline: Deadline, *, pooled: bool
) -> dict[str, t.Any]:
    """The isolation of the pods that a template will have; what the kernel inside is remains unknown.

    Args:
        name: the SandboxTemplate, or the SandboxWarmPool with ``pooled``.

    Returns:
        As ``check_sandbox``.

    Raises:
        GoneError: there is no such template.
        InputError: its RuntimeClass does not exist.
    """
    try:
        if pooled:
            evidence = check_pool_isolation(client, namespace, name, demanded, deadline)
        else:
            ref = TEMPLATE.ref(namespace, name)
            planned = spec(pod_template(read(client, ref, deadline)))
            evidence = check_planned_isolation(client, planned, demanded, str(ref), deadline)
    except IsolationError as error:
        return _fails(error)
    return _holds(IsolationVerdict("unknown", evidence or RuntimeEvidence()))


def _holds(verdict: IsolationVerdict) -> dict[str, t.Any]:
    return {**verdict.as_dict(), "holds": True, "problem": None}


def _fails(error: IsolationError) -> dict[str, t.Any]:
    return {**(error.isolation or {}), "holds": False, "problem": str(error)}
