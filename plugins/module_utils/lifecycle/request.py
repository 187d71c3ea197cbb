# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for, and what it gets: plain data on both sides of an acquire."""

from __future__ import annotations

import dataclasses
import datetime
import re
import typing as t
import uuid

from ..cluster.errors import InputError
from ..guest.agent import AgentAddress
from ..guest.privileges import Privileges

#: Sources: the reference's defaults for lease, readiness and agent port.
DEFAULT_TTL = 3600.0
DEFAULT_READY_TIMEOUT = 60.0
DEFAULT_AGENT_PORT = 1024

#: A claim that a task did not name. The name is made here, not by the API server, so that it is known before the POST.
TASK_NAME_PREFIX = "namzu-task-"

#: The least lease: below it the controller's own pace decides, not the caller.
MINIMUM_TTL = 10.0

#: Ten years: what is longer is no number of seconds, or a mistake.
MAXIMUM_SECONDS = 3650 * 86400.0

#: DNS-1123 label, as the claim's name becomes the name of a Service and a host name (RFC 1123; 63 characters).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

AddressMode = t.Literal["service", "pod_ip", "port_forward"]


@dataclasses.dataclass(frozen=True)
class AcquireRequest:
    """One sandbox, out of a warm pool or made from a template; exactly one of the two is named.

    Attributes:
        namespace: where pool or template is; the claim or Sandbox is made there.
        warm_pool: the SandboxWarmPool's name, or None.
        template: the SandboxTemplate's name, or None; with it the Sandbox is made directly, and starts cold.
        runtime_class: the RuntimeClass of a direct Sandbox, or None for the template's.
        name: the name of the claim or direct Sandbox, or None for a fresh one.
        labels: labels of that object.
        pod_labels: labels that the controller shall put on the pod; they must be seen on it before it is handed out.
        ttl: seconds until the claim expires by itself (at least 10).
        ready_timeout: seconds for everything from the first request to the probed sandbox (at least 1).
        agent_port: the port of the agent in the pod (1 to 65535).
        agent_address: ``service`` (the sandbox's DNS name), ``pod_ip``, or ``port_forward`` through the API server.
    """

    namespace: str
    warm_pool: str | None = None
    name: str | None = None
    template: str | None = None
    runtime_class: str | None = None
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    pod_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    ttl: float = DEFAULT_TTL
    ready_timeout: float = DEFAULT_READY_TIMEOUT
    agent_port: int = DEFAULT_AGENT_PORT
    agent_address: AddressMode = "service"

    def __post_init__(self) -> None:
        check_name("namespace", self.namespace)
        self._check_path()
        if self.name is not None:
            check_name("name", self.name)
        check_labels("labels", self.labels)
        check_labels("pod_labels", self.pod_labels)
        if not MINIMUM_TTL <= self.ttl <= MAXIMUM_SECONDS:
            raise InputError(f"ttl is {self.ttl:g} s; it must be at least {MINIMUM_TTL:g} s and at most ten years.")
        if not 1 <= self.ready_timeout <= MAXIMUM_SECONDS:
            raise InputError(f"ready_timeout is {self.ready_timeout:g} s; it must be at least 1 s.")
        if not 1 <= self.agent_port <= 65535:
            raise InputError(f"agent.port is {self.agent_port}; it must be between 1 and 65535.")

    def _check_path(self) -> None:
        """Refuse what a path cannot honour; a member of a pool runs already, under what its template says."""
        if (self.warm_pool is None) == (self.template is None):
            raise InputError("Exactly one of warm_pool and template says where the sandbox comes from.")
        if self.warm_pool is not None:
            check_name("warm_pool", self.warm_pool)
        if self.template is not None:
            check_name("template", self.template)
        if self.runtime_class is None:
            return
        check_name("runtime_class", self.runtime_class)
        if self.warm_pool is not None:
            raise InputError(
                f"runtime_class cannot be applied to a sandbox of the warm pool {self.warm_pool}: its members run "
                "already, under the class of their template.",
                next_step="Set runtimeClassName in the pool's template, or acquire from a template.",
            )


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was proven about a sandbox before it was handed out, and what was not.

    Attributes:
        privileges: what the probe inside the pod read about itself.
        egress, ingress: ``unverified`` until a boundary was verified.
    """

    privileges: Privileges
    egress: str = "unverified"
    ingress: str = "unverified"


@dataclasses.dataclass(frozen=True)
class Acquired:
    """A sandbox that is ours, reachable and probed.

    Attributes:
        name: the claim's name; with it the sandbox is released.
        namespace: where claim, Sandbox and pod are.
        uid: the claim's uid.
        sandbox: the bound Sandbox's name (not the claim's, for a warm one).
        pod, pod_ip: the pod that the agent answers in.
        agent: where the agent answers, with its bind token; the token shows in no text form.
        warm: whether it came out of the pool; False for one that was started for this claim.
        labels: the pod's labels as they were when it was verified.
        expires_at: when the claim expires by itself.
        timings: milliseconds a stage: ``claim``, ``ready``, ``bind``, ``probe``, ``total``.
        verdict: what was proven.
        created: whether this acquire made the claim; False when it stood there already.
    """

    name: str
    namespace: str
    uid: str
    sandbox: str
    pod: str
    pod_ip: str | None
    agent: AgentAddress
    warm: bool
    labels: t.Mapping[str, str]
    expires_at: datetime.datetime | None
    timings: t.Mapping[str, float]
    verdict: Verdict
    created: bool


def fresh_name() -> str:
    """A name for a claim that nobody named."""
    return TASK_NAME_PREFIX + str(uuid.uuid4())


def check_name(option: str, value: str) -> None:
    """Refuse a value that cannot be an object's name, before anything is sent.

    Raises:
        InputError: it is not a DNS-1123 label.
    """
    if not _NAME.fullmatch(value):
        raise InputError(
            f"{option} is {value!r}, which cannot name a Kubernetes object.",
            next_step="Use at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends.",
        )


def check_labels(option: str, labels: t.Mapping[str, str]) -> None:
    """Refuse labels that the API server would refuse, before anything is sent.

    Raises:
        InputError: a key or value is no valid label.
    """
    for key, value in labels.items():
        prefix, slash, name = key.rpartition("/")
        key_ok = _LABEL_NAME.fullmatch(name) and (not slash or _LABEL_PREFIX.fullmatch(prefix))
        if not key_ok or not _LABEL_VALUE.fullmatch(value):
            raise InputError(
                f"{option} has {key!r}: {value!r}, which is no valid label.",
                next_step="Keys are [prefix/]name and values are at most 63 letters, digits, '-', '_' and '.'.",
            )
