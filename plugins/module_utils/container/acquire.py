# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquire: create a container, start it and its agent, verify it; or remove what this call created."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import math
import pathlib
import secrets

from ..deadline import Backoff, Cancellation, Deadline
from ..engine import containers
from ..engine.client import EngineClient, Json
from ..engine.container_spec import ContainerSpec
from ..engine.images import require_image
from ..errors import ApiError, ConflictError, GoneError, InvalidError, SandboxError
from ..guest.agent import Agent, AgentAddress
from ..guest.errors import GuestTimeoutError, GuestUnreachableError
from ..guest.privileges import Privileges, probe_privileges
from ..text import clean_text
from .agent_archive import agent_archive
from .channel import agent_at, remove_folder, socket_folder
from .create import container_spec
from .engine_support import offers_host_sockets
from .errors import NotReadyError
from .guest_network import probe_no_network
from .inventory import bind_token
from .isolation import judge_container
from .lease import lease_end
from .names import (
    ACQUIRE_ID_LABEL,
    AGENT,
    CHANNEL_LABEL,
    FOLDER,
    NAME_LABEL,
    OWN_LABELS,
    RELAY,
    REQUEST_LABEL,
    container_name,
    fresh_name,
)
from .network import prove_network
from .planned import check_engine, raise_if_another
from .release import is_leftover, labels_of, remove_container, remove_leftovers, with_retries
from .request import ContainerRequest, ContainerSandbox, ContainerVerdict
from .verification import verify_confinement

#: The most that the privilege probe may take: it reads one pseudo-file over a path that is up.
PROBE_SECONDS = 15.0
#: Seconds for removing what a failed acquire created, whatever is left of its deadline.
CLEANUP_SECONDS = 10.0
#: Seconds for which a container may appear after the request to create it was cut or its answer was lost.
UNANSWERED_SECONDS = 2.0
#: Seconds between two looks for the agent's socket, and between two looks at the container meanwhile.
TICK = 0.01
LOOK_SECONDS = 0.5

TOKEN_VARIABLE = "NAMZU_AGENT_BIND_TOKEN"  # noqa: S105 - the name of a variable
_NO_PYTHON = ("executable file not found", "no such file or directory")


def acquire_container(
    client: EngineClient, request: ContainerRequest, cancellation: Cancellation | None = None
) -> ContainerSandbox:
    """Create a container and hand it out as a sandbox, verified.

    With a name that a matching sandbox already has, that one is verified again, and ``created`` is False. After any
    failure, an interrupt included, what this call created is removed.

    Args:
        cancellation: ends the acquire when it is cancelled, by any thread; what was created is removed first.

    Raises:
        UnsupportedError: the engine cannot enforce what is asked for.
        ContainerBoundaryError: the egress cannot be shown to hold.
        ImagePullError: the image cannot be pulled.
        ContainerMismatchError: another sandbox, or another container, has the name; nothing was changed.
        NotReadyError: the container or its agent did not start.
        ConfinementError, PrivilegeError: it has more than was asked for.
        GuestError, ApiError, ApiUnreachableError: the agent or the engine.
    """
    deadline = Deadline(request.ready_timeout, client.clock, cancellation=cancellation)
    return Acquire(client, request, read_engine(client, request, deadline), deadline).run()


@dataclasses.dataclass(frozen=True)
class Engine:
    """What acquires of one request share: what the engine reports about itself, its image and its network."""

    info: Json
    image: Json
    network: Json | None
    seccomp: str


def read_engine(client: EngineClient, request: ContainerRequest, deadline: Deadline) -> Engine:
    """Refuse what cannot be enforced, and have the image pulled where it is missing."""
    info, network, seccomp = check_engine(client, request, deadline)
    image = require_image(client, request.image, deadline)
    return Engine(info, image, network, seccomp)


