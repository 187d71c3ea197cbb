# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Proving the boundary of a sandbox before it is handed out: the policies of its pod, against what was asked for.

The policies are read while the controller serves the claim, once for all sandboxes of a batch. A verdict rests on a
reading that began at most ``MAXIMUM_AGE`` before; an older one is read anew. What the process remembers beyond that is
work, not answers: policies that were read again in the very same versions are not parsed and compared again.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import typing as t

from ...boundary.policies.named import look_for, policy_labels, policy_name
from ...boundary.reach.reach import Reach, load_engine
from ...boundary.reach.verdict import Verdict
from ...boundary.world.objects import Pod, World, read_pod
from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import POD, TEMPLATE_LABEL, WARM_POOL, Body
from ...deadline import Deadline
from ..errors import BoundaryError
from ..observed.pod import POLL
from .policies import read_live
from .spec import EgressBoundary, IngressBoundary, Proven, Unverified, one_engine

#: Seconds after which a reading of the policies is too old for a verdict.
MAXIMUM_AGE = 5.0

#: Seconds for which the process remembers parsed policies and served versions, and how many of each.
KEPT_SECONDS = 300.0
MOST_KEPT = 8

#: Labels that a member of a pool loses when the controller gives it the labels of its new owner and, anew, those of its
#: template (agent-sandbox v0.5.6, measured). Until they are gone, what policies select it is not decided.
POOL_LABELS = frozenset({"agents.x-k8s.io/warm-pool-sandbox", "agents.x-k8s.io/created-by"})

#: Seconds for which that is waited for; usually it is over before the claim is ready.
ADOPTION_SECONDS = 1.0

_Value = t.TypeVar("_Value")


class BoundaryRequest(t.Protocol):
    """The part of a request that a verification reads."""

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""

    @property
    def egress(self) -> EgressBoundary | None:
        """What the pod may reach, or None when nothing is asked."""

    @property
    def ingress(self) -> IngressBoundary | Unverified:
        """Who may reach the agent."""

    @property
    def agent_port(self) -> int:
        """The port of the agent in the pod (1 to 65535)."""

    @property
    def template(self) -> str | None:
        """The SandboxTemplate of the request, or None."""

    @property
    def warm_pool(self) -> str | None:
        """The SandboxWarmPool of the request, or None."""


class Verification:
    """Proves the boundaries of the sandboxes of one request; any thread may use it.

    As a context manager it ends with the block a reading that nobody needs any more.

    Args:
        client: who asks.
        request: its ``egress``, ``ingress``, namespace and agent port.
        deadline: bounds the reading.
    """

    def __init__(self, client: Client, request: BoundaryRequest, deadline: Deadline) -> None:
        self._client = client
        self._request = request
        self._deadline = deadline
        self._engine = one_engine(request.egress, request.ingress)
        self._lock = threading.Lock()
        self._reading: _Reading | None = None

    @property
    def asked(self) -> bool:
        """Whether there is anything to prove."""
        return self._request.egress is not None or isinstance(self._request.ingress, IngressBoundary)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._reading is not None:
            self._reading.leave()

    def begin(self) -> None:
        """Begin to read the policies, unless a reading is under way or fresh."""
        if self.asked:
            self._latest(again=True)

    def prove(self, body: Body) -> Proven:
        """Prove the boundary of a pod.

        Args:
            body: the pod as it stands, or as it will.

        Returns:
            The verdicts; both hold.

        Raises:
            BoundaryError: the pod may reach, or be reached by, more than was asked for.
            PolicyError: a policy that selects the pod is malformed.
            SandboxError: a policy source that is needed cannot be read.
        """
        if not self.asked:
            return Proven()
        reading = self._latest()
        kept = reading.result()
        pod = read_pod(self._adopted(body))
        with kept.lock:
            proven = self._proven(kept.world, pod)
            if POOL_LABELS & pod.labels.keys():
                later = {key: value for key, value in pod.labels.items() if key not in POOL_LABELS}
                self._proven(kept.world, dataclasses.replace(pod, labels=later))
        return proven

    def _adopted(self, body: Body) -> Body:
        """The pod once it has lost what marks the member of a pool, or as it was last seen."""
        limit = self._deadline.child(ADOPTION_SECONDS)
        metadata = body["metadata"]
        ref = POD.ref(self._request.namespace, str(metadata["name"]))
        while POOL_LABELS & (body["metadata"].get("labels") or {}).keys() and not limit.expired:
            limit.sleep(POLL)
            latest = read(self._client, ref, self._deadline)
            if latest["metadata"].get("uid") != metadata.get("uid"):
                break
            body = latest
        return body

    def _latest(self, *, again: bool = False) -> _Reading:
        """The latest reading, or a new one when that is too old, or has failed and shall be tried again."""
        with self._lock:
            latest = self._reading
            if latest is None or latest.age > MAXIMUM_AGE or (again and latest.failed):
                latest = _Reading(self._client, self._request.namespace, self._engine, self._deadline)
                self._reading = latest
        return latest

    def _proven(self, world: World, pod: Pod) -> Proven:
        reach = Reach(world, pod, self._engine)
        request = self._request
        policy = egress = ingress = None
        if request.egress is not None:
            policy = self._named(reach, request.egress)
            if request.egress.verify == "union":
                egress = _held(reach.within(request.egress.request))
        if isinstance(request.ingress, IngressBoundary):
            ingress = _held(reach.ingress_verdict(request.agent_port, request.ingress.peers))
        return Proven(egress, ingress, policy)

    def _named(self, reach: Reach, egress: EgressBoundary) -> str:
        """The policy that grants the request: it is there, it is the translation, and it selects the pod."""
        template = self._request.template or reach.pod.labels.get(TEMPLATE_LABEL) or self._template_of_pool()
        name = egress.name or policy_name(template, egress.profile)
        named = look_for(reach, egress.request, name, policy_labels(template, egress.profile))
        if named.holds:
            return named.policy
        raise BoundaryError(
            f"{named.policy} {named.fault}.", direction="egress", object=named.policy, next_step=named.next_step
        )

    def _template_of_pool(self) -> str:
        """The template of the pool, for a pod that does not carry its name; one read."""
        ref = WARM_POOL.ref(self._request.namespace, str(self._request.warm_pool))
        spec = read(self._client, ref, self._deadline).get("spec") or {}
        return str((spec.get("sandboxTemplateRef") or {}).get("name"))


