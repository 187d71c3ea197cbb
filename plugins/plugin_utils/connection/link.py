# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a sandbox's name to its agent: the same pod for the whole run, unless it may be followed."""

from __future__ import annotations

import typing as t

from ...module_utils.deadline import SYSTEM_CLOCK, Clock, Deadline
from ...module_utils.errors import ApiUnreachableError, GoneError, NotServedError, SandboxError
from ...module_utils.front.options.backend import KUBERNETES
from ...module_utils.guest.agent import Agent, AgentAddress
from ...module_utils.guest.errors import GuestTimeoutError, GuestUnauthorizedError, GuestUnreachableError
from ...module_utils.lifecycle.errors import AcquireError, ReplacedError
from .cache import Location, Memory
from .target import Target

if t.TYPE_CHECKING:
    import socket

    from ...module_utils.cluster.client import Client

#: Seconds, at most a third of ``connect_timeout``, after which an agent that has not answered is looked for anew: a
#: packet to an address that has no pod any more may get no reply at all.
FIRST_SECONDS = 3.0

#: Seconds between two looks for the pod that takes the place of one that has ended.
FOLLOW_SECONDS = 0.5

#: Seconds after which an agent is asked whether it is there before work is sent: work has no bound of its own, and an
#: address that is nobody's any more is waited on for minutes.
HEARD_SECONDS = 10.0

#: What it looks like when no agent, or another one, is where it was. The last two come from a port-forward.
_ELSEWHERE = (GuestUnreachableError, GuestTimeoutError, GuestUnauthorizedError, GoneError, ApiUnreachableError)

Result = t.TypeVar("Result")


