# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox that a Python program holds or uses."""

from __future__ import annotations

import builtins
import contextlib
import typing as t

from ..deadline import Cancellation, Deadline
from ..errors import SandboxError
from ..front.options.agent import heartbeat_of
from ..guest.agent import Agent
from ..guest.execution.request import DEFAULT_MAX_OUTPUT
from ..guest.execution.stream import CommandFailedError, Execution
from ..guest.forwarding import Forwarder
from ..guest.sessions.attachment import Attachment, open_terminal
from ..guest.sessions.detached import Executions
from ..guest.sessions.sessions import Sessions
from ..lifecycle.durations import length, seconds
from .files import SandboxFiles
from .holding import Holding, opened
from .options import DEFAULT_TTL, Options, access_options, acquire_options
from .processes import CALL_SECONDS, UNBOUNDED_SECONDS, Output, Process, argv_of, on_output
from .standard_errors import standard_errors

if t.TYPE_CHECKING:
    from ..front.backends.protocol import Acquisition


class Sandbox:
    """A sandbox that this program holds or uses. ``run`` and ``files`` may be called from several threads.

    Attributes:
        name, uid: by which it is found, and told from another one of that name.
        info: the sandbox as module ``namzu.sandbox.sandbox`` returns it; empty for one that ``connect`` found.
        agent: the agent in it.
        files: its files.
        sessions: programs that go on without a connection.
    """

    def __init__(self, held: Holding, agent: Agent, name: str, uid: str | None, info: t.Mapping[str, t.Any]) -> None:
        """See ``acquire`` and ``connect``."""
        self._held = held
        self.agent = agent
        self.name = name
        self.uid = uid
        self.info = info
        self.files = SandboxFiles(agent, held.raise_if_lost)
        self.sessions = Sessions(agent)

    @classmethod
    @standard_errors
    def acquire(
        cls,
        *,
        pool: str | None = None,
        template: str | None = None,
        image: str | None = None,
        backend: str | None = None,
        ttl: float | str = DEFAULT_TTL,
        cancellation: Cancellation | None = None,
        **options: t.Any,
    ) -> t.Self:
        """Acquire and verify a sandbox. Its lease is renewed until it is released, or this process ends.

        Args:
            pool: a SandboxWarmPool (option ``warm_pool``).
            template: a SandboxTemplate.
            image: an image of a container engine; the backend is ``container`` then, unless it is given.
            backend: ``kubernetes`` or ``container``; ``NAMZU_SANDBOX_BACKEND``, else Kubernetes, when not given.
            ttl: seconds (at least 10), or ``90s``, ``15m``: how long it lives on when this process is killed.
            cancellation: ends the acquire when it is cancelled, by any thread; what was created is released.
            options: further options of module ``namzu.sandbox.sandbox``, such as ``egress`` and ``name``.

        Raises:
            SandboxError: there is none, or it is not as safe as was asked for; what this call created is released.
            TypeError: there is no such option.
        """
        params = acquire_options(pool=pool, template=template, image=image, backend=backend, ttl=ttl, **options)
        held = Holding(params)
        with held.closed_on_failure():
            acquired = held.backend.acquire(held.backend.request(params), cancellation)
            try:
                return cls._of(held, acquired, params)
            except BaseException:
                _release_created(held, [acquired])
                raise

    @classmethod
    @standard_errors
    def acquire_many(cls, count: int, **options: t.Any) -> builtins.list[t.Self]:
        """Acquire ``count`` (1 to 1000) at once, all or none; arguments as for ``acquire``.

        Each sandbox has its own lease, and is released with its own ``release``.
        """
        params = acquire_options(**options)
        first = Holding(params)
        try:
            batch = first.backend.acquire_many(first.backend.request(params), count, "release_all")
            if batch.error is not None:
                raise batch.error
            holdings: list[Holding] = []
            sandboxes: list[t.Self] = []
            try:
                for acquired in batch.acquired:
                    holdings.append(Holding(params))
                    sandboxes.append(cls._of(holdings[-1], acquired, params))
            except BaseException:
                for held in holdings:
                    held.stop()
                    held.close()
                _release_created(first, batch.acquired)
                raise
            return sandboxes
        finally:
            first.close()

    @classmethod
    @standard_errors
    def connect(cls, name: str, *, uid: str | None = None, **options: t.Any) -> t.Self:
        """Use a sandbox that is held already. Its lease is not renewed, and the end of a block does not release it.

        Args:
            uid: refuse another one of that name.
            options: where it is: ``backend``, ``namespace``, ``kubeconfig``, ``docker_host``, ``agent`` and so on.

        Raises:
            SandboxError: there is no such sandbox, or it is not ready.
        """
        params = access_options(**options)
        held = Holding(params)
        with held.closed_on_failure():
            guest = held.backend.find(name, Deadline(CALL_SECONDS), uid=uid, heartbeat=_heartbeat(params))
            return cls(held, guest.agent, name, uid, {})

    @staticmethod
    @standard_errors
    def list(*, label_selector: str | None = None, **options: t.Any) -> builtins.list[dict[str, t.Any]]:
        """The sandboxes that are held, as module ``namzu.sandbox.sandbox_info`` returns them."""
        with opened(access_options(**options)) as backend:
            return backend.list(name=None, label_selector=label_selector)

    @staticmethod
    @standard_errors
    def release_named(names: t.Mapping[str, str | None], **options: t.Any) -> builtins.list[str]:
        """Release sandboxes by name.

        Args:
            names: uid by name; another sandbox of the name is refused. None: whichever has the name.
            options: where they are; see ``connect``.

        Returns:
            The names of those that existed.

        Raises:
            SandboxError: one could not be released; the others were.
        """
        with opened(access_options(**options)) as backend:
            released, failed = backend.release(names, Deadline(CALL_SECONDS), wait=False, dry_run=False)
        for error in failed.values():
            raise error
        return released

    @classmethod
    def _of(cls, held: Holding, acquired: Acquisition, params: Options) -> t.Self:
        agent = Agent(acquired.agent, subject=f"sandbox {acquired.name}", heartbeat=_heartbeat(params))
        held.renew(acquired.name, acquired.uid, length("ttl", params["ttl"]))
        return cls(held, agent, acquired.name, acquired.uid, acquired.result)

    @standard_errors
    def run(
        self,
        command: str | t.Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes | str | None = None,
        env: t.Mapping[str, str] | None = None,
        cwd: str | None = None,
        check: bool = False,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
        max_output: int = DEFAULT_MAX_OUTPUT,
        cancellation: Cancellation | None = None,
    ) -> Execution:
        """Run a program and wait for its end.

        Args:
            command: a line for ``/bin/sh``, or program and arguments, which no shell reads.
            timeout: seconds (above 0) after which its process group is ended; the result has ``timed_out``.
            stdin: its standard input.
            env: further variables.
            cwd: absolute, or relative to the workspace, which is the default.
            check: raise CommandFailedError when it does not end with 0.
            on_stdout, on_stderr: called with bytes as they arrive.
            max_output: bytes of each stream that are kept (0 to 256 MiB); what follows is counted and dropped.
            cancellation: ends the call, and the program with it, when it is cancelled.

        Raises:
            CommandFailedError: with ``check``; it has the ``execution``.
            SandboxError: the program did not start, or the connection or the sandbox was lost.
        """
        self._held.raise_if_lost()
        argv = argv_of(command)
        deadline = Deadline(UNBOUNDED_SECONDS if timeout is None else timeout + CALL_SECONDS)
        with (cancellation or Cancellation()).cutting(deadline.cancel):
            execution = self.agent.execute(
                argv,
                deadline=deadline,
                timeout=timeout,
                stdin=stdin.encode() if isinstance(stdin, str) else stdin,
                env=env,
                cwd=cwd,
                max_output=max_output,
                on_output=on_output(on_stdout, on_stderr),
            )
        if check and (execution.rc != 0 or execution.timed_out):
            raise _failed(self.name, argv, execution)
        return execution

    @standard_errors
    def start(
        self,
        command: str | t.Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes | str | None = None,
        env: t.Mapping[str, str] | None = None,
        cwd: str | None = None,
        max_output: int = DEFAULT_MAX_OUTPUT,
    ) -> Process:
        """Start a program and return at once; arguments as for ``run``. ``stdin`` is 8 MiB at most,
        and 16 MiB of each output stream are kept.

        Raises:
            SandboxError: the program did not start, or the connection or the sandbox was lost.
        """
        self._held.raise_if_lost()
        key = Executions(self.agent).start(
            argv_of(command),
            deadline=Deadline(CALL_SECONDS),
            timeout=timeout,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            env=env,
            cwd=cwd,
            max_output=max_output,
        )
        return Process(self.agent, key)

    def process(self, id: str) -> Process:  # noqa: A002  # pylint: disable=redefined-builtin
        """A program that ``start`` started, also in another process of this machine; no request is sent."""
        return Process(self.agent, id)

    @standard_errors
    def terminal(self, command: str | t.Sequence[str] = ("/bin/sh",), **options: t.Any) -> Attachment:
        """Start a program in a terminal that exists as long as its connection; a context manager.

        Args:
            command: as for ``run``.
            options: ``rows``, ``columns``, ``env``, ``cwd`` and ``timeout``.

        Raises:
            SandboxError: the program did not start, or the connection or the sandbox was lost.
        """
        self._held.raise_if_lost()
        return open_terminal(self.agent, argv_of(command), deadline=Deadline(CALL_SECONDS), **options)

    def forward(self, port: int, *, local_port: int = 0) -> Forwarder:
        """A local port (``address``) whose connections lead to a TCP port of the sandbox; a context manager.

        Args:
            port: the port in the sandbox, on its loopback interface.
            local_port: the port on this machine's loopback interface; 0 takes a free one.

        Raises:
            OSError: the local port cannot be listened on.
        """
        self._held.raise_if_lost()
        return Forwarder(self.agent, port, local_port=local_port)

    @standard_errors
    def extend(self, remaining: float | str) -> None:
        """Renew the lease unless at least ``remaining`` (seconds, or ``15m``) are left."""
        self._held.raise_if_lost()
        self._held.backend.renew(self.name, seconds("remaining", remaining), uid=self.uid, dry_run=False)

    @standard_errors
    def release(self) -> None:
        """Release the sandbox; one that is gone already is fine.

        Raises:
            SandboxError: it could not be released; its lease ends all the same.
        """
        self._held.stop()
        try:
            _names, failures = self._held.backend.release(
                {self.name: self.uid}, Deadline(CALL_SECONDS), wait=False, dry_run=False
            )
        finally:
            self._held.close()
        for error in failures.values():
            if error.reason != "replaced":
                raise error

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held.renewing:
            self.release()
        else:
            self._held.close()


def _release_created(held: Holding, acquired: t.Iterable[Acquisition]) -> None:
    """Release what a failed call created; the first failure must be the one that is raised."""
    created = {one.name: one.uid for one in acquired if one.created}
    if created:
        with contextlib.suppress(SandboxError):
            held.backend.release_created(created)


def _failed(name: str, argv: t.Sequence[str], execution: Execution) -> CommandFailedError:
    ended = "ran into its timeout" if execution.timed_out else f"ended with exit code {execution.rc}"
    reason = "timeout" if execution.timed_out else "non-zero-rc"
    last = execution.stderr_text.strip().rpartition("\n")[2]
    text = f"Sandbox {name}: {argv[-1] if argv[0] == '/bin/sh' else argv[0]} {ended}."
    return CommandFailedError(f"{text} Its last line: {last}" if last else text, execution=execution, reason=reason)


def _heartbeat(params: t.Mapping[str, t.Any]) -> float:
    return heartbeat_of(params.get("agent"))
