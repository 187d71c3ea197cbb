# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The client of the agent in a pod: one method an operation, one connection a call, one deadline over all of it."""

from __future__ import annotations

import base64
import dataclasses
import typing as t

from ..cluster.deadline import Deadline
from ..cluster.errors import InputError
from .connection import Connection, Dial, Peer, connect, no_agent
from .errors import GuestError, GuestProtocolError, GuestRefusedError, GuestUnauthorizedError
from .execution import Execution, OutputCallback, collect, stdin_frames
from .wire import FIRST_FRAME_LIMIT, FRAME_LIMIT, PROTOCOL, decode_json, encode, encode_json

DEFAULT_PORT = 1024
#: Bytes of each output stream that are kept when the caller does not say.
DEFAULT_MAX_OUTPUT = 1024 * 1024

#: Input up to this size travels in the request; more is streamed after it.
_INLINE_STDIN = 32 * 1024


@dataclasses.dataclass(frozen=True)
class AgentAddress:
    """Where an agent listens, and the token that binds the connection to one pod.

    Attributes:
        host: IP address or name.
        port: TCP port.
        token: the pod's uid. It is not part of the text form.
        dial: makes the connection where there is no route to the pod, or None to connect to host and port.
    """

    host: str
    port: int
    token: str = dataclasses.field(repr=False)
    dial: Dial | None = dataclasses.field(default=None, repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Health:
    """What an agent says about itself.

    Attributes:
        protocol: version of the wire.
        features: names of what it can do; ask with ``supports``.
        agent: version of the agent.
        python: version of the Python that runs it.
        executable: absolute path of that Python in the pod.
        workspace: the folder that commands start in.
        uptime: seconds since it started.
    """

    protocol: int
    features: frozenset[str]
    agent: str
    python: str
    executable: str
    workspace: str
    uptime: float

    def supports(self, feature: str) -> bool:
        """Whether the agent names ``feature``."""
        return feature in self.features


class Agent:
    """Talks to one agent.

    Connecting is tried three times within the deadline. A request that was sent is never sent again.

    Every method raises GuestUnreachableError (no connection, or it ended early), GuestTimeoutError (the deadline
    passed), GuestUnauthorizedError (another pod's agent), GuestProtocolError (no agent) and GuestRefusedError (the
    agent says no; its ``kind`` says why).
    """

    def __init__(self, address: AgentAddress, *, subject: str | None = None) -> None:
        """``subject`` says in messages whose agent this is, for example ``sandbox team-a/build-7``.

        Time is each call's deadline's.
        """
        self.address = address
        self.subject = subject

    def __repr__(self) -> str:
        return f"Agent({self.address!r})"

    @property
    def peer(self) -> Peer:
        """The agent in words, for messages; without the token."""
        return Peer(self.address.host, self.address.port, self.subject, self.address.dial)

    def healthz(self, deadline: Deadline) -> Health:
        """Ask the agent what it is and what it can do."""
        with self._call("healthz", {}, deadline) as (_connection, answer):
            return self._health(answer)

    def execute(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        cwd: str | None = None,
        env: t.Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        grace: float | None = None,
        max_output: int = DEFAULT_MAX_OUTPUT,
        on_output: OutputCallback | None = None,
    ) -> Execution:
        """Run a program in the sandbox and wait for its end.

        Args:
            argv: program and arguments; no shell is involved. A name without ``/`` is looked up in PATH.
            deadline: bounds the whole call. When it passes, the agent ends the program's process group.
            cwd: absolute, or relative to the workspace, which is the default.
            env: variables added to the agent's clean environment.
            stdin: bytes for standard input; without any it is ``/dev/null``. Any size.
            timeout: seconds (above 0) after which the agent ends the process group; the result says ``timed_out``.
            grace: seconds (0 to 60; the agent's default is 2) between SIGTERM and SIGKILL when it does.
            max_output: bytes of each stream that are kept (0 to 256 MiB); what follows is counted and dropped, and
                the program is never blocked by it.
            on_output: called with ``"stdout"`` or ``"stderr"`` and bytes as they arrive, cut anywhere.

        Returns the Execution, whatever the program's exit code. Besides the errors of the class it raises InputError
        for a request above 8 MiB and GuestRefusedError ``not-found``, ``not-executable``, ``bad-cwd``, ``bad-request``
        or ``exhausted`` for a program that did not start.
        """
        optional = {"cwd": cwd, "env": dict(env) if env else None, "timeout": timeout, "grace": grace}
        body: dict[str, t.Any] = {"argv": list(argv), "max_output": max_output}
        body |= {key: value for key, value in optional.items() if value is not None}
        following: t.Iterable[bytes] = ()
        if len(stdin) > _INLINE_STDIN:
            body["stdin"] = {"encoding": "frames"}
            following = stdin_frames(stdin)
        elif stdin:
            body["stdin"] = {"encoding": "base64", "data": base64.b64encode(stdin).decode("ascii")}
        with self._call("execute", body, deadline, following) as (connection, answer):
            if "started" not in answer:
                raise no_agent(self.peer, "execute", "the answer says neither that the program started nor why not")
            try:
                return collect(connection.receive, max_output, on_output)
            except GuestProtocolError as error:
                raise error if error.object else no_agent(self.peer, "execute", error.message) from None
            except GuestRefusedError as error:
                raise self._refused("execute", {"kind": error.kind, "message": error.message}) from None

    def _call(
        self, operation: str, body: t.Mapping[str, t.Any], deadline: Deadline, following: t.Iterable[bytes] = ()
    ) -> _Call:
        """Connect, send the request and read the first answer; an error answer is raised."""
        request = self._request(operation, body)
        connection = connect(self.peer, operation, deadline)
        try:
            connection.send(request, following)
            answer = self._answer(operation, connection.receive())
        except BaseException:
            connection.close()
            raise
        return _Call(connection, answer)

    def _request(self, operation: str, body: t.Mapping[str, t.Any]) -> bytes:
        """The request as one frame with the token, or, when that is too large for strangers, as two."""
        token = self.address.token
        whole = encode_json({"op": operation, "token": token, "body": body})
        if len(whole) <= FIRST_FRAME_LIMIT:
            return encode(whole)
        request = encode_json({"op": operation, "body": body})
        if len(request) > FRAME_LIMIT:
            raise InputError(
                f"{operation} at {self.peer.name}: the request is {len(request)} bytes; {FRAME_LIMIT} are allowed.",
                object=self.peer.name,
                next_step="Send large data as standard input instead of as arguments or environment.",
            )
        return encode(encode_json({"op": "auth", "token": token})) + encode(request)

    def _answer(self, operation: str, frame: bytes) -> dict[str, t.Any]:
        try:
            answer = decode_json(frame)
        except GuestProtocolError as error:
            raise no_agent(self.peer, operation, error.message) from None
        if "error" in answer:
            raise self._refused(operation, answer["error"])
        return answer

    def _refused(self, operation: str, error: t.Any) -> GuestError:
        if not isinstance(error, dict) or not isinstance(error.get("kind"), str):
            return no_agent(self.peer, operation, "an error answer has no kind")
        kind = error["kind"][:40]
        said = printable(str(error.get("message", "")))
        if kind == "unauthorized":
            return GuestUnauthorizedError(
                f"{operation} at {self.peer.name}: the agent does not accept our bind token.",
                object=self.peer.name,
                next_step="The address belongs to another pod by now: read the sandbox again and use its live pod.",
            )
        return GuestRefusedError(
            f"{operation} at {self.peer.name}: refused as {kind}: {said}",
            kind=kind,
            object=self.peer.name,
            next_step=_NEXT_STEPS.get(kind),
        )

    def _health(self, answer: dict[str, t.Any]) -> Health:
        shape: dict[str, type | tuple[type, ...]] = {
            "protocol": int, "features": list, "agent": str, "python": str, "executable": str, "workspace": str,
            "uptime": (int, float),
        }  # fmt: skip
        wrong = [name for name, kind in shape.items() if not isinstance(answer.get(name), kind)]
        if wrong:
            raise no_agent(self.peer, "healthz", f"the answer lacks {', '.join(wrong)}")
        if answer["protocol"] != PROTOCOL:
            raise no_agent(self.peer, "healthz", f"it speaks protocol {answer['protocol']}; we speak {PROTOCOL}")
        values = {name: answer[name] for name in shape}
        values["features"] = frozenset(str(feature) for feature in answer["features"])
        values["uptime"] = float(answer["uptime"])
        return Health(**values)


class _Call:
    """A connection whose first answer has come; as a context manager it gives both, and closes."""

    def __init__(self, connection: Connection, answer: dict[str, t.Any]) -> None:
        self._connection = connection
        self._answer = answer

    def __enter__(self) -> tuple[Connection, dict[str, t.Any]]:
        return self._connection, self._answer

    def __exit__(self, *_: object) -> None:
        self._connection.close()


_NEXT_STEPS = {
    "not-found": "Look for the program in the image; names without a slash are looked up in the PATH of the pod.",
    "not-executable": "Look at the file's mode and its first line, and whether it is built for this machine.",
    "bad-cwd": "Create the folder first, or name one that exists in the pod.",
    "busy": "The agent serves as many connections as it may: try again later, or use fewer at a time.",
    "exhausted": "The pod has no process, file or memory left: raise its limits, or run less at a time.",
    "stopping": "The pod is being stopped: use another one.",
    "unsupported": "The agent in this pod is older than this collection: apply the template role and renew the pool.",
}


def printable(text: str, limit: int = 500) -> str:
    """What a guest said, safe for a log: one line, no control characters, at most ``limit`` characters."""
    cleaned = (character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text[:limit])
    return "".join(cleaned) + ("…" if len(text) > limit else "")
