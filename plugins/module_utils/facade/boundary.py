# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Boundaries of pods, verified without acquiring a sandbox."""

from __future__ import annotations

import os
import typing as t

from ..front.verb import Context
from ..front.verbs.boundary_check import run
from ..text import clean_value
from .options import boundary_options
from .standard_errors import standard_errors


@standard_errors
def verify(
    *, name: str | None = None, pool: str | None = None, template: str | None = None, **options: t.Any
) -> dict[str, t.Any]:
    """Verify what pods reach and who reaches them, and change nothing.

    Args:
        name: a sandbox that exists.
        pool: a SandboxWarmPool, for the pods that it will have.
        template: a SandboxTemplate, for the pods that it will have.
        options: further options of module ``namzu.sandbox.boundary_check``: ``pod``, ``label_selector``, ``egress``,
            ``ingress``, ``manifests`` (files instead of a cluster) and so on.

    Returns:
        The result of that module: ``holds``, ``checks`` and ``text``. A boundary that does not hold is a result.

    Raises:
        SandboxError: the pods or their policies cannot be read.
        TypeError: there is no such option, or not exactly one option names the pods.
    """
    params = boundary_options(name=name, pool=pool, template=template, **options)
    context = Context(check_mode=False, environ=dict(os.environ))
    return t.cast("dict[str, t.Any]", clean_value(run(params, context)))
