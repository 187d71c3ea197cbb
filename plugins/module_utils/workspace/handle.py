# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A workspace for Python programs: one object that keeps to the disk that it was opened on."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ..cluster.client import Client
from ..cluster.resources import ObjectRef
from ..deadline import Deadline
from ..errors import SandboxError
from ..guest.agent import Agent
from ..guest.errors import GuestError, GuestTimeoutError, GuestUnauthorizedError, GuestUnreachableError
from ..guest.execution.stream import Execution
from ..guest.quiescence import FlushReport, QuiesceReport
from ..lifecycle.lease.keeper import Keeper
from ..lifecycle.lease.registry import Entry
from ..lifecycle.observed.agent_address import FIRST_PROBE_FRACTION
from .delete import DeleteRequest, delete_workspace
from .errors import WorkspaceGuestGoneError, WorkspaceReplacedError
from .fencing import SUSPENDED, Fence, mode_of
from .flush import flush, quiesce, running_guest, suspended
from .identity import GuestRestart, Identity, identity_of, restart_between
from .lease import workspace_lease_of
from .manifest import raise_if_unmanaged
from .open import open_workspace
from .request import OnFlushFailure, Opened, Suspended, SuspendRequest, WorkspaceRequest
from .suspend import suspend_workspace

#: Seconds for finding out where the guest is, when a call to it has failed.
LOOK_SECONDS = 30.0

OnRestart = t.Callable[[GuestRestart], None]


