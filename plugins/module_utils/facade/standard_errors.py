# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the core that are Python's own as well, for programs that catch these."""

from __future__ import annotations

import functools
import typing as t

from ..errors import ApiTimeoutError, SandboxError
from ..guest.errors import GuestRefusedError, GuestTimeoutError

Arguments = t.ParamSpec("Arguments")
Result = t.TypeVar("Result")

#: By the kind of a refusal of the agent.
_OF_KIND: dict[str, type[OSError]] = {
    "not-found": FileNotFoundError,
    "no-parent": FileNotFoundError,
    "is-a-directory": IsADirectoryError,
    "not-a-directory": NotADirectoryError,
    "denied": PermissionError,
    "not-executable": PermissionError,
    "outside": PermissionError,
    "exists": FileExistsError,
}


def standard_errors(call: t.Callable[Arguments, Result]) -> t.Callable[Arguments, Result]:
    """Let the errors of a function be Python's own as well, where there is one: ``except FileNotFoundError`` works."""

    @functools.wraps(call)
    def translated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return call(*args, **kwargs)
        except SandboxError as error:
            standard = _standard(error)
            if standard is None:
                raise
            raise _as_standard(error, standard) from error

    return translated


def _standard(error: SandboxError) -> type[OSError] | None:
    if isinstance(error, (GuestTimeoutError, ApiTimeoutError)):
        return TimeoutError
    return _OF_KIND.get(error.kind) if isinstance(error, GuestRefusedError) else None


def _as_standard(error: SandboxError, standard: type[OSError]) -> SandboxError:
    """A copy of an error, of a class that is the standard one too."""
    return _made(type(error), standard, error.args, error.__dict__)


def _made(
    kind: type[SandboxError], standard: type[OSError], args: tuple[t.Any, ...], state: t.Mapping[str, t.Any]
) -> SandboxError:
    combined = _combined(kind, standard)
    error = combined.__new__(combined, *args)
    error.__dict__.update(state)
    return error


_COMBINED: dict[tuple[type[SandboxError], type[OSError]], type[SandboxError]] = {}


def _combined(kind: type[SandboxError], standard: type[OSError]) -> type[SandboxError]:
    def reduce(self: SandboxError) -> tuple[t.Any, ...]:
        # The class has no name by which it could be imported.
        return _made, (kind, standard, self.args, dict(self.__dict__))

    if (kind, standard) not in _COMBINED:
        members = {"__module__": kind.__module__, "__reduce__": reduce}
        _COMBINED[kind, standard] = type(kind.__name__, (kind, standard), members)
    return _COMBINED[kind, standard]
