# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""One request to an agent and its first answer. A request that was sent is never sent again."""

from __future__ import annotations

import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ...text import clean_text
from ..errors import GuestError, GuestProtocolError, GuestRefusedError, GuestUnauthorizedError, GuestUnsupportedError
from .connection import Connection, Peer, connect, protocol_error
from .heartbeat import DEFAULT_HEARTBEAT
from .wire import FIRST_FRAME_LIMIT, FRAME_LIMIT, decode_json, encode, encode_json

#: An agent may answer with a longer interval than was asked for, within this factor of it.
_LONGEST_ECHO = 10.0


class Caller(t.NamedTuple):
    """The agent that is called, and how.

    Attributes:
        peer: the agent.
        token: binds the call to one pod.
        heartbeat: seconds between the heartbeats of streams; 0 for none.
    """

    peer: Peer
    token: str
    heartbeat: float = DEFAULT_HEARTBEAT

    def __repr__(self) -> str:
        return f"Caller({self.peer.name})"

    def call(
        self,
        operation: str,
        body: t.Mapping[str, t.Any],
        deadline: Deadline,
        following: t.Iterable[bytes] = (),
        *,
        feature: str | None = None,
        heartbeat: float = 0.0,
    ) -> Call:
        """Connect, send the request and read the first answer; an error answer is raised.

        Args:
            following: frames that are sent after the request, as the agent takes them.
            feature: the name in an agent's health that means this operation.
            heartbeat: seconds between the heartbeats of the stream; an agent without the feature sends none.
        """
        request = self._request(operation, body, heartbeat)
        connection = connect(self.peer, operation, deadline)
        try:
            connection.send(request, following)
            answer = self.answer(operation, connection.receive(), feature)
            if heartbeat and "heartbeat" in answer:
                connection.start_heartbeat(self._echoed(operation, answer["heartbeat"], heartbeat))
        except BaseException:
            connection.close()
            raise
        return Call(self, operation, connection, answer)

    def _request(self, operation: str, body: t.Mapping[str, t.Any], heartbeat: float) -> bytes:
        """The request as one frame with the token, or, when that is too large for strangers, as two."""
        # Beside the body: an older agent refuses unknown fields in the body only.
        beat = {"heartbeat": heartbeat} if heartbeat else {}
        whole = encode_json({"op": operation, "token": self.token, **beat, "body": body})
        if len(whole) <= FIRST_FRAME_LIMIT:
            return encode(whole)
        request = encode_json({"op": operation, **beat, "body": body})
        if len(request) > FRAME_LIMIT:
            raise InputError(
                f"{operation} at {self.peer.name}: the request is {len(request)} bytes; {FRAME_LIMIT} are allowed.",
                object=self.peer.name,
                next_step="Send large data as standard input instead of as arguments or environment.",
            )
        return encode(encode_json({"op": "auth", "token": self.token})) + encode(request)

    def _echoed(self, operation: str, echo: t.Any, asked: float) -> float:
        if not isinstance(echo, (int, float)) or isinstance(echo, bool) or not 0 < echo <= asked * _LONGEST_ECHO:
            raise protocol_error(self.peer, operation, "the heartbeat in its answer is not the one that was asked for")
        return float(echo)

    def answer(self, operation: str, frame: bytes, feature: str | None = None) -> dict[str, t.Any]:
        """The object in an answer's frame; an error answer is raised."""
        try:
            answer = decode_json(frame)
        except GuestProtocolError as error:
            raise protocol_error(self.peer, operation, error.message) from None
        if "error" in answer:
            raise self.refused(operation, answer["error"], feature)
        return answer

    def refused(self, operation: str, error: t.Any, feature: str | None = None) -> GuestError:
        """The error that an error answer means."""
        if not isinstance(error, dict) or not isinstance(error.get("kind"), str):
            return protocol_error(self.peer, operation, "an error answer has no kind")
        kind = clean_text(error["kind"], 40)
        message = clean_text(error.get("message", ""), 500)
        if kind == "unauthorized":
            return GuestUnauthorizedError(
                f"{operation} at {self.peer.name}: the agent does not accept the bind token.",
                object=self.peer.name,
                next_step="The address belongs to another pod now: read the sandbox again and use its live pod.",
            )
        if kind == "unsupported":
            return unsupported(self.peer, operation, feature or operation)
        return GuestRefusedError(
            f"{operation} at {self.peer.name}: refused as {kind}: {message.rstrip('.')}.",
            kind=kind,
            object=self.peer.name,
            next_step=_NEXT_STEPS.get(kind),
        )


