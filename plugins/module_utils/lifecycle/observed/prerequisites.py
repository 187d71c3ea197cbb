# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Objects of the cluster that a request names: whether they exist, where the caller may read them.

They are not namespaced, and role ``claimant`` grants no rule for them. Without the right to read one nothing is known,
and nothing is refused.
"""

from __future__ import annotations

import contextlib

from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import NAMESPACE, ObjectRef
from ...deadline import Deadline
from ...errors import CredentialError, GoneError, InputError, NotServedError, SandboxError

#: Seconds for reading a namespace after nothing was found in it.
NAMESPACE_SECONDS = 5.0


def check_namespace(client: Client, name: str) -> None:
    """Refuse a namespace that does not exist, after nothing was found in it.

    Raises:
        InputError: it does not exist. Whatever else keeps it from being read is no failure of the caller.
    """
    ref, exists = NAMESPACE.ref("", name), True
    with contextlib.suppress(SandboxError):
        exists = _may_exist(client, ref, Deadline(NAMESPACE_SECONDS, client.clock))
    if not exists:
        raise InputError(
            f"namespace is {name!r}: {ref} does not exist.",
            object=str(ref),
            next_step="Correct namespace, or the kubeconfig and context that lead to the cluster.",
        )


def _may_exist(client: Client, ref: ObjectRef, deadline: Deadline) -> bool:
    """Whether an object exists, or its existence is not known."""
    try:
        read(client, ref, deadline)
    except (CredentialError, NotServedError):
        return True
    except GoneError:
        return False
    return True
