# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The options of the Python calls, completed to those of the modules."""

from __future__ import annotations

import typing as t

from ..front.options.backend import CONTAINER
from ..front.options.specs import ACCESS, BACKEND, BOUNDARY_CHECK, SANDBOX, Spec

#: How long a sandbox outlives a program that was killed; a running program renews the lease twice in it.
DEFAULT_TTL = "5m"

#: Options of module ``sandbox`` that have another name or an argument of their own here.
_RENAMED = {"warm_pool": "pool", "count": "acquire_many"}

#: Options of module ``boundary_check`` that name pods.
_SUBJECTS = ("name", "warm_pool", "template", "pod", "labels", "label_selector")

Options = dict[str, t.Any]


def acquire_options(
    *,
    pool: str | None = None,
    template: str | None = None,
    image: str | None = None,
    backend: str | None = None,
    ttl: float | str = DEFAULT_TTL,
    **options: t.Any,
) -> Options:
    """The options of module ``sandbox`` for an acquire.

    Raises:
        TypeError: there is no such option.
    """
    for name, other in _RENAMED.items():
        if name in options:
            raise TypeError(f"there is no option {name}; use {other}")
    source = {"warm_pool": pool, "template": template, "image": image}
    chosen = CONTAINER if backend is None and image is not None else backend
    return _complete(SANDBOX, {**options, **source, "backend": chosen, "ttl": str(ttl)})


def access_options(**options: t.Any) -> Options:
    """The options by which existing sandboxes are found.

    Raises:
        TypeError: there is no such option.
    """
    return _complete({**ACCESS, **BACKEND, "agent": {}}, options)


def boundary_options(*, pool: str | None = None, **options: t.Any) -> Options:
    """The options of module ``boundary_check``; a boundary that does not hold is no failure.

    Raises:
        TypeError: there is no such option, or not exactly one option names the pods.
    """
    completed = _complete({**BOUNDARY_CHECK, **BACKEND}, {**options, "warm_pool": pool, "fail": False})
    if sum(completed[subject] is not None for subject in _SUBJECTS) != 1:
        raise TypeError("exactly one of name, pool, template, pod, labels and label_selector is needed")
    return completed


def _complete(spec: Spec, given: t.Mapping[str, t.Any]) -> Options:
    unknown = sorted(set(given) - set(spec))
    if unknown:
        raise TypeError(f"there is no option {', '.join(unknown)}; there are {', '.join(sorted(spec))}")
    defaults = {name: option.get("default") for name, option in spec.items()}
    return {**defaults, **{name: value for name, value in given.items() if value is not None}}