def _held(verdict: Verdict) -> Verdict:
    """A verdict that holds; raises BoundaryError with its evidence otherwise."""
    if verdict.holds:
        return verdict
    found = [*verdict.findings, *verdict.undecided]
    rest = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    first = found[0]
    step = "Remove or narrow that policy, or ask for what it allows."
    if first.policy is None:
        step = "Apply role namzu.sandbox.boundary: no policy closes this direction for the pod."
    raise BoundaryError(
        f"The {verdict.direction} of Pod {verdict.subject} does not stay within {verdict.request}: {first}{rest}.",
        direction=verdict.direction,
        verdict=verdict,
        object=first.policy or f"Pod {verdict.subject}",
        next_step=step,
    )


class _Reading:
    """One reading of the policies, in a thread of its own.

    Attributes:
        failed: whether it has ended with an error.
    """

    def __init__(self, client: Client, namespace: str, engine: str, deadline: Deadline) -> None:
        self.failed = False
        self._client = client
        self._namespace = namespace
        self._engine = engine
        self._deadline = deadline
        self._limit = Deadline(deadline.remaining(), client.clock)
        self._done = threading.Event()
        self._kept: _Kept | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="namzu-policies", daemon=True).start()

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return self._limit.elapsed()

    def result(self) -> _Kept:
        """What was read; raises what kept it from being read."""
        self._done.wait()
        if self._kept is None:
            raise t.cast("BaseException", self._error)
        return self._kept

    def leave(self) -> None:
        """Cut it, and wait until its thread has left the client."""
        if not self._done.is_set():
            self._limit.cancel()
            self._done.wait(1.0)

    def _run(self) -> None:
        try:
            with self._deadline.cancellation.cutting(self._limit.cancel):
                self._kept = self._read()
        except BaseException as error:  # noqa: BLE001 - whoever needs it gets it raised
            self._error, self.failed = error, True
        finally:
            self._done.set()

    def _read(self) -> _Kept:
        server, now = self._client.access.server, self._client.clock.monotonic()
        load_engine(self._engine)
        live = read_live(
            self._client,
            self._namespace,
            self._limit,
            engine=self._engine,
            evidence=False,
            threads=1,
            admin_versions=_VERSIONS.get(server, now),
        )
        if live.admin_versions is not None and _VERSIONS.get(server, now) is None:
            _VERSIONS.put(server, live.admin_versions, now)
        key = (server, self._namespace, self._engine, live.fingerprint)
        return _WORLDS.get(key, now) or _WORLDS.put(key, _Kept(World.read(live.objects, unread=live.unread)), now)


@dataclasses.dataclass(frozen=True)
class _Kept:
    """Policies that were read, with the work that was done on them."""

    world: World
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class _Memory(t.Generic[_Value]):
    """What a process remembers for some time, by key; the least recently used goes first. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: collections.OrderedDict[t.Hashable, tuple[float, _Value]] = collections.OrderedDict()

    def get(self, key: t.Hashable, now: float) -> _Value | None:
        with self._lock:
            since, value = self._entries.get(key, (now, None))
            if value is None or not since <= now < since + KEPT_SECONDS:
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: t.Hashable, value: _Value, now: float) -> _Value:
        with self._lock:
            self._entries[key] = (now, value)
            self._entries.move_to_end(key)
            while len(self._entries) > MOST_KEPT:
                self._entries.popitem(last=False)
        return value


#: Only the same versions of the same objects of one server share a world.
_WORLDS: _Memory[_Kept] = _Memory()
#: Which of the administrators' policies a server serves: new kinds come by an installation, not by a policy.
_VERSIONS: _Memory[tuple[str, ...]] = _Memory()
