# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The options that describe a command, as the client of the agent takes them."""

from __future__ import annotations

import typing as t

from ...errors import InputError
from ...lifecycle.durations import length
from .specs import Params


def words_of(params: Params) -> list[str]:
    """The program and arguments that ``argv`` or ``command`` mean.

    Raises:
        InputError: both are empty.
    """
    if params.get("argv"):
        return [str(word) for word in params["argv"]]
    if params.get("command"):
        return ["/bin/sh", "-c", str(params["command"])]
    raise InputError("There is nothing to run: argv and command are empty.", next_step="Give one of them.")


def shown(params: Params, argv: list[str]) -> t.Any:
    """The command as the task gave it."""
    return params.get("command") or argv


def timeout_of(params: Params) -> float | None:
    """Seconds that the command may run, or None.

    Raises:
        InputError: it is no length of time, or none at all.
    """
    return length("timeout", params["timeout"]) if params.get("timeout") is not None else None


def command_options(params: Params, timeout: float | None) -> dict[str, t.Any]:
    """``chdir``, ``environment``, ``stdin`` and the timeout as keywords of ``Agent.execute``."""
    return {
        "cwd": params.get("chdir"),
        "env": {str(key): str(value) for key, value in (params.get("environment") or {}).items()},
        "stdin": (params.get("stdin") or "").encode(),
        "timeout": timeout,
    }
