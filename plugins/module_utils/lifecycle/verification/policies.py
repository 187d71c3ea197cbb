# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What decides about the network of a namespace's pods, read from the API server.

The NetworkPolicies of the namespace are always needed, and with Cilium its own as well: a source that cannot be read is
refused then. The administrators' policies are about the whole cluster, and many who may acquire a sandbox may not read
them: what they are not allowed to read is named as unread, in every verdict. A kind that the cluster does not serve
has no objects.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import typing as t

from ...boundary.errors import QuestionError
from ...cluster.client import Client
from ...cluster.reads import together
from ...cluster.resources import (
    ADMIN_GROUP,
    ADMIN_NETWORK_POLICY,
    BASELINE_POLICY,
    CILIUM_CIDR_GROUP,
    CILIUM_CLUSTERWIDE_POLICY,
    CILIUM_POLICY,
    CLUSTER_NETWORK_POLICY,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    POD,
    SERVICE,
    Body,
    Kind,
)
from ...cluster.retry import retry
from ...deadline import Deadline
from ...errors import CredentialError, NotServedError, SandboxError

#: Seconds that a source which may stay unread can take; what is needed takes as long as the deadline allows.
OPTIONAL_SECONDS = 5.0

#: Lists that are read at the same time unless the caller says otherwise.
THREADS = 4

#: The kinds without which there is no verdict, by engine.
REQUIRED: dict[str, frozenset[str]] = {
    "core": frozenset({NETWORK_POLICY.name}),
    "cilium": frozenset({NETWORK_POLICY.name, CILIUM_POLICY.name}),
}

#: How the first version of the administrators' policies is called; ClusterNetworkPolicy came later and replaced both.
_FIRST_ADMIN_VERSION = ADMIN_NETWORK_POLICY.version
_ADMIN_KINDS = (CLUSTER_NETWORK_POLICY, ADMIN_NETWORK_POLICY, BASELINE_POLICY)
_CLUSTER_KINDS = frozenset({*(kind.name for kind in _ADMIN_KINDS), CILIUM_CLUSTERWIDE_POLICY.name})


@dataclasses.dataclass(frozen=True)
class LiveObjects:
    """What was read.

    Attributes:
        objects: the objects as plain data, as ``World.read`` takes them.
        unread: policies that could not be read, and why, for people.
        admin_versions: the versions of the administrators' policies that the cluster serves; None when nobody knows.
    """

    objects: list[Body]
    unread: tuple[str, ...] = ()
    admin_versions: tuple[str, ...] | None = None

    @property
    def fingerprint(self) -> t.Hashable:
        """Equal for two readings of one cluster exactly when they read the same versions of the same objects."""
        versions = []
        for body in self.objects:
            metadata = body.get("metadata") or {}
            versions.append((body["kind"], metadata.get("uid"), metadata.get("resourceVersion")))
        return (tuple(versions), self.unread)


def read_live(
    client: Client,
    namespace: str,
    deadline: Deadline,
    *,
    engine: str = "core",
    required: c.Collection[str] = (),
    pods: c.Iterable[str] = (),
    evidence: bool = True,
    threads: int = THREADS,
    admin_versions: tuple[str, ...] | None = None,
) -> LiveObjects:
    """Read everything that a verdict on the pods of a namespace rests on.

    Args:
        client: who asks.
        namespace: the judged pods' namespace.
        deadline: bounds all of it.
        engine: ``core`` or ``cilium``.
        required: kinds beyond those of ``REQUIRED`` that must be read, for example ``ClusterNetworkPolicy``.
        pods: namespaces whose pods are read too; findings can then name pods that exist.
        evidence: whether to read also namespaces and nodes that change no verdict but say more in findings. Without it
            the namespaces are read when a policy about the whole cluster is there.
        threads: how many lists are read at once, at least 1.
        admin_versions: what an earlier reading found served, which saves a request. A kind that came since is missed
            then; one that went is noticed.

    Returns:
        The objects, and which policies could not be read.

    Raises:
        CredentialError: a required kind may not be read, or the credential is unknown; names kind, verb and rule.
        SandboxError: a required kind cannot be read for another reason.
        QuestionError: there is no such engine.
    """
    if engine not in REQUIRED:
        raise QuestionError(f"An engine is one of {', '.join(REQUIRED)}, got {engine!r}.")
    reading = _Reading(client, namespace, deadline, REQUIRED[engine] | set(required), admin_versions)
    read = functools.partial
    tasks: list[_Task] = [read(reading.policies, NETWORK_POLICY, namespace), reading.administrators]
    if engine == "cilium":
        tasks += [read(reading.policies, CILIUM_POLICY, namespace), read(reading.policies, CILIUM_CLUSTERWIDE_POLICY)]
    tasks += [read(reading.others, POD, place) for place in pods]
    if evidence:
        tasks += [read(reading.others, NAMESPACE), read(reading.others, NODE)]
    objects = _gather(tasks, threads)
    tasks = []
    if not evidence and any(body["kind"] in _CLUSTER_KINDS for body in objects):
        tasks.append(read(reading.others, NAMESPACE))
    if engine == "cilium" and _mentions(objects, "cidrGroup"):
        tasks.append(reading.cidr_groups)
    if engine == "cilium" and _mentions(objects, "toServices"):
        tasks.append(read(reading.others, SERVICE))
    objects += _gather(tasks, threads)
    return LiveObjects(objects, tuple(sorted(set(reading.unread))), reading.admin_versions)


