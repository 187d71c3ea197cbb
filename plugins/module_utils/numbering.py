# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Several sandboxes of one request: how many, their names, and what a failure of one means for the others."""

from __future__ import annotations

import dataclasses
import typing as t

from .errors import InputError

#: The most sandboxes of one call; more is several calls, or a mistake.
MAXIMUM_COUNT = 1000

#: ``release_all`` releases what a call created as soon as one of its acquires has failed; ``keep`` continues.
OnFailure = t.Literal["release_all", "keep"]


class _Named(t.Protocol):
    __dataclass_fields__: t.ClassVar[dict[str, t.Any]]

    @property
    def name(self) -> str | None: ...


Request = t.TypeVar("Request", bound=_Named)


def numbered(request: Request, count: int) -> list[Request]:
    """One request for each of ``count`` sandboxes, named ``<name>-0``, ``<name>-1``, … where there is a name.

    Args:
        request: a dataclass with a ``name``, or None for fresh names.
        count: how many, 1 to 1000.

    Raises:
        InputError: the count is out of bounds, or a numbered name would be too long.
    """
    given: object = count
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MAXIMUM_COUNT:
        raise InputError(f"count is {count!r}; it must be between 1 and {MAXIMUM_COUNT}.")
    if request.name is None:
        return [request] * count
    return [dataclasses.replace(request, name=f"{request.name}-{number}") for number in range(count)]
