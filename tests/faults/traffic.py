# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests that each verb makes, and the faults that each of them can meet."""

from __future__ import annotations

from .fake.plan import Fault, How, Request, status

CREATE = Request("create", "sandboxclaims")
GET_CLAIM = Request("get", "sandboxclaims")
WATCH = Request("watch", "sandboxclaims")
DELETE = Request("delete", "sandboxclaims")
PATCH_CLAIM = Request("patch", "sandboxclaims")
GET_POD = Request("get", "pods")
GET_SANDBOX = Request("get", "sandboxes")

ACQUIRE = (CREATE, WATCH, GET_POD, GET_SANDBOX)
REACQUIRE = (CREATE, GET_CLAIM, GET_POD, GET_SANDBOX)
RELEASE = (DELETE,)
RELEASE_AND_WAIT = (GET_CLAIM, GET_SANDBOX, GET_POD, DELETE)
LOCATE = (GET_CLAIM, GET_POD, GET_SANDBOX)

#: What passes: the same request succeeds when it is made again.
PASSING = (
    status(429),
    status(429, retry_after="0"),
    status(429, retry_after="2"),
    status(429, retry_after="Thu, 01 Jan 1970 00:00:00 GMT"),
    status(429, retry_after="soon"),
    status(500),
    status(503),
    status(504),
    Fault(How.STATUS_AFTER_ACTING, 504),
    Fault(How.HANG),
    Fault(How.CUT_BEFORE),
    Fault(How.CUT_AFTER),
    Fault(How.TRUNCATED),
    Fault(How.NO_JSON),
    Fault(How.NO_OBJECT),
)

#: Waits that no deadline here has room for.
TOO_LATE = (
    status(429, retry_after="5"),
    status(429, retry_after="1000000000000"),
    status(429, retry_after="9" * 400),
    status(503, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
)

#: What does not pass, with the class of error and the reason that it becomes.
REFUSALS = (status(401), status(403))