class Link:
    """The way from one worker process to one agent."""

    def __init__(
        self, target: Target, memory: Memory, environ: t.Mapping[str, str], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """Nothing is read or sent yet.

        Args:
            target: which sandbox.
            memory: what other processes of this run know about it.
            environ: the environment that access is looked for in.
        """
        self._target = target
        self._memory = memory
        self._environ = environ
        self._client: Client | None = None
        self._clock = clock
        self._agent: Agent | None = None
        self._heard = 0.0
        #: Whether the agent gave no answer where it was: then it is looked for before it is waited for again.
        self._silent = False

    def close(self) -> None:
        """Close what is open towards the API server."""
        self._agent = None
        if self._client is not None:
            self._client.close()
            self._client = None

    def open(self) -> Agent:
        """The agent, which has just answered.

        Raises:
            ReplacedError: the pod, or the object that holds it, is another one now and must not be followed.
            SandboxError: there is no such sandbox, it is not ready, or its agent does not answer.
        """
        deadline = Deadline(self._target.connect_timeout, self._clock)
        known = self._memory.read()
        location = known if known and not self._silent else self._look_anew(known, deadline)
        try:
            agent = self._greet(location, Deadline(min(deadline.remaining() / 3, FIRST_SECONDS), self._clock))
        except _ELSEWHERE:
            location = self._look_anew(known, deadline)
            agent = self._greet(location, deadline)
        self._remember(known, location)
        self._agent, self._heard, self._silent = agent, self._clock.monotonic(), False
        return agent

    def call(self, operation: t.Callable[[Agent], Result]) -> Result:
        """Do something with the agent; when that never arrived because the agent is elsewhere now, do it there.

        Raises:
            As ``open``, and what ``operation`` raises.
        """
        try:
            result = operation(self._fresh_agent())
            self._heard = self._clock.monotonic()
            return result
        except _ELSEWHERE as error:
            if isinstance(error, (GuestUnreachableError, GuestTimeoutError)) and not error.retryable:
                raise
            self._silent = isinstance(error, GuestTimeoutError)
        return operation(self.open())

    def _fresh_agent(self) -> Agent:
        heard = self._clock.monotonic() - self._heard < HEARD_SECONDS
        return self._agent if self._agent is not None and heard else self.open()

    def _greet(self, location: Location, deadline: Deadline) -> Agent:
        """The agent at a location; it has said that it is the one of that pod."""
        dial = self._through_the_api(location) if self._target.mode == "port_forward" else None
        address = AgentAddress(location.host, location.port, location.token, dial=dial)
        agent = Agent(address, subject=f"{self._target} in {location.namespace}", heartbeat=self._target.heartbeat)
        agent.healthz(deadline)
        return agent

    def _through_the_api(self, location: Location) -> t.Callable[[Deadline], socket.socket]:
        from ...module_utils.cluster.portforward import open_port
        from ...module_utils.cluster.resources import POD

        pod = POD.ref(location.namespace, location.pod)
        return lambda deadline: open_port(self._api(), pod, location.port, deadline)

    def _look_anew(self, known: Location | None, deadline: Deadline) -> Location:
        ended = self._how_it_ended(known, deadline) if known is not None else None
        if known is not None and ended is not None and not self._target.follow:
            raise self._replaced(known, ended)
        while True:
            try:
                latest = self._locate(deadline)
            except AcquireError:
                # Another pod is on its way, which the controller may not have said yet.
                if ended is None or deadline.remaining() <= FOLLOW_SECONDS:
                    raise
                deadline.sleep(FOLLOW_SECONDS)
            else:
                self._raise_if_other_pod(known, latest)
                return latest

    def _how_it_ended(self, known: Location, deadline: Deadline) -> str | None:
        """What became of the pod, None while it stays; the controller may say that its container ended by itself."""
        from ...module_utils.cluster.reads import read
        from ...module_utils.cluster.resources import POD

        try:
            metadata = read(self._api(), POD.ref(known.namespace, known.pod), deadline)["metadata"]
        except GoneError:
            return "is gone"
        if metadata["uid"] != known.token:
            return "is gone; another one of that name stands in its place"
        return "is being deleted" if metadata.get("deletionTimestamp") else None

    def _locate(self, deadline: Deadline) -> Location:
        from ...module_utils.lifecycle.observed.agent_address import locate

        target, client = self._target, self._api()
        namespace = target.namespace or client.access.namespace or "default"
        name = _object_name(target, namespace)
        try:
            found = locate(
                client, namespace, name, port=target.port, mode=target.mode, deadline=deadline, uid=target.uid
            )
        except NotServedError:
            raise
        except GoneError:
            if target.workspace is None:
                raise
            raise _no_workspace(target.workspace, namespace) from None
        return Location(
            namespace, found.sandbox, found.pod, found.agent.host, found.agent.port, token=found.agent.token
        )

    def _api(self) -> Client:
        """The client of the API server, which costs more to import than all else here."""
        if self._client is None:
            from ...module_utils.cluster.auth.access import resolve_access
            from ...module_utils.cluster.client import Client

            bound = min(self._target.connect_timeout, self._target.request_timeout)
            access = resolve_access(self._target.access, self._environ, seconds=bound)
            self._client = Client(access, request_timeout=self._target.request_timeout)
        return self._client

    def _remember(self, known: Location | None, location: Location) -> None:
        if known is None:
            self._raise_if_other_pod(self._memory.keep(location), location)
        elif known != location:
            self._memory.replace(location)

    def _raise_if_other_pod(self, known: Location | None, latest: Location) -> None:
        if known is None or known.token == latest.token or self._target.follow:
            return
        another = "another one of that name" if latest.pod == known.pod else f"another one ({latest.pod})"
        raise self._replaced(known, f"is gone; {another} stands in its place")

    def _replaced(self, known: Location, what: str) -> ReplacedError:
        return ReplacedError(
            f"Pod {known.namespace}/{known.pod}, which this run used for {self._target}, {what}. "
            "What it had in memory, /tmp and its processes is lost.",
            object=f"Pod {known.namespace}/{known.pod}",
            next_step="If another will do, set ansible_sandbox_follow: true, or go on after meta: reset_connection.",
        )


def link_to(target: Target, memory: Memory, environ: t.Mapping[str, str]) -> Link:
    """The way to a sandbox of the target's backend; nothing is read or sent yet."""
    if target.backend == KUBERNETES:
        return Link(target, memory, environ)
    from .container_link import ContainerLink

    return ContainerLink(target, memory, environ)


def _no_workspace(workspace: str, namespace: str) -> SandboxError:
    from ...module_utils.workspace.errors import not_found
    from ...module_utils.workspace.names import workspace_ref

    return not_found(workspace_ref(namespace, workspace), workspace)


def _object_name(target: Target, namespace: str) -> str:
    """The name of the claim or Sandbox, checked before anything is asked."""
    from ...module_utils.lifecycle.names import check_name

    if target.namespace is not None:
        check_name("namespace (ansible_sandbox_namespace)", target.namespace)
    if target.workspace is not None:
        from ...module_utils.workspace.names import workspace_ref

        return workspace_ref(namespace, target.workspace).name
    check_name("The name of the sandbox (ansible_sandbox_name, ansible_host or the host's own)", target.name)
    return target.name
