# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Setting, changing and taking away what one acquired sandbox may reach beyond its template's boundary.

Policies add up, so a policy of one sandbox can only open. It is written when the operator's fence stands, when other
policies close the pod, and when their sum with it stays within the request; after that the policies are read once more.
What does not hold then is put back as it was.
"""

from __future__ import annotations

import dataclasses

from ...boundary.reach.reach import Reach
from ...boundary.reach.verdict import Verdict
from ...boundary.world.objects import Pod, World, read_pod
from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import CLAIM, EGRESS_LABEL, Body, ObjectRef
from ...cluster.retry import retry, wait_or_raise
from ...deadline import CLEANUP_SECONDS, Backoff, Deadline
from ...errors import (
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    NotServedError,
    SandboxError,
    UnavailableError,
)
from ..acquire.egress_label import own_policy
from ..errors import BoundaryError
from ..observed.agent_address import find_held, unbound
from ..observed.pod import bind_pod, live_pod
from ..observed.status import named_sandbox
from ..verification.policies import read_live
from ..verification.spec import EgressBoundary
from .fence import POLICY_KINDS, Fence, require_fence
from .policy import is_as_wanted, owner_uids, policy_body, replacing
from .target import EgressTargetError, Holder, holder_of


@dataclasses.dataclass(frozen=True)
class EgressChange:
    """What became of the policy of one sandbox.

    Attributes:
        ref, uid: its claim or direct Sandbox; the uid is None when neither is there.
        policy: the policy, or None when there was nothing to take away.
        before, after: its spec, or None where there is none.
        changed: whether it was written or deleted, or in a dry run would be.
        verdict: what the pod reaches by all policies; None when the policy was taken away.
        fence: the fence behind which it was written; None when it was taken away.
    """

    ref: ObjectRef
    uid: str | None
    policy: ObjectRef | None
    before: Body | None
    after: Body | None
    changed: bool
    verdict: Verdict | None = None
    fence: Fence | None = None


def set_egress(
    client: Client,
    namespace: str,
    name: str,
    egress: EgressBoundary,
    deadline: Deadline,
    *,
    uid: str | None = None,
    dry_run: bool = False,
) -> EgressChange:
    """Let the pod of an acquired sandbox reach what a request says, and prove that it reaches no more.

    Args:
        client: who asks; needs the rules of role ``claimant`` with ``claimant_egress``.
        namespace, name: of the claim or direct Sandbox, which was acquired with ``per_sandbox_egress``.
        egress: what it may reach, and by which engine; its name, profile and ``verify`` do not count.
        deadline: bounds everything.
        uid: the claim's or Sandbox's, to refuse another one of that name; None takes whichever stands there.
        dry_run: let the API server say whether it would take the policy.

    Returns:
        What was written, and the verdict on the sum of all policies, which holds.

    Raises:
        ReplacedError: another one than that of ``uid`` has the name.
        EgressTargetError, GoneError, AcquireError: there is no such sandbox, or it can have no policy of its own.
        FenceError: the operator's fence does not stand; nothing was written.
        BoundaryError: other policies leave the pod open, or open more than the request.
        PolicyError: a policy that selects the pod is malformed.
        ApiError, ApiUnreachableError: the policy could not be written.
    """
    ref, body = find_held(client, namespace, name, deadline, uid=uid)
    holder = holder_of(ref, body, client.server_time.now().latest)
    if holder.sandbox is None:
        raise unbound(ref, body)
    labels = {EGRESS_LABEL: holder.policy}
    pod = bind_pod(client, namespace, holder.sandbox, deadline, labels=labels, need_ip=False)
    fence = require_fence(client, namespace, deadline, engine=egress.engine)
    return _Setting(client, holder, read_pod(pod.body), egress, fence, deadline).run(dry_run=dry_run)


def remove_egress(
    client: Client, namespace: str, name: str, deadline: Deadline, *, uid: str | None = None, dry_run: bool = False
) -> EgressChange:
    """Take away what an acquired sandbox was allowed beyond its template's boundary; what is not there is success.

    Args:
        client, namespace, name, deadline, uid: as for ``set_egress``. The fence need not stand.
        dry_run: delete nothing.

    Raises:
        ReplacedError: another one has the name.
        BoundaryError: no other policy closes the pod, so that this would open it; nothing was changed.
        ApiError, ApiUnreachableError: it could not be deleted.
    """
    try:
        ref, body = find_held(client, namespace, name, deadline, uid=uid)
    except GoneError as error:
        if error.status == 404:
            return EgressChange(CLAIM.ref(namespace, name), uid, None, None, None, changed=False)
        raise
    policy = own_policy(ref, body)
    own = str(body["metadata"]["uid"])
    unchanged = EgressChange(ref, own, None, None, None, changed=False)
    found = [] if policy is None else _own_policies(client, namespace, policy, own, deadline)
    if not found:
        return unchanged
    sandbox = named_sandbox(body) if ref.kind is CLAIM else name
    for engine, live in found:
        target = POLICY_KINDS[engine].ref(namespace, str(policy))
        _raise_if_without_it_open(client, namespace, sandbox, target, engine, deadline)
        if not dry_run:
            _delete(client, target, str(live["metadata"]["uid"]), deadline)
        unchanged = dataclasses.replace(unchanged, policy=target, before=live.get("spec"), changed=True)
    return unchanged


class _Setting:
    """One change of a policy, step by step."""

    def __init__(
        self, client: Client, holder: Holder, pod: Pod, egress: EgressBoundary, fence: Fence, deadline: Deadline
    ) -> None:
        self._client, self._holder, self._pod, self._egress = client, holder, pod, egress
        self._fence, self._deadline = fence, deadline
        self._target = POLICY_KINDS[egress.engine].ref(holder.ref.namespace, holder.policy)
        self._wanted = policy_body(egress.request, egress.engine, holder.policy, holder.ref, holder.uid)
        self._before: Body | None = None
        self._tried = False

    def run(self, *, dry_run: bool) -> EgressChange:
        """Write what is lacking, and prove it before and after; what cannot be proven after is put back."""
        try:
            changed, verdict = self._write(dry_run=dry_run)
            if changed and not dry_run:
                verdict = self._proven_as_it_stands()
        except BaseException as error:
            leftover = self._put_back() if self._tried else None
            if leftover is not None and isinstance(error, SandboxError):
                raise error.replace(message=f"{error.message} {leftover}", leftover=str(self._target)) from error
            raise
        before = (self._before or {}).get("spec")
        after = self._wanted["spec"]
        holder = self._holder
        return EgressChange(holder.ref, holder.uid, self._target, before, after, changed, verdict, self._fence)

    def _write(self, *, dry_run: bool) -> tuple[bool, Verdict]:
        """Make the policy be as wanted; after a lost answer it is read before anything is sent again."""
        backoff = Backoff()
        while True:
            policies = _Policies(self._client, self._target, self._egress.engine, self._deadline)
            if not self._tried:
                self._before = policies.own
            self._raise_if_unmanaged(policies.own)
            policies.raise_if_open(self._pod, "and without them a policy of its own closes nothing")
            verdict = self._within(policies, self._wanted)
            if is_as_wanted(policies.own, self._wanted):
                return self._tried, verdict
            try:
                self._send(policies.own, dry_run=dry_run)
            except (ConflictError, GoneError):
                if not backoff.wait(self._deadline):
                    raise
            except (ApiUnreachableError, UnavailableError) as error:
                wait_or_raise(self._deadline, error, backoff)
            else:
                return True, verdict

    def _send(self, live: Body | None, *, dry_run: bool) -> None:
        self._tried = self._tried or not dry_run
        if live is None:
            self._client.create(self._target, self._wanted, self._deadline, dry_run=dry_run)
        else:
            self._client.patch(self._target, replacing(live, self._wanted), self._deadline, dry_run=dry_run)

    def _proven_as_it_stands(self) -> Verdict:
        policies = _Policies(self._client, self._target, self._egress.engine, self._deadline)
        if policies.own is None or not is_as_wanted(policies.own, self._wanted):
            raise EgressTargetError(
                f"{self._target} was changed by somebody else right after it was written.",
                reason="conflict",
                retryable=True,
                object=str(self._target),
            )
        return self._within(policies, policies.own)

    def _within(self, policies: _Policies, own: Body) -> Verdict:
        """The verdict on all policies, this one included; raises with its evidence when it does not hold."""
        verdict = policies.reach(self._pod, own).within(self._egress.request)
        if verdict.holds:
            return verdict
        first, *rest = [*verdict.findings, *verdict.undecided]
        more = f" (and {len(rest)} more)" if rest else ""
        raise BoundaryError(
            f"The egress of Pod {verdict.subject} would not stay within {verdict.request}: {first}{more}.",
            direction="egress",
            verdict=verdict,
            object=first.policy or str(self._target),
            next_step="Policies add up, so one of its own only opens: let the template's boundary be dns_only or "
            "no_network (role namzu.sandbox.boundary), or ask for what that policy allows.",
        )

    def _raise_if_unmanaged(self, live: Body | None) -> None:
        if live is not None and owner_uids(live) != [self._holder.uid]:
            raise EgressTargetError(
                f"{self._target} does not belong to {self._holder.ref} alone, so it was left as it is.",
                reason="conflict",
                object=str(self._target),
                next_step="Acquire another sandbox: the label of this one names a policy that is not its own.",
            )

    def _put_back(self) -> str | None:
        """Undo what was written, on a clock of its own; what stays and why, or None."""
        deadline = Deadline(CLEANUP_SECONDS, self._client.clock)
        try:
            live = read(self._client, self._target, deadline)
            if not is_as_wanted(live, self._wanted) or is_as_wanted(self._before, self._wanted):
                return None  # not ours, or as it was
            if self._before is None:
                _delete(self._client, self._target, str(live["metadata"]["uid"]), deadline)
            else:
                before = replacing(live, self._before)
                retry(deadline, lambda: self._client.patch(self._target, before, deadline))
        except (GoneError, ConflictError):
            return None
        except SandboxError as error:
            return f"{self._target} could not be put back as it was: {error.message}"
        return None


class _Policies:
    """The policies of a namespace, read once, with the policy of one sandbox apart from the others.

    Attributes:
        own: that policy as it stands, or None.
    """

    def __init__(self, client: Client, target: ObjectRef, engine: str, deadline: Deadline) -> None:
        live = read_live(client, target.namespace, deadline, engine=engine, evidence=False)
        identity = (target.kind.name, target.name)
        apart = [(body["kind"], body["metadata"].get("name")) == identity for body in live.objects]
        self.own = next((body for body, own in zip(live.objects, apart, strict=True) if own), None)
        self._others = [body for body, own in zip(live.objects, apart, strict=True) if not own]
        self._unread, self._engine = live.unread, engine

    def reach(self, pod: Pod, own: Body | None = None) -> Reach:
        """The reach of a pod by the others and, where it is given, by its own."""
        objects = self._others if own is None else [*self._others, own]
        return Reach(World.read(objects, unread=self._unread), pod, self._engine)

    def raise_if_open(self, pod: Pod, why: str) -> None:
        """Raise BoundaryError when no other policy closes the pod's egress."""
        if not self.reach(pod).compiled.egress.isolated:
            raise BoundaryError(
                f"No other policy closes the egress of Pod {pod}, {why}.",
                direction="egress",
                object=f"Pod {pod}",
                next_step="Apply role namzu.sandbox.boundary to its template, with dns_only or no_network.",
            )


