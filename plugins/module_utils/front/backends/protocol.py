# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a backend is: where sandboxes are acquired, found, renewed and released."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ...deadline import Cancellation, Deadline
from ...errors import SandboxError
from ...guest.agent import Agent, AgentAddress
from ...numbering import OnFailure

if t.TYPE_CHECKING:
    from ...lifecycle.lease.lease import Lease

Request = t.TypeVar("Request")

#: Seconds for renewing a lease, retries included.
RENEW_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Acquisition:
    """A sandbox that a backend has verified and handed out.

    Attributes:
        name: of the claim, the direct Sandbox or the container's sandbox; with it the sandbox is used and released.
        namespace: where it is, or None where a backend has no namespaces.
        uid: tells it from another one of that name.
        agent: where its agent answers, with the bind token; the token is in no text form.
        expires_at: when it ends unless its lease is renewed, in UTC, or None.
        created: whether this call created it.
        stale: whether it is older than its template; None where nobody asked.
        result: the sandbox as a task returns it.
    """

    name: str
    namespace: str | None
    uid: str
    agent: AgentAddress
    expires_at: datetime.datetime | None
    created: bool
    stale: bool | None
    result: t.Mapping[str, t.Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Batch:
    """What became of several acquires.

    Attributes:
        acquired: what was acquired and is held, in order.
        failures: the errors of the others by name.
        error: why not all were acquired, or None.
    """

    acquired: t.Sequence[Acquisition]
    failures: t.Mapping[str, SandboxError] = dataclasses.field(default_factory=dict)
    error: SandboxError | None = None


@dataclasses.dataclass(frozen=True)
class Guest:
    """A sandbox or workspace that runs.

    Attributes:
        name: of the claim, Sandbox or container's sandbox.
        pod: the name of its pod, or of its container.
        agent: the agent in it.
        subject: how messages name it, for example ``workspace build-1``.
    """

    name: str
    pod: str
    agent: Agent
    subject: str


@dataclasses.dataclass(frozen=True)
class Renewed:
    """A lease, after it was looked at.

    Attributes:
        name, namespace, uid: of the sandbox.
        before, expires_at: when it ended, and when it ends now, in UTC; None when it does not expire.
        changed: whether this call extended it.
        left: seconds until it ends, or None.
    """

    name: str
    namespace: str | None
    uid: str
    before: datetime.datetime | None
    expires_at: datetime.datetime | None
    changed: bool
    left: float | None


class Backend(t.Protocol[Request]):
    """Where sandboxes run. It is made for one task, sends nothing before its first call, and is not thread-safe."""

    name: str
    #: The namespace, or None where a backend has none; and in words for messages.
    namespace: str | None
    place: str
    #: Talks to the API server or to the engine; has the clock.
    client: t.Any

    def request(self, params: t.Mapping[str, t.Any]) -> Request:
        """What the options of verb ``sandbox`` ask for; InputError when that cannot be."""

    def described(self, request: Request) -> dict[str, t.Any]:
        """A request as a diff shows it, without its name."""

    def acquire(self, request: Request, cancellation: Cancellation | None = None) -> Acquisition:
        """Acquire and verify one sandbox; what this call created is released when that fails, or is cancelled."""

    def acquire_many(self, request: Request, count: int, on_failure: OnFailure) -> Batch:
        """Acquire ``count`` (1 to 1000) at once; ``release_all`` releases what it created as soon as one fails."""

    def planned(self, request: Request, count: int | None) -> list[tuple[str, bool]]:
        """The names that an acquire would have, and whether each exists; nothing is changed."""

    def leases(self, request: Request, acquired: t.Sequence[Acquisition]) -> t.Mapping[str, Lease]:
        """The leases that a lease keeper can renew, by name; empty where it cannot."""

    def release_created(self, created: t.Mapping[str, str]) -> t.Iterable[str]:
        """Release what was just created, uid by name, after another failure; the names that could not be released."""

    def names_matching(self, label_selector: str, deadline: Deadline) -> t.Mapping[str, str | None]:
        """The sandboxes with these labels: uid by name."""

    def release(
        self, names: t.Mapping[str, str | None], deadline: Deadline, *, wait: bool, dry_run: bool
    ) -> tuple[list[str], dict[str, SandboxError]]:
        """Release sandboxes, each with its uid or None for whichever has the name.

        Returns:
            The names of those that existed, and the error of each that could not be released.
        """

    def check_exists(self, namespace: str | None = None) -> None:
        """Check that the place in which nothing was found exists at all; NotFound errors of the backend otherwise."""

    def find(self, name: str, deadline: Deadline, *, uid: str | None, heartbeat: float) -> Guest:
        """The agent of a held sandbox that runs; how it is dialed is in its address."""

    def list(
        self, *, name: str | None, label_selector: str | None, namespace: str | None = None
    ) -> list[dict[str, t.Any]]:
        """The sandboxes that are held, as ``sandbox_info`` returns them, by name; of another namespace when given."""

    def renew(
        self, name: str, remaining: float, *, uid: str | None, dry_run: bool, within: float = RENEW_SECONDS
    ) -> Renewed:
        """Extend a lease of which fewer than ``remaining`` seconds are left, ``within`` seconds, retries included."""

    def host_vars(self, sandbox: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """The variables that make a sandbox (``name``, ``namespace``, ``uid``) a host of a play."""