#: Reads some objects.
_Task = c.Callable[[], list[Body]]
_Read = t.TypeVar("_Read")


class _Reading:
    """One reading of the cluster; its methods may run at the same time.

    Attributes:
        unread: what could not be read.
        admin_versions: the served versions of the administrators' policies, once they are known.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        deadline: Deadline,
        required: c.Set[str],
        admin_versions: tuple[str, ...] | None,
    ) -> None:
        self.unread: list[str] = []
        self.admin_versions = admin_versions
        self._client = client
        self._namespace = namespace
        self._deadline = deadline
        self._required = required

    def policies(self, kind: Kind, namespace: str | None = None) -> list[Body]:
        """The policies of a kind; none when the cluster does not serve it, or when they may stay unread."""
        return self._tried((kind,), lambda limit: self._list(kind, namespace, limit)) or []

    def others(self, kind: Kind, namespace: str | None = None) -> list[Body]:
        """The objects of a kind that is no policy; without them a verdict is as sound, and says less."""
        limit = self._limit(OPTIONAL_SECONDS)
        try:
            return retry(limit, lambda: self._list(kind, namespace, limit))
        except SandboxError as error:
            _raise_if_unknown_credential(error)
            return []

    def administrators(self) -> list[Body]:
        """The administrators' policies, of the versions that the cluster serves."""
        if self.admin_versions is not None:
            found = self._of_versions(self.admin_versions)
            if found is not None:
                return found
        asked = self._tried(_ADMIN_KINDS, lambda limit: [tuple(self._client.served_versions(ADMIN_GROUP, limit))])
        self.admin_versions = asked[0] if asked else None
        return self._of_versions(self.admin_versions or (), partly=True) or []

    def _of_versions(self, versions: c.Sequence[str], *, partly: bool = False) -> list[Body] | None:
        """The policies of some versions; None when one is not served after all, unless a part will do."""
        newer = [version for version in versions if version != _FIRST_ADMIN_VERSION][:1]
        kinds = [dataclasses.replace(CLUSTER_NETWORK_POLICY, version=version) for version in newer]
        if _FIRST_ADMIN_VERSION in versions:
            kinds += [ADMIN_NETWORK_POLICY, BASELINE_POLICY]
        found: list[Body] = []
        for kind in kinds:
            read = self._tried((kind,), functools.partial(self._list, kind, None))
            if read is None and not partly:
                return None
            found += read or []
        return found

    def cidr_groups(self) -> list[Body]:
        """The groups of addresses that Cilium's policies name; before Cilium 1.18 they were v2alpha1."""
        before = dataclasses.replace(CILIUM_CIDR_GROUP, version="v2alpha1")
        return self.policies(CILIUM_CIDR_GROUP) or self.policies(before)

    def _tried(self, kinds: c.Sequence[Kind], read: c.Callable[[Deadline], list[_Read]]) -> list[_Read] | None:
        """What is read of some kinds, nothing of what may stay unread; None for what is not served."""
        needed = [kind for kind in kinds if kind.name in self._required]
        limit = self._deadline if needed else self._limit(OPTIONAL_SECONDS)
        try:
            return retry(limit, lambda: read(limit))
        except SandboxError as error:
            _raise_if_unknown_credential(error)
            if needed:
                raise _refused(needed[0], self._namespace, error) from error
            if isinstance(error, NotServedError):
                return None
            self.unread.extend(_unread(kind, error) for kind in kinds)
            return []

    def _list(self, kind: Kind, namespace: str | None, limit: Deadline) -> list[Body]:
        # What is in a list says neither its kind nor its version.
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        return [{**item, **head} for item in self._client.list(kind, namespace, deadline=limit)["items"]]

    def _limit(self, seconds: float) -> Deadline:
        return self._deadline.child(seconds)


def _gather(tasks: c.Sequence[_Task], threads: int) -> list[Body]:
    """What all tasks read, in their order."""
    return [body for bodies in together(tasks, threads) for body in bodies]


def _mentions(node: t.Any, field: str) -> bool:
    """Whether a field whose name begins like this is anywhere in Cilium's policies among the objects."""
    if isinstance(node, dict):
        return any(str(key).startswith(field) or _mentions(value, field) for key, value in node.items())
    if isinstance(node, list):
        return any(_mentions(item, field) for item in node)
    return False


def _raise_if_unknown_credential(error: SandboxError) -> None:
    """A credential that nobody knows is no matter of one source."""
    if isinstance(error, CredentialError) and error.status == 401:
        raise error


def _unread(kind: Kind, error: SandboxError) -> str:
    if isinstance(error, CredentialError):
        return f"{kind.name} (not allowed: list {kind.plural}.{kind.group})"
    return f"{kind.name} ({error.message.rstrip('.')})"


def _refused(kind: Kind, namespace: str, error: SandboxError) -> SandboxError:
    """The error of a source that is needed and cannot be read."""
    text = f"No boundary of {namespace} can be proven, because the {kind.name} objects cannot be read: {error.message}"
    step = f"Grant list on {kind.plural}.{kind.group} (role namzu.sandbox.claimant), or ask for no verification."
    if isinstance(error, NotServedError):
        step = f"The cluster does not serve {kind.name}: check engine."
    if isinstance(error, (CredentialError, NotServedError)):
        return error.replace(message=text, next_step=step)
    return error.replace(message=text)
