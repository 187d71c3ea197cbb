# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for a template that is not there yet, for those who ask for it."""

from __future__ import annotations

import typing as t

from ...cluster.resources import TEMPLATE
from ...deadline import Deadline
from ...errors import GoneError, SandboxError
from ..errors import AcquireError
from .request import AcquireRequest

#: Seconds between two attempts. A claim that met no template is looked at again by the controller after a minute
#: (agent-sandbox v0.5.6, ``sandboxclaim_controller.go``); a claim that is made anew is served at once.
AGAIN = 1.0

Result = t.TypeVar("Result")


def until_template(request: AcquireRequest, deadline: Deadline, attempt: t.Callable[[], Result]) -> Result:
    """Try once, or with ``wait_for_template`` until the template is there or the deadline leaves no time.

    Args:
        attempt: must leave nothing behind when it fails, and be fit to be called again.

    Raises:
        What the last attempt raised.
    """
    while True:
        try:
            return attempt()
        except (AcquireError, GoneError) as error:
            if not request.wait_for_template or not _lacks_template(error) or deadline.remaining() <= AGAIN:
                raise
            deadline.sleep(AGAIN)


def _lacks_template(error: SandboxError) -> bool:
    if error.leftover is not None:
        return False
    if isinstance(error, AcquireError):
        return error.controller_reason == "TemplateNotFound"
    return str(error.object).startswith(f"{TEMPLATE.name} ")
