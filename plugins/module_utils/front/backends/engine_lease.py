# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a container, for the lease keeper."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.resources import Kind
from ...container.errors import ContainerLeaseError, ContainerMismatchError
from ...container.lease import renew_lease
from ...container.release import release_container
from ...deadline import Deadline
from ...engine.client import EngineClient
from ...errors import SandboxError
from ...lifecycle.lease.lease import Lease, Renewal
from ..options.backend import CONTAINER

#: A sandbox of an engine in messages; no API server serves it.
ENGINE_SANDBOX = Kind("", "", "Sandbox", "")


@dataclasses.dataclass(frozen=True)
class ContainerLease(Lease):
    """A sandbox of a container engine that somebody holds; ``uid`` is the container's id."""

    def renewed(self, client: EngineClient, deadline: Deadline, bound: float) -> Renewal:
        """Make sure that it lasts ``ttl`` seconds from now by the engine's clock; see ``Lease.renewed``."""
        try:
            done = renew_lease(client, self.ref.name, self.ttl, deadline.child(bound), uid=self.uid)
        except ContainerLeaseError as error:
            raise self.lost(error.reason, error.message.partition(": ")[2].rstrip(".")) from error
        return Renewal(dataclasses.replace(self, expires_at=done.expires_at), done.before, changed=done.changed)

    def left(self, client: EngineClient) -> float | None:
        """Seconds until it ends by the engine's clock, or None when that is not known."""
        return None if self.expires_at is None else (self.expires_at - client.now()).total_seconds()

    def release(self, client: EngineClient, deadline: Deadline) -> SandboxError | None:
        """Remove its container; one that is gone, or whose name another container has, is released.

        Raises:
            SandboxError: the engine had not removed it when the deadline passed.
        """
        try:
            release_container(client, self.ref.name, deadline, uid=self.uid)
        except ContainerMismatchError:
            return None
        return None

    def described(self) -> dict[str, t.Any]:
        """The lease as plain data."""
        return {**super().described(), "backend": CONTAINER}

    @classmethod
    def of(cls, described: t.Mapping[str, t.Any]) -> t.Self:
        """The lease that plain data describes."""
        base = Lease.of(described)
        return cls(ENGINE_SANDBOX.ref("", base.ref.name), base.uid, base.ttl, base.expires_at)
