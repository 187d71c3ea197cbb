# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as classes with fields.

Every error says what was tried, on which object, what came back and what to do next. No error carries a token, a key
or a kubeconfig: the text is built from names and from what the server said.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .text import MAXIMUM_MESSAGE, clean_text


@dataclasses.dataclass(frozen=True)
class Reason:
    """One value of ``reason``.

    Attributes:
        name: the value.
        retryable: whether the same call may succeed later, unchanged; None when each error says so itself.
        meaning: one sentence for people.
    """

    name: str
    retryable: bool | None
    meaning: str


#: Every reason. Classes, docs/reference/reasons.md and the modules' RETURN blocks are tested against this table.
REASONS: dict[str, Reason] = {
    one.name: one
    for one in (
        Reason("access", False, "No way to an API server or an engine was found, or the login failed."),
        Reason("agent-error", False, "The agent reported a failure of its own."),
        Reason("agent-protocol", False, "The program at the agent's port does not use the agent's protocol."),
        Reason("agent-refused", None, "The agent refused the request; the field kind has the cause."),
        Reason("agent-timeout", None, "The agent did not answer before the deadline."),
        Reason("agent-unauthorized", False, "The agent belongs to another pod than the one that was read."),
        Reason("agent-unreachable", None, "There is no connection to the agent, or it was cut."),
        Reason("agent-unsupported", False, "The agent in the pod is older than the request."),
        Reason("api-error", False, "The API server returned an error of another kind than those of this table."),
        Reason("api-timeout", True, "The API server did not answer in time; a write may have been applied."),
        Reason("api-unreachable", None, "The API server could not be reached, or could not serve the request now."),
        Reason("boundary", False, "The network boundary is not closed as requested, or could not be proven."),
        Reason("cancelled", True, "The operation was cancelled because another one failed."),
        Reason("capacity", True, "No node can run the pod now, or a scheduling gate holds it."),
        Reason("checksum", True, "The bytes that were read are not the bytes that were sent."),
        Reason("claim-rejected", False, "The controller decided against the claim, or its lease has expired."),
        Reason("conflict", False, "The name is in use by an object that does not match the request, or it changed."),
        Reason("disk", False, "A disk of the workspace is missing, was replaced, or cannot be bound."),
        Reason("error", False, "A failure without a reason of its own."),
        Reason("execution-detached", True, "The execution still runs, and is not followed any more."),
        Reason("execution-lost", False, "The agent has no execution of that id; how it ended is unknown."),
        Reason("expired", False, "The lease expired before it could be renewed."),
        Reason("fence", False, "The admission fence that per-sandbox policies need could not be proven."),
        Reason("fence-elsewhere", False, "The fence's binding does not cover the namespace."),
        Reason("fence-missing", False, "The fence's admission policy does not exist."),
        Reason("fence-not-denying", False, "The fence's binding does not deny."),
        Reason("fence-not-held", False, "The API server accepted a write that the fence must refuse."),
        Reason("fence-unbound", False, "The fence's admission policy has no binding."),
        Reason("fence-unreadable", False, "The fence may not be read."),
        Reason("fence-weakened", False, "The fence's admission policy was changed."),
        Reason("flush-failed", False, "The guest's disks could not be flushed before the suspend."),
        Reason("flush-unreachable", True, "The agent did not answer the flush before the suspend."),
        Reason("flush-unsupported", False, "The agent is too old to flush before the suspend."),
        Reason("forbidden", False, "The credential is unknown, has expired, or lacks a right."),
        Reason("gone", False, "The object of the lease was deleted."),
        Reason("guest-gone", False, "The guest of a command is gone; how the command ended is unknown."),
        Reason("image-pull", False, "The image cannot be pulled."),
        Reason("invalid-input", False, "A parameter is not valid; nothing was sent."),
        Reason("invalid-policy", False, "A policy object cannot be read as one."),
        Reason("isolation", False, "The sandbox is less isolated from its machine than was asked for."),
        Reason("keeper", True, "The lease keeper of the play cannot be reached."),
        Reason("mismatch", False, "The workspace is not the one that was requested; nothing was changed."),
        Reason("missing-dependency", False, "A Python library is not installed where the core runs."),
        Reason("non-zero-rc", False, "The command ended with another exit code than 0."),
        Reason("not-found", False, "The object does not exist."),
        Reason("not-gone", True, "The object was deleted and still existed at the deadline."),
        Reason("not-ready", None, "The sandbox is not ready, or its pod has ended."),
        Reason("not-served", False, "The cluster does not serve the kind: its CRDs are not installed."),
        Reason("output-too-large", False, "The output of a command is larger than the connection takes."),
        Reason("overtaken", False, "Another holder has taken the workspace."),
        Reason("pod-stopping", True, "The pod ended while a command ran in it."),
        Reason("precondition", False, "Another holder has the workspace, or it changed; nothing was changed."),
        Reason("privileged", False, "Processes of the sandbox have privileges, or these could not be read."),
        Reason("quiesce-failed", False, "The processes of the guest could not be stopped before the suspend."),
        Reason("quiesce-unconfirmed", True, "Some processes of the sandbox still run."),
        Reason("quiesce-unreachable", True, "The agent did not answer the quiesce before the suspend."),
        Reason("quiesce-unsupported", False, "The agent is too old to quiesce before the suspend."),
        Reason("quota", True, "A ResourceQuota is used up."),
        Reason("rejected", False, "The API server refused the object itself."),
        Reason("replaced", False, "Another object has the name now."),
        Reason("stale", True, "The sandbox is older than its template."),
        Reason("suspend-timeout", True, "The pod of the workspace still ran at the deadline; it stops when it can."),
        Reason("suspended", False, "The workspace is suspended and has no guest."),
        Reason("template", False, "The template cannot be used for a sandbox."),
        Reason("timeout", False, "The command ran into its own timeout."),
        Reason("transfer-failed", False, "A file could not be copied."),
        Reason("unlabelled", False, "The pod has no label by which a policy of its own can select it."),
        Reason("unsupported", False, "The backend cannot enforce the option."),
        Reason("workspace", False, "A failure of a workspace without a reason of its own."),
    )
}