class Acquire:
    """One acquire, step by step.

    Args:
        engine: as ``read_engine`` returns it; others may share it.
        deadline: bounds everything; others may share it.
    """

    def __init__(self, client: EngineClient, request: ContainerRequest, engine: Engine, deadline: Deadline) -> None:
        self.client = client
        self.request = request
        self.engine = engine
        self.deadline = deadline
        self.name = request.name or fresh_name()
        self.container = container_name(self.name)
        self.acquire_id = secrets.token_hex(8)
        self.token = secrets.token_hex(16)
        self.timings: dict[str, float] = {}
        self.created = False
        self._attempted = False
        #: Whether the engine may still be creating the container, as its answer was lost or cut.
        self._unanswered = False
        self._channel = RELAY
        self._agent_command: str | None = None
        self._stage_began = deadline.elapsed()

    def run(self) -> ContainerSandbox:
        """The whole of it; see ``acquire_container``."""
        try:
            uid, until = self._create_or_find()
            self._stage_ended("claim")
            self._wait_until_listening(uid)
            self._stage_ended("ready")
            inspected = containers.inspect(self.client, uid, self.deadline)
            agent = self._agent(inspected)
            self._stage_ended("bind")
            verdict = self._verify(agent, inspected)
        except BaseException as error:
            leftover = self._take_back()
            if leftover is not None and isinstance(error, SandboxError):
                raise error.replace(leftover=leftover) from error
            raise
        return ContainerSandbox(
            name=self.name,
            uid=uid,
            container=self.container,
            agent=agent,
            labels={key: value for key, value in labels_of(inspected).items() if key not in OWN_LABELS},
            expires_at=until,
            timings={**self.timings, "total": round(self.deadline.elapsed() * 1000, 1)},
            verdict=verdict,
            created=self.created,
        )

    def _create_or_find(self) -> tuple[str, datetime.datetime]:
        found = containers.list_labelled(self.client, [NAME_LABEL], self.deadline)
        remove_leftovers(self.client, found, self.deadline)
        now = self.client.now().timestamp()
        live = [one for one in found if labels_of(one).get(NAME_LABEL) == self.name and not is_leftover(one, now)]
        if not live:
            try:
                return self._create()
            except ConflictError:
                if self.created:
                    raise
        return self._existing()

    def _create(self) -> tuple[str, datetime.datetime]:
        folder = None
        if self.request.channel == "socket" or (
            self.request.channel == "auto"
            and self.client.is_local
            and offers_host_sockets(self.engine.info, self.request.runtime)
        ):
            folder = socket_folder(self.client, self.acquire_id)
        try:
            uid = self._create_with(folder)
        except InvalidError as error:
            # The engine is reached by a socket of this machine, and runs on another one.
            if folder is None or self.request.channel == "socket" or str(folder) not in error.message:
                raise
            remove_folder(self._channel)
            uid = self._create_with(None)
        until = self.client.now() + datetime.timedelta(seconds=self.request.ttl)
        archive = agent_archive(math.ceil(until.timestamp()), self.token)
        containers.put_archive(self.client, uid, FOLDER, archive, self.deadline)
        self._start(uid)
        argv = ["python3", "-I", "-S", "-B", AGENT]
        self._agent_command = containers.create_exec(
            self.client, uid, argv, self.request.user, self.deadline, env={TOKEN_VARIABLE: self.token}
        )
        containers.start_exec(self.client, self._agent_command, self.container, self.deadline)
        return uid, until

    def _create_with(self, folder: pathlib.Path | None) -> str:
        self._channel = RELAY if folder is None else str(folder / "agent.sock")
        spec = self._spec(self._channel, self.acquire_id)
        self._attempted = self._unanswered = True
        try:
            uid = containers.create(self.client, self.container, spec.body(), self.deadline)
        except ApiError:
            self._unanswered = False
            raise
        self._unanswered = False
        self.created = True
        return uid

    def _spec(self, channel: str, acquire_id: str) -> ContainerSpec:
        start_by = math.ceil(self.client.now().timestamp() + self.deadline.remaining())
        labels = {
            **self.request.labels,
            NAME_LABEL: self.name,
            ACQUIRE_ID_LABEL: acquire_id,
            REQUEST_LABEL: json.dumps(self.request.identity, sort_keys=True),
            CHANNEL_LABEL: channel,
        }
        return container_spec(self.request, self.engine.image, self.name, channel, labels, start_by)

    def _start(self, uid: str) -> None:
        try:
            containers.start(self.client, uid, self.deadline)
        except SandboxError as error:
            text = error.message.lower()
            if "python3" not in text or not any(words in text for words in _NO_PYTHON):
                raise
            raise NotReadyError(
                f"Container {self.container}: the image {self.request.image} has no python3 in its PATH.",
                object=f"Container {self.container}",
                next_step="Use an image with python3 (3.8 or newer), which runs the agent.",
            ) from None

    def _existing(self) -> tuple[str, datetime.datetime]:
        """The container that has the name, when it is the one that is asked for."""
        while True:
            inspected = containers.inspect(self.client, self.container, self.deadline)
            labels, state = labels_of(inspected), inspected.get("State") or {}
            raise_if_another(self.request, self.name, labels)
            if state.get("Running"):
                break
            if self.deadline.remaining() <= LOOK_SECONDS:
                raise NotReadyError(
                    f"Container {self.container}: another acquire is creating it, and it does not run yet.",
                    retryable=True,
                    object=f"Container {self.container}",
                    next_step="Try again, or release it.",
                )
            self.deadline.sleep(LOOK_SECONDS / 5)
        self._channel = labels.get(CHANNEL_LABEL, RELAY)
        uid = str(inspected["Id"])
        self.token = bind_token(self.client, uid, self.deadline)
        return uid, lease_end(self.client, uid, self.deadline)

    def _wait_until_listening(self, uid: str) -> None:
        if self._channel == RELAY or not self.created:
            return
        path, looked = pathlib.Path(self._channel), self.deadline.elapsed()
        while not path.exists():
            if self.deadline.remaining() <= TICK:
                raise self._not_listening("its socket did not appear in time")
            if self.deadline.elapsed() - looked >= LOOK_SECONDS:
                looked = self.deadline.elapsed()
                self._check_runs(uid)
            self.deadline.sleep(TICK)

    def _check_runs(self, uid: str) -> None:
        try:
            state = containers.inspect(self.client, uid, self.deadline).get("State") or {}
        except GoneError:
            raise self._not_listening("it ended right after its start") from None
        if not state.get("Running"):
            raise self._not_listening(f"it ended with exit code {state.get('ExitCode')}")

    def _not_listening(self, why: str) -> NotReadyError:
        log = ""
        with contextlib.suppress(SandboxError):
            log = containers.read_log(self.client, self.container, self.deadline)
        text = clean_text(" ".join(log.split()[-40:]), 400)
        return NotReadyError(
            f"Container {self.container}: {why}." + (f" It wrote: {text}." if text else ""),
            retryable=True,
            object=f"Container {self.container}",
            next_step="Look whether python3 of the image works (docker run IMAGE python3 -V).",
        )

    def _agent(self, inspected: Json) -> AgentAddress:
        return agent_at(self.client, self.container, str(inspected["Id"]), self.token, self._channel)

    def _verify(self, address: AgentAddress, inspected: Json) -> ContainerVerdict:
        subject = f"Container {self.container}"
        acquire_id = labels_of(inspected).get(ACQUIRE_ID_LABEL, "")
        spec = self._spec(self._channel, acquire_id)
        request, engine = self.request, self.engine
        confinement = verify_confinement(inspected, spec, request, engine.seccomp)
        egress = prove_network(request, inspected, engine.network)
        agent = Agent(address, subject=subject)
        privileges = self._probe(agent, subject)
        isolation = judge_container(privileges, engine.info, request, confinement, subject)
        self._stage_ended("probe")
        network = None
        if request.network_probe and request.network is None:
            network = probe_no_network(agent, self.deadline, subject)
        self._stage_ended("boundary")
        return ContainerVerdict(privileges, confinement, egress, network, isolation)

    def _probe(self, agent: Agent, subject: str) -> Privileges:
        limit, backoff = self.deadline.child(PROBE_SECONDS), Backoff()
        while True:
            try:
                return probe_privileges(agent, limit, subject)
            except (GuestUnreachableError, GuestTimeoutError) as error:
                # Over the relay nothing shows when PID 1 listens.
                early = isinstance(error, GuestUnreachableError) and not error.sent and self.created
                if not early or not backoff.wait(limit):
                    raise self._explained(error) from error

    def _explained(self, error: SandboxError) -> SandboxError:
        """The error, or a better one when the agent has ended."""
        if self._agent_command is None:
            return error
        with contextlib.suppress(SandboxError):
            state = containers.inspect_exec(self.client, self._agent_command, self.container, self.deadline)
            if not state.get("Running"):
                return self._not_listening(f"its agent ended with exit code {state.get('ExitCode')}")
        return error

    def _take_back(self) -> str | None:
        """Remove what this call created; the object that is left when that fails."""
        if not self._attempted:
            return None
        limit = Deadline(CLEANUP_SECONDS, self.client.clock)
        what = f"Container {self.container}"
        try:
            found = self._created_late(limit)
            if labels_of(found).get(ACQUIRE_ID_LABEL) == self.acquire_id:
                remove_container(self.client, str(found["Id"]), limit)
        except GoneError:
            pass
        except SandboxError:
            return what
        finally:
            if self._channel != RELAY and self.acquire_id in self._channel:
                remove_folder(self._channel)
        return None

    def _created_late(self, limit: Deadline) -> Json:
        """The container of this name, looked for once more while the engine may still be creating it.

        An engine goes on with a request whose connection was cut, and a name that it gives away afterwards would make
        the next acquire of the name wait.
        """
        while True:
            try:
                return with_retries(limit, lambda: containers.inspect(self.client, self.container, limit))
            except GoneError:
                if not self._unanswered or limit.elapsed() >= UNANSWERED_SECONDS:
                    raise
                limit.sleep(UNANSWERED_SECONDS / 20)

    def _stage_ended(self, stage: str) -> None:
        now = self.deadline.elapsed()
        self.timings[stage] = round((now - self._stage_began) * 1000, 1)
        self._stage_began = now
