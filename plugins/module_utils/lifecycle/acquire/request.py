# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for, and what it gets: plain data on both sides of an acquire."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ...cluster.resources import EGRESS_LABEL
from ...errors import InputError
from ...guest.agent import AgentAddress
from ...guest.isolation import Isolation, IsolationVerdict, check_isolation_option
from ...guest.privileges import Privileges
from ..durations import seconds
from ..names import check_choice, check_labels, check_name, check_port
from ..observed.agent_address import DEFAULT_AGENT_PORT, AddressMode
from ..verification.network_probe import NetworkProbe
from ..verification.spec import EgressBoundary, IngressBoundary, Proven, Unverified, one_engine

#: Sources: the reference's defaults for lease, readiness and agent port.
DEFAULT_TTL = 3600.0
DEFAULT_READY_TIMEOUT = 60.0

#: The least lease: below it the controller's own pace decides, not the caller.
MINIMUM_TTL = 10.0

OnStale = t.Literal["ignore", "report", "refuse"]


@dataclasses.dataclass(frozen=True)
class AcquireRequest:
    """One sandbox, out of a warm pool or made from a template; exactly one of the two is named.

    Durations are numbers of seconds, or strings as in a task (``10m``); ``egress`` and ``ingress`` also accept the
    strings and mappings of a task. Everything is checked here, before anything is sent (InputError).

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
        wait_for_template: wait within ``ready_timeout`` for a template that is not there yet, instead of failing.
        on_stale: what becomes of a sandbox that is older than its template: ``ignore`` does not look, ``report`` says
            so, ``refuse`` releases it; the latter two cost two reads.
        egress: what it may reach, and how that is proven; None asks nothing of it.
        ingress: who may reach its agent; ``unverified`` asks nothing of it.
        network_probe: whether the egress is also tried from inside.
        isolation: the least isolation from the node's kernel: ``any``, ``gvisor`` or ``vm``.
        per_sandbox_egress: whether the pod is labelled for a policy of its own, which ``sandbox_egress`` writes later.
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
    wait_for_template: bool = False
    on_stale: OnStale = "ignore"
    egress: EgressBoundary | None = None
    ingress: IngressBoundary | Unverified = dataclasses.field(default_factory=IngressBoundary)
    network_probe: bool = False
    per_sandbox_egress: bool = False
    isolation: Isolation = "any"

    def __post_init__(self) -> None:
        self._read_as_in_a_task()
        check_labels("pod_labels", self.pod_labels)
        self._check_boundary()
        check_name("namespace", self.namespace)
        self._check_path()
        if self.name is not None:
            check_name("name", self.name)
        check_labels("labels", self.labels)
        check_labels("pod_labels", self.pod_labels)
        check_port("agent.port", self.agent_port)
        check_choice("agent.address", self.agent_address, t.get_args(AddressMode))
        check_choice("on_stale", self.on_stale, t.get_args(OnStale))
        check_isolation_option(self.isolation)

    def _read_as_in_a_task(self) -> None:
        """Take durations and boundaries also in the form that a task has: ``10m``, ``no_network``, a mapping."""
        object.__setattr__(self, "ttl", seconds("ttl", self.ttl, MINIMUM_TTL))
        object.__setattr__(self, "ready_timeout", seconds("ready_timeout", self.ready_timeout, 1.0))
        if self.egress is not None:
            object.__setattr__(self, "egress", EgressBoundary.of(self.egress))
        object.__setattr__(self, "ingress", IngressBoundary.of(self.ingress))

    def _check_boundary(self) -> None:
        """Refuse what cannot be proven; the label of a profile becomes one of the pod's."""
        one_engine(self.egress, self.ingress)
        if self.network_probe and self.egress is None:
            raise InputError(
                "network_probe tries what egress opens and closes, and there is no egress.",
                next_step="Say in egress what the sandbox may reach.",
            )
        if EGRESS_LABEL in self.pod_labels:
            raise InputError(
                f"pod_labels has {EGRESS_LABEL}, by which the policy of one sandbox selects its pod.",
                next_step="Leave it out; per_sandbox_egress sets it.",
            )
        for key, value in (self.egress.pod_labels if self.egress else {}).items():
            if self.pod_labels.get(key, value) != value:
                raise InputError(
                    f"pod_labels has {key}={self.pod_labels[key]}, and egress.profile needs {key}={value}."
                )
            object.__setattr__(self, "pod_labels", {**self.pod_labels, key: value})

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
        boundary: what was proven about its boundary.
        network: what was tried from inside, or None.
        isolation: how it is isolated from the kernel of its node.
    """

    privileges: Privileges
    boundary: Proven = dataclasses.field(default_factory=Proven)
    network: NetworkProbe | None = None
    isolation: IsolationVerdict | None = None


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
        stale: whether it is older than its template; None when nobody asked.
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
    stale: bool | None = None