class Workspace:
    """A workspace that was opened, and its guest. Not for several threads at once.

    Everything that it does is about the Sandbox that it was opened on: another one under the name is refused, never
    followed (WorkspaceReplacedError). Another pod of the same Sandbox is followed, and ``on_restart`` is told.

    As a context manager it has its ``ttl`` put off for as long as the block runs, and suspends the workspace at its end
    after a flush, if it was this object that has started it; one that ran before runs on. An error of the block is
    never hidden by one of the suspend; that becomes a note on it.

    Attributes:
        opened: what the last start found out.
        identity: the guest as it was last seen.
        kept: its lease as the keeper has it, inside a block and with a ttl; else None.
    """

    def __init__(
        self,
        client: Client,
        request: WorkspaceRequest,
        opened: Opened,
        on_restart: OnRestart | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.opened = opened
        self.identity: Identity = opened.identity
        self._client = client
        self._request = request
        self._on_restart = on_restart
        self._agent: Agent | None = Agent(opened.agent, subject=self._subject)
        self.kept: Entry | None = None
        self._keeper = keeper
        self._keeping: Keeper | None = None
        self._block = contextlib.ExitStack()
        self._started = opened.origin != "adopted"

    @classmethod
    def open(
        cls,
        client: Client,
        request: WorkspaceRequest,
        on_restart: OnRestart | None = None,
        keeper: Keeper | None = None,
    ) -> t.Self:
        """Have a workspace run, and hold it; see ``open_workspace``.

        Args:
            on_restart: called with a GuestRestart whenever another guest is found to answer.
            keeper: puts off its ttl inside a block, beside those of others; None for one of its own, and a thread more.
        """
        return cls(client, request, open_workspace(client, request), on_restart, keeper)

    def __enter__(self) -> t.Self:
        if self._request.ttl is not None:
            self._keeping = self._keeper or self._block.enter_context(Keeper(clock=self._client.clock))
            self._block.callback(self._keeping.let_go, self.opened.uid)
            self._keep()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._block.close()
        self._keeping = None
        if self._agent is None or not self._started:
            return
        try:
            self.suspend(flush=self._request.flush, on_flush_failure=self._request.on_flush_failure)
        except SandboxError as failure:
            if error is None:
                raise
            error.add_note(f"{self.ref} could not be suspended: {failure}")

    def raise_if_lost(self) -> None:
        """Do nothing while its ttl is put off, or while there is none.

        Raises:
            LeaseLostError: it has passed, the workspace is gone, or another holder has it (``reason``).
        """
        if self.kept is not None and self.kept.lost is not None:
            raise self.kept.lost

    def _keep(self) -> None:
        if self._keeping is not None:
            self.kept = self._keeping.hold(self._client, workspace_lease_of(self.opened, self._request))

    @property
    def ref(self) -> ObjectRef:
        """Its Sandbox."""
        return self._request.ref

    @property
    def agent(self) -> Agent:
        """The agent of its guest as it was last seen.

        Raises:
            WorkspaceSuspendedError: it is suspended.
        """
        if self._agent is None:
            raise suspended(self.ref)
        return self._agent

    def execute(self, argv: t.Sequence[str], *, deadline: Deadline, **options: t.Any) -> Execution:
        """Run a program in it, as ``Agent.execute`` does; a new pod is found by itself as long as nothing was sent.

        Raises:
            WorkspaceSuspendedError: it is suspended.
            WorkspaceReplacedError: another Sandbox, or none, stands under its name.
            WorkspaceGuestGoneError: the program had been sent, and its guest is gone: what became of it is not known.
            GuestError: as ``Agent.execute``, from a guest that is the same as before.
        """
        self._reach(deadline)
        before = self.identity
        try:
            return self.agent.execute(argv, deadline=deadline, **options)
        except (GuestUnreachableError, GuestTimeoutError, GuestUnauthorizedError) as error:
            after = self._sight()
            unsent = _was_refused_unsent(error)
            is_same = after is not None and restart_between(before, after) is None
            if is_same or (unsent and after is None):
                raise
            if not unsent:
                raise self._gone(argv[0], error, before, after) from error
        return self.agent.execute(argv, deadline=deadline, **options)

    def _reach(self, deadline: Deadline) -> None:
        """Find out, in a share of the time, whether the guest is where it was; where no pod is, none may refuse."""
        limit = Deadline(
            deadline.remaining() * FIRST_PROBE_FRACTION, deadline.clock, cancellation=deadline.cancellation
        )
        try:
            self.agent.healthz(limit)
        except GuestError:
            self._sight()  # when it is the same one after all, the call itself says what is wrong with it

    def _gone(
        self, program: str, error: GuestError, before: Identity, after: Identity | None
    ) -> WorkspaceGuestGoneError:
        return WorkspaceGuestGoneError(
            f"The guest of {self.ref} went away while {program} ran in it: {error.message}",
            before=before.as_dict(),
            after=None if after is None else after.as_dict(),
            object=str(self.ref),
            next_step="Look at the disk for what it had done, and run it again if that is safe.",
        )

    def look(self) -> GuestRestart | None:
        """Look whether the same guest still answers, and take the one that does.

        Returns:
            The notice that ``on_restart`` was given as well; None when it is the same guest, or none runs yet.

        Raises:
            WorkspaceSuspendedError, WorkspaceReplacedError: there is no guest to look for.
        """
        before, after = self.identity, self._sight()
        return None if after is None else restart_between(before, after)

    def _sight(self) -> Identity | None:
        """The guest that answers now, which is taken and told of; None when none runs."""
        deadline = Deadline(LOOK_SECONDS, self._client.clock)
        body = self._fence().read(deadline)
        if body is None:
            raise WorkspaceReplacedError(f"{self.ref} is not there any more.", object=str(self.ref))
        raise_if_unmanaged(body, self.ref, self._request.workspace_id)
        if mode_of(body) == SUSPENDED:
            self._agent = None
            raise suspended(self.ref)
        request = self._request
        guest = running_guest(self._client, self.ref, request.agent_port, request.agent_address, deadline)
        if guest is None:
            return None
        pod, agent = guest
        self._saw(identity_of(self.opened.uid, pod), agent)
        return self.identity

    def flush(self, *, deadline: Deadline) -> FlushReport:
        """Have its guest put everything on its disk; raises NotSettledError when it does not."""
        return flush(self.agent, self.ref, deadline)

    def quiesce(self, *, deadline: Deadline) -> QuiesceReport:
        """Stop every process of its guest; raises NotSettledError when one is left."""
        return quiesce(self.agent, self.ref, deadline)

    def suspend(
        self,
        *,
        flush: bool = True,
        quiesce: bool = False,
        on_flush_failure: OnFlushFailure = "refuse",
        timeout: float = 60.0,
    ) -> Suspended:
        """Suspend it; see ``SuspendRequest`` and ``suspend_workspace``."""
        request = self._request
        asked = SuspendRequest(
            namespace=request.namespace,
            workspace_id=request.workspace_id,
            holder_epoch=request.holder_epoch,
            flush=flush,
            quiesce=quiesce,
            on_flush_failure=on_flush_failure,
            timeout=timeout,
            agent_port=request.agent_port,
            agent_address=request.agent_address,
        )
        done = suspend_workspace(self._client, asked, uid=self.opened.uid)
        self._agent = None
        return done

    def resume(self) -> Opened:
        """Have it run again, and prove its guest; see ``open_workspace``. It is never made anew."""
        return self._opened(self._request)

    def refresh(self) -> Opened:
        """Replace its whole pod template by its template's, which restarts it on its disk when they differ."""
        return self._opened(dataclasses.replace(self._request, refresh=True))

    def delete(self, *, delete_disk: bool, wait: bool = False, timeout: float = 60.0) -> bool:
        """Delete it with its disks; see ``delete_workspace``."""
        request = self._request
        asked = DeleteRequest(
            namespace=request.namespace,
            workspace_id=request.workspace_id,
            delete_disk=delete_disk,
            holder_epoch=request.holder_epoch,
            wait=wait,
            timeout=timeout,
        )
        try:
            existed = delete_workspace(self._client, asked, uid=self.opened.uid)
        except WorkspaceReplacedError:
            existed = False  # it was deleted, and another one has its id
        self._agent = None
        return existed

    @property
    def _subject(self) -> str:
        return f"workspace {self._request.namespace}/{self._request.workspace_id}"

    def _fence(self) -> Fence:
        return Fence(self._client, self.ref, self._request.holder_epoch, self.opened.uid)

    def _opened(self, request: WorkspaceRequest) -> Opened:
        self.opened = open_workspace(self._client, request, uid=self.opened.uid)
        self._saw(self.opened.identity, Agent(self.opened.agent, subject=self._subject))
        self._started = self._started or self.opened.origin != "adopted"
        self._keep()
        return self.opened

    def _saw(self, identity: Identity, agent: Agent) -> None:
        notice = restart_between(self.identity, identity)
        self.identity, self._agent = identity, agent
        if notice is not None and self._on_restart is not None:
            self._on_restart(notice)


def _was_refused_unsent(error: GuestUnreachableError | GuestTimeoutError | GuestUnauthorizedError) -> bool:
    """Whether the program has surely not been started."""
    if isinstance(error, GuestUnreachableError):
        return not error.sent
    return isinstance(error, GuestUnauthorizedError) or error.stage in ("resolve", "connect")
