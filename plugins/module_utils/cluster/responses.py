# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of the API server, turned into typed errors."""

from __future__ import annotations

import datetime
import email.utils
import json
import re
import typing as t

from ..errors import ApiError, ConflictError, CredentialError, GoneError, InvalidError, NotServedError, UnavailableError
from ..text import clean_text

#: How much of an answer that is no Status object is quoted.
_QUOTED = 200

#: Characters of a Status object's reason, which is one word.
_REASON = 100

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

#: What to do about 401.
EXPIRED = "The credential is unknown or has expired: log in again, or renew the token."

_WHOM = "this user or service account"

#: How the API server says which right is missing.
_MISSING = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[\w/.-]+)"')


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
    api_reason = clean_text(document["reason"], _REASON) if document.get("reason") else None
    api_message = clean_text(document.get("message") or "") or clean_text(body, _QUOTED)
    kind = _class_of(status, document)
    answer = f"{status} {api_reason}" if api_reason else str(status)
    text = api_message.removesuffix(".") or "no message"
    return kind(
        f"{method} {subject}: the API server answered {answer}: {text}.",
        status=status,
        api_reason=api_reason,
        api_message=api_message,
        retry_after=retry_after_seconds(headers.get("Retry-After"), now),
        method=method,
        path=path,
        object=subject,
        next_step=_next_step(kind, status, path, document),
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


def _details(document: dict[str, t.Any]) -> dict[str, t.Any]:
    details = document.get("details")
    return details if isinstance(details, dict) else {}


def _class_of(status: int, document: dict[str, t.Any]) -> type[ApiError]:
    # The 404 of a kind or group that is not served names no object in its details.
    if status == 404 and not _details(document).get("name"):
        return NotServedError
    return UnavailableError if status >= 500 else _CLASSES.get(status, ApiError)


def _next_step(kind: type[ApiError], status: int, path: str, document: dict[str, t.Any]) -> str | None:
    if kind is NotServedError and "agents.x-k8s.io" in path:
        return "The agent-sandbox CRDs are not installed here: install the controller, or check the context."
    if kind is NotServedError:
        return "This cluster does not serve the kind: check the context, or install its CRDs."
    if status <= 400 and not document:
        return "That is no answer of Kubernetes: check the address (http:// or https://?), and what stands before it."
    if status == 404 and _details(document).get("kind") == "namespaces":
        return "Create the namespace (role namzu.sandbox.namespace), name another, or check the context."
    if status == 403:
        return _missing_right(str(document.get("message")))
    return EXPIRED if status == 401 else None


def _missing_right(message: str) -> str:
    # Loaded when it is needed: most runs are allowed what they do.
    from .rbac import options_for

    missing = _MISSING.search(message)
    options = options_for(missing["verb"], missing["resource"]) if missing else None
    if missing is None or options is None:
        return f"Grant the missing rule to {_WHOM} (role namzu.sandbox.claimant has what is needed)."
    return grant(f"{missing['verb']} on {missing['resource']}", options)


def grant(what: str, options: t.Sequence[str]) -> str:
    """What to do about a right that is missing, and which option of role ``claimant`` gives it."""
    with_option = f" with {' or '.join(options)}" if options else ""
    return f"Grant {what} to {_WHOM}: role namzu.sandbox.claimant does{with_option}."
