# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How a sandbox is isolated from the kernel of its machine, and whether that is as strong as a request demands.

Whoever controls the image decides what the probe inside reports, and whoever administers the backend decides which
runtime starts the sandbox. A stronger isolation than that of containers is stated only where both agree.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ..errors import InputError, SandboxError
from .privileges import Kernel, Privileges

Isolation = t.Literal["any", "gvisor", "vm"]
Level = t.Literal["container", "gvisor", "vm"]

#: From weak to strong; each satisfies the demand of its name and every weaker one.
_LEVELS: tuple[Level, ...] = ("container", "gvisor", "vm")
_DEMANDS: dict[Isolation, Level] = {"any": "container", "gvisor": "gvisor", "vm": "vm"}

#: Runtimes by their names: gVisor's installation guide uses ``runsc``, GKE ``gvisor``; Kata Containers ``kata`` and
#: ``kata-<hypervisor>``.
_RUNTIMES: tuple[tuple[re.Pattern[str], Level], ...] = (
    (re.compile(r"(gvisor|runsc)([-._].*)?", re.ASCII), "gvisor"),
    (re.compile(r"kata([-._].*)?", re.ASCII), "vm"),
)
#: What the kernel inside must be, as the probe read it.
_KERNELS: dict[Level, Kernel] = {"gvisor": "gvisor", "vm": "linux"}


class IsolationError(SandboxError):
    """The sandbox is less isolated than was asked for, or shares a namespace of its machine; it was not handed out.

    Attributes:
        demanded: what was asked for: ``any``, ``gvisor`` or ``vm``.
        isolation: the evidence as plain data, or None when nothing was created.
    """

    reason = "isolation"

    def __init__(
        self, message: str, *, demanded: str = "any", isolation: dict[str, t.Any] | None = None, **common: t.Any
    ) -> None:
        super().__init__(message, **common)
        self.demanded = demanded
        self.isolation = isolation

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "isolation": self.isolation}


@dataclasses.dataclass(frozen=True)
class RuntimeEvidence:
    """What the backend reports about how a sandbox runs: the API server, or the engine.

    Attributes:
        runtime_class: the RuntimeClass of the pod; None without one, and on an engine.
        handler: the handler of that RuntimeClass, or the runtime of the engine; None when it is not known.
        level: the isolation that this runtime gives; ``container`` for a runtime that is not known.
        overhead: resources of the pod's sandbox beside its containers (``spec.overhead``), or None.
        user_namespace: whether the backend gave it a user namespace; None when that is not known.
        seccomp: the profile (``RuntimeDefault``, ``Unconfined``, ``default``), or None.
        host_namespaces: namespaces of the machine that it shares.
        problem: why the handler is not known, as a sentence, or None.
    """

    runtime_class: str | None = None
    handler: str | None = None
    level: Level = "container"
    overhead: t.Mapping[str, str] | None = None
    user_namespace: bool | None = None
    seccomp: str | None = None
    host_namespaces: tuple[str, ...] = ()
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class IsolationVerdict:
    """How a sandbox is isolated, from inside and by its backend.

    Attributes:
        kernel: which kernel serves the sandbox, as seen from inside.
        runtime: what the backend reports.
        user_namespace: whether its user ids are others outside; None when that is not known.
    """

    kernel: Kernel
    runtime: RuntimeEvidence
    user_namespace: bool | None = None

    @property
    def level(self) -> Level:
        """The isolation on which the probe inside and the backend agree."""
        return self.runtime.level if _KERNELS.get(self.runtime.level) == self.kernel else "container"

    def as_dict(self) -> dict[str, t.Any]:
        """The verdict as plain data."""
        runtime = self.runtime
        return {
            "level": self.level,
            "kernel": self.kernel,
            "runtime_class": runtime.runtime_class,
            "handler": runtime.handler,
            "overhead": None if runtime.overhead is None else dict(runtime.overhead),
            "user_namespace": self.user_namespace,
            "seccomp": runtime.seccomp,
            "host_namespaces": list(runtime.host_namespaces),
        }


def check_isolation_option(value: object) -> None:
    """Check the value of option ``isolation``.

    Raises:
        InputError: it is not one of ``any``, ``gvisor`` and ``vm``.
    """
    if value not in _DEMANDS:
        raise InputError(f"isolation is {value!r}; it must be one of {', '.join(_DEMANDS)}.")


def runtime_level(name: str | None) -> Level:
    """The isolation that a runtime gives, by the name of its handler; ``container`` for a name that is not known."""
    return next((level for pattern, level in _RUNTIMES if name and pattern.fullmatch(name)), "container")


def check_runtime(evidence: RuntimeEvidence, demanded: Isolation, subject: str, next_step: str) -> None:
    """Refuse what the backend's settings alone show to be too weak; a sandbox need not exist.

    Args:
        subject: the object, for errors (``SandboxTemplate agents/python``).
        next_step: what to do when the runtime is too weak.

    Raises:
        IsolationError: it shares a namespace of the machine, or its runtime is weaker than demanded.
    """
    if evidence.host_namespaces:
        raise IsolationError(
            f"{subject}: shares namespaces of the machine ({', '.join(evidence.host_namespaces)}).",
            demanded=demanded,
            object=subject,
            next_step="Remove these fields from the pod template.",
        )
    if _is_weaker(evidence.level, demanded):
        raise IsolationError(
            f"{subject}: {_described(evidence)}, and isolation is {demanded}.",
            demanded=demanded,
            object=subject,
            next_step=next_step,
        )


def judge_isolation(
    privileges: Privileges, evidence: RuntimeEvidence, demanded: Isolation, subject: str, next_step: str
) -> IsolationVerdict:
    """Compare what the probe inside and the backend report with what is demanded.

    Args:
        privileges: what the probe inside read.
        evidence: what the backend reports about the same sandbox.
        demanded: the least isolation.
        subject: the object, for errors (``Pod agents/build-7``).
        next_step: what to do when the runtime is too weak.

    Raises:
        IsolationError: it is weaker than demanded, or shares a namespace of the machine.
    """
    check_runtime(evidence, demanded, subject, next_step)
    inside, outside = privileges.user_namespace, evidence.user_namespace
    verdict = IsolationVerdict(privileges.kernel, evidence, outside and inside)
    if _is_weaker(verdict.level, demanded):
        raise IsolationError(
            f"{subject}: {_described(evidence)}, but the kernel inside is {verdict.kernel}; isolation is {demanded}.",
            demanded=demanded,
            isolation=verdict.as_dict(),
            object=subject,
            next_step="Check the runtime of this handler on the node, and that the image's agent is the collection's.",
        )
    return verdict


def _is_weaker(level: Level, demanded: Isolation) -> bool:
    return _LEVELS.index(level) < _LEVELS.index(_DEMANDS[demanded])


def _described(evidence: RuntimeEvidence) -> str:
    if evidence.problem is not None:
        return evidence.problem
    named = f"RuntimeClass {evidence.runtime_class} has the handler" if evidence.runtime_class else "its runtime is"
    if evidence.handler is not None:
        return f"{named} {evidence.handler}"
    return "it has no RuntimeClass"
