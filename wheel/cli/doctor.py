# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``doctor``: what works from this machine, step by step."""

from __future__ import annotations

import dataclasses
import typing as t

from ..api import Sandbox
from ..errors import SandboxError
from .access import Access


@dataclasses.dataclass(frozen=True)
class Check:
    """One step.

    Attributes:
        name: what was checked.
        detail: what was found.
        error: why it failed, or None.
    """

    name: str
    detail: str
    error: SandboxError | None = None

    def row(self) -> dict[str, t.Any]:
        """The check as a row of a table."""
        return {
            "check": self.name,
            "result": "ok" if self.error is None else f"failed ({self.error.reason})",
            "detail": self.detail,
            "next_step": None if self.error is None else self.error.next_step,
        }


def diagnose(source: t.Mapping[str, t.Any], egress: str, access: Access) -> list[Check]:
    """Check each step in turn; those after a failed one are not tried.

    Args:
        source: ``image``, ``pool`` or ``template`` to acquire a sandbox from; without one, access alone is checked.
        egress: what the sandbox may reach at most.
    """
    checks: list[Check] = []
    try:
        found = Sandbox.list(**access, **_backend(source, access))
    except SandboxError as error:
        return [Check("access", error.message, error)]
    checks.append(Check("access", f"{len(found)} sandboxes can be listed"))
    if not source:
        return checks
    try:
        with Sandbox.acquire(**source, egress=egress, ttl="60s", **access) as sandbox:
            checks += _verified(sandbox)
            try:
                done = sandbox.run(["true"], timeout=30.0)
                checks.append(Check("program", f"a program ended with exit code {done.rc}"))
            except SandboxError as error:
                checks.append(Check("program", error.message, error))
    except SandboxError as error:
        checks.append(Check(_STEPS.get(error.reason, "sandbox"), error.message, error))
    else:
        checks.append(Check("release", "the sandbox was released"))
    return checks


#: The step that a reason belongs to, where that is not the acquire as a whole.
_STEPS = {
    "agent-unreachable": "agent",
    "agent-timeout": "agent",
    "agent-protocol": "agent",
    "agent-unauthorized": "agent",
    "boundary": "boundary",
    "capacity": "capacity",
    "image-pull": "image",
    "not-served": "CRDs",
    "privileged": "privileges",
    "quota": "capacity",
    "template": "template",
}


#: What is shown of the verdict on privileges.
_PRIVILEGES = ("uid", "seccomp", "kernel")


def _backend(source: t.Mapping[str, t.Any], access: Access) -> dict[str, str]:
    return {"backend": "container"} if "image" in source and "backend" not in access else {}


def _verified(sandbox: Sandbox) -> list[Check]:
    info = sandbox.info
    checks = [Check("sandbox", f"{sandbox.name} was acquired")]
    verdict = info.get("verdict") or {}
    privileges = verdict.get("privileges")
    if privileges:
        shown = ", ".join(f"{name} {privileges[name]}" for name in _PRIVILEGES if privileges.get(name) is not None)
        checks.append(Check("privileges", f"none; {shown}"))
    for direction in ("egress", "ingress"):
        found = verdict.get(direction)
        if isinstance(found, dict) and found.get("holds"):
            checks.append(Check(direction, f"stays within {found['request']}"))
    return checks
