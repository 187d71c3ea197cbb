# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a sandbox's name to its agent on a container engine: the same container for the whole run."""

from __future__ import annotations

import typing as t

from ...module_utils.container.channel import agent_at
from ...module_utils.container.inventory import locate_container
from ...module_utils.container.names import check_name
from ...module_utils.deadline import SYSTEM_CLOCK, Clock, Deadline
from ...module_utils.engine.client import EngineClient
from ...module_utils.errors import GoneError, InputError
from ...module_utils.front.options.engine import engine_client
from ...module_utils.guest.agent import Agent
from ...module_utils.lifecycle.errors import ReplacedError
from .cache import Location, Memory
from .link import Link
from .target import Target


class ContainerLink(Link):
    """See ``Link``. A location has the container's name as ``host``, its id as ``pod``, its channel as ``sandbox``."""

    def __init__(
        self, target: Target, memory: Memory, environ: t.Mapping[str, str], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        super().__init__(target, memory, environ, clock)
        self._engine_client: EngineClient | None = None

    def _engine(self) -> EngineClient:
        if self._engine_client is None:
            options = {**self._target.access, **self._target.engine}
            self._engine_client = engine_client(options, self._environ, self._target.request_timeout, self._clock)
        return self._engine_client

    def _greet(self, location: Location, deadline: Deadline) -> Agent:
        address = agent_at(self._engine(), location.host, location.pod, location.token, location.sandbox)
        agent = Agent(address, subject=str(self._target), heartbeat=self._target.heartbeat)
        agent.healthz(deadline)
        return agent

    def _how_it_ended(self, known: Location, deadline: Deadline) -> str | None:
        try:
            found = locate_container(self._engine(), self._target.name, deadline)
        except GoneError:
            return "is gone"
        return None if found.uid == known.pod else "is gone; another one has its name"

    def _locate(self, deadline: Deadline) -> Location:
        target = self._target
        if target.workspace is not None:
            raise InputError(
                "ansible_sandbox_workspace is set, and the container backend has no workspaces.",
                next_step="Set ansible_sandbox_name, or ansible_sandbox_backend: kubernetes.",
            )
        check_name(target.name)
        found = locate_container(self._engine(), target.name, deadline, uid=target.uid)
        return Location("", found.channel, found.uid, found.container, 0, token=found.agent.token)

    def _replaced(self, known: Location, what: str) -> ReplacedError:
        return ReplacedError(
            f"Container {known.host}, which this run used for {self._target}, {what}. What it held is lost.",
            object=f"Container {known.host}",
            next_step="If another will do, set ansible_sandbox_follow: true, or go on after meta: reset_connection.",
        )