def _own_policies(client: Client, namespace: str, name: str, uid: str, deadline: Deadline) -> list[tuple[str, Body]]:
    """The policies of that name, by engine, that belong to the object of that uid."""
    found: list[tuple[str, Body]] = []
    for engine, kind in POLICY_KINDS.items():
        try:
            live = read(client, kind.ref(namespace, name), deadline)
        except (GoneError, NotServedError):
            continue
        except CredentialError as error:
            if engine == "core" or error.status == 401:
                raise
            continue  # where Cilium's may not be read, none was written
        if owner_uids(live) == [uid]:
            found.append((engine, live))
    return found


def _raise_if_without_it_open(
    client: Client, namespace: str, sandbox: str | None, target: ObjectRef, engine: str, deadline: Deadline
) -> None:
    """Raise BoundaryError when a pod would be closed by nothing without this policy."""
    pod = None if sandbox is None else retry(deadline, lambda: live_pod(client, namespace, sandbox, deadline))
    if pod is not None:
        policies = _Policies(client, target, engine, deadline)
        policies.raise_if_open(read_pod(pod.body), f"so it would be open without {target}")


def _delete(client: Client, ref: ObjectRef, uid: str, deadline: Deadline) -> None:
    """Delete that very policy; gone already is success."""
    try:
        retry(deadline, lambda: client.delete(ref, deadline, uid=uid))
    except GoneError:
        return
