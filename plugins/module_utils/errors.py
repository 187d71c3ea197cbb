# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as classes with fields.

Every error says what was tried, on which object, what came back and what to do next. No error carries a token, a key
or a kubeconfig: the text is built from names and from what the server said.
"""

from __future__ import annotations

import typing as t

from .text import MAXIMUM_MESSAGE, clean_text


class SandboxError(Exception):
    """The root of every error that the core raises.

    Attributes:
        reason: a short word from a closed list, for programs (``forbidden``, ``capacity``, …).
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
