# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of a policy object and of a question about one, with the object and the field."""

from __future__ import annotations

from ..errors import SandboxError


class PolicyError(SandboxError):
    """A Kubernetes object that cannot be read because it is malformed.

    Attributes:
        field: the path of the field inside the object, as ``spec.egress[0].to[1].ipBlock.cidr``.
    """

    reason = "invalid-policy"

    def __init__(self, problem: str, *, object: str, field: str = "") -> None:  # pylint: disable=redefined-builtin
        where = f"{object}: {field}" if field else object
        super().__init__(f"{where}: {problem}", object=object)
        self.field = field


class QuestionError(SandboxError):
    """A question that cannot be answered: an unknown pod, peer, port, protocol, direction, engine or request."""

    reason = "invalid-input"
