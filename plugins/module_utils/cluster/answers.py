# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of the API server, turned into typed errors."""

from __future__ import annotations

import datetime
import email.utils
import json
import typing as t

from .errors import ApiError, ConflictError, CredentialError, GoneError, InvalidError, UnavailableError

#: How much of an answer that is no Status object is quoted.
_QUOTED = 200

_CLASSES: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: CredentialError,
    403: CredentialError,
    404: GoneError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: UnavailableError,
}

_NEXT_STEPS: dict[int, str] = {
    401: "The credential is unknown or has expired: log in again, or renew the token.",
    403: "Grant the missing rule to this user or service account (role namzu.sandbox.claimant lists what is needed).",
}


def error_from_answer(
    method: str, path: str, subject: str, status: int, headers: t.Mapping[str, str], body: bytes, now: datetime.datetime
) -> ApiError:
    """Make the error that an HTTP answer of 300 and above stands for.

    Args:
        method, path: the request, without host and query.
        subject: the object that it was about, for people.
        status: the HTTP status.
        headers: the answer's headers; ``Retry-After`` is read.
        body: the answer's body; a Status object gives reason and message.
        now: the time that a ``Retry-After`` date is compared with.
    """
    document = _status_object(body)
    api_reason = document.get("reason")
    api_message = document.get("message") or body[:_QUOTED].decode("utf-8", "replace").strip()
    kind = UnavailableError if status >= 500 else _CLASSES.get(status, ApiError)
    words = f"{status} {api_reason}" if api_reason else str(status)
    return kind(
        f"{method} {subject}: the API server answered {words}: {api_message or 'no message'}.".replace("..", "."),
        status=status,
        api_reason=api_reason,
        api_message=api_message,
        retry_after=retry_after_seconds(headers.get("Retry-After"), now),
        method=method,
        path=path,
        object=subject,
        next_step=_next_step(status, path, document),
    )


def retry_after_seconds(value: str | None, now: datetime.datetime) -> float | None:
    """Read a ``Retry-After`` header: seconds or a date (RFC 9110, 10.2.3); None when there is none of use."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - now).total_seconds())


def _status_object(body: bytes) -> dict[str, t.Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) and document.get("kind") == "Status" else {}


def _next_step(status: int, path: str, document: dict[str, t.Any]) -> str | None:
    # A resource that is not served answers 404 without naming an object in details.
    if status == 404 and not (document.get("details") or {}).get("name") and "agents.x-k8s.io" in path:
        return "The agent-sandbox CRDs are not served here: install the controller, or check the context."
    return _NEXT_STEPS.get(status)