class SandboxError(Exception):
    """The root of every error that the core raises.

    Attributes:
        reason: a key of ``REASONS``, for programs (``forbidden``, ``capacity``, …).
        retryable: whether the same call may succeed later, unchanged.
        object: the object that it is about, as ``Kind namespace/name``, or None.
        next_step: what a person can do about it, or None.
        leftover: an object of ours that could not be deleted and waits for its own expiry, or None.
    """

    reason: str = "error"
    retryable: bool = False
    leftover: str | None = None

    def __reduce__(self) -> tuple[t.Any, ...]:
        # The usual one calls the class with ``args`` alone, which lack what a subclass requires by keyword.
        return _restored, (type(self), self.args, dict(self.__dict__))

    def replace(self, **changes: t.Any) -> t.Self:
        """A copy in which some attributes differ, such as ``message`` or ``next_step``; an error is never changed.

        The copy has no traceback, cause or context of its own.
        """
        texts = {key: clean_text(one, MAXIMUM_MESSAGE) for key, one in changes.items() if isinstance(one, str)}
        state = {**self.__dict__, **changes, **texts}
        return t.cast("t.Self", _restored(type(self), (state["message"],), state))

    def __init__(
        self,
        message: str,
        *,
        object: str | None = None,  # pylint: disable=redefined-builtin
        next_step: str | None = None,
        reason: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        self.message = clean_text(message, MAXIMUM_MESSAGE)
        super().__init__(self.message)
        self.object = None if object is None else clean_text(object)
        self.next_step = None if next_step is None else clean_text(next_step, MAXIMUM_MESSAGE)
        if reason is not None:
            self.reason = reason
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        return self.message if self.next_step is None else f"{self.message} {self.next_step}"

    def fields(self) -> dict[str, t.Any]:
        """The error as plain data: ``reason``, ``retryable``, ``object``, ``leftover`` and what a subclass adds."""
        leftover = {"leftover": self.leftover} if self.leftover is not None else {}
        return {"reason": self.reason, "retryable": self.retryable, "object": self.object, **leftover}


def _restored(kind: type[SandboxError], args: tuple[t.Any, ...], state: dict[str, t.Any]) -> SandboxError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(SandboxError):
    """A parameter that cannot be honoured; raised before anything is sent."""

    reason = "invalid-input"


class MissingDependencyError(SandboxError):
    """A Python library that the core needs is not installed where it runs."""

    reason = "missing-dependency"


class AccessError(SandboxError):
    """No way to the API server could be made out of the options, the environment and the kubeconfig."""

    reason = "access"


class ApiError(SandboxError):
    """The API server answered, and the answer is no.

    Attributes:
        status: the HTTP status.
        api_reason: ``reason`` of the returned Status object (``NotFound``, ``AlreadyExists``, …), or None.
        api_message: ``message`` of the returned Status object, or the start of the body.
        retry_after: seconds that the server asked to wait, or None.
        method, path: the request, without host and query.
    """

    reason = "api-error"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        api_reason: str | None = None,
        api_message: str | None = None,
        retry_after: float | None = None,
        method: str = "",
        path: str = "",
        **common: t.Any,
    ) -> None:
        super().__init__(message, **common)
        self.status = status
        self.api_reason = api_reason
        self.api_message = api_message
        self.retry_after = retry_after
        self.method = method
        self.path = path

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "status": self.status, "api_reason": self.api_reason}


class CredentialError(ApiError):
    """401 or 403: who we are, or what we may do, is not enough."""

    reason = "forbidden"


class ConflictError(ApiError):
    """409: the object is there already, or has changed since it was read."""

    reason = "conflict"


class GoneError(ApiError):
    """404 or 410: the object or the resourceVersion does not exist, or does not exist any more."""

    reason = "not-found"


class NotServedError(ApiError):
    """404 for a whole kind or API group: its CRDs are not installed, or this is another cluster.

    Nothing is known about any object of the kind, so this is not a GoneError.
    """

    reason = "not-served"


class InvalidError(ApiError):
    """400 or 422: the server refused the object itself."""

    reason = "rejected"


class UnavailableError(ApiError):
    """429 or 5xx: the server could not serve this now."""

    reason = "api-unreachable"
    retryable = True


class ApiUnreachableError(SandboxError):
    """No answer: the connection could not be made, or was cut. A write may have been applied (``sent``)."""

    reason = "api-unreachable"
    retryable = True

    def __init__(self, message: str, *, sent: bool = False, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.sent = sent


class ApiTimeoutError(ApiUnreachableError):
    """No answer within the request's bound. A write may have been applied."""

    reason = "api-timeout"


class ApiAnswerError(ApiUnreachableError):
    """An answer that is no Kubernetes answer: truncated, no JSON, or larger than the bound."""