class Call:
    """A connection whose first answer was received. A context manager that closes it."""

    def __init__(self, caller: Caller, operation: str, connection: Connection, answer: dict[str, t.Any]) -> None:
        self.caller = caller
        self.operation = operation
        self.connection = connection
        self.answer = answer

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def part(self, name: str, /, **shape: type | tuple[type, ...]) -> dict[str, t.Any]:
        """The object ``name`` of the answer, whose fields must be of these types; GuestProtocolError otherwise."""
        found = self.answer.get(name)
        return self.checked(name, found, **shape)

    def checked(self, name: str, found: t.Any, /, **shape: type | tuple[type, ...]) -> dict[str, t.Any]:
        """``found`` when it is an object with fields of these types; GuestProtocolError otherwise."""
        if not isinstance(found, dict):
            raise self.protocol_error(f"the answer has no {name}")
        wrong = [field for field, kind in shape.items() if not isinstance(found.get(field), kind)]
        if wrong:
            raise self.protocol_error(f"{name} in the answer lacks {', '.join(wrong)}")
        return found

    def protocol_error(self, what: str) -> GuestProtocolError:
        """The error for an answer that is not valid."""
        return protocol_error(self.caller.peer, self.operation, what)

    def event(self, data: bytes) -> dict[str, t.Any]:
        """An event's object; an error that is one is raised."""
        return self.caller.answer(self.operation, data)


def unsupported(peer: Peer, operation: str, feature: str) -> GuestUnsupportedError:
    """The error for an agent without ``feature``."""
    return GuestUnsupportedError(
        f"{operation} at {peer.name}: the agent does not have the feature {feature}.",
        feature=feature,
        object=peer.name,
        next_step=_NEXT_STEPS["unsupported"],
    )


_NEXT_STEPS = {
    "not-found": "Look for it in the pod; a program's name without a slash is looked up in the PATH of the pod.",
    "no-parent": "Create the folder first, or ask for missing folders to be made (parents).",
    "is-a-directory": "Name a file.",
    "not-a-directory": "Name a folder.",
    "not-empty": "Ask for everything in it as well (recursive), or remove that first.",
    "cross-device": "Copy it with a program in the sandbox (cp -a), then remove the original.",
    "exists": "Use another name. A file is replaced only when that is asked for (replace).",
    "too-large": "Name a smaller part of it, or raise the limit of the call.",
    "not-executable": "Look at the file's mode and its first line, and whether it is built for this machine.",
    "bad-cwd": "Create the folder first, or name one that exists in the pod.",
    "busy": "The agent is at its limit: try again later, or use fewer connections or programs at a time.",
    "exhausted": "The pod has no process, file or memory left: raise its limits, or run less at a time.",
    "stopping": "The pod is being stopped: use another one.",
    "unsupported": "The agent in this pod is older than this collection: apply the template role and renew the pool.",
    "denied": "Only /tmp and the workspace are writable in a hardened pod, and the agent is an ordinary user there. An "
    "existing file that this user may not write is replaced only when that is asked for (replace).",
    "outside": "The template's NAMZU_AGENT_ROOTS names the folders that files are read and written beneath.",
    "no-space": "Free space in the sandbox, or raise the size of the template's workspace.",
    "changed": "A program in the sandbox changes it at the same time: try again when that has ended.",
    "checksum": "Send it again.",
    "not-connected": "Look whether the program in the sandbox listens, on 127.0.0.1 or on all addresses.",
    "quiescing": "Wait until everything has been stopped, then start it.",
}
