# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How a workspace is found again: the name of its Sandbox follows from its id, and its marks stand on that object."""

from __future__ import annotations

import hashlib
import re

from ..cluster.resources import SANDBOX, WORKSPACE_LABEL, ObjectRef
from ..errors import InputError

#: The inventory of workspaces selects by it.
WORKSPACE_SELECTOR = f"{WORKSPACE_LABEL}=true"

#: Which call made it, so that one whose POST lost its answer is known as ours. Not the mark of an acquire: a release by
#: name must never take a workspace for a sandbox, and its disk with it.
CREATE_ID_ANNOTATION = "sandbox.namzu.ai/workspace-create-id"

#: When the mode was last changed by this collection, on the clock of the API server as far as it is known here.
MODE_CHANGED_ANNOTATION = "sandbox.namzu.ai/operating-mode-changed-at"

#: Who may change it: a number that goes up whenever it passes to another holder.
HOLDER_EPOCH_ANNOTATION = "sandbox.namzu.ai/holder-epoch"

#: What its pod template was when it was written, so that an edit of the template shows.
TEMPLATE_HASH_ANNOTATION = "sandbox.namzu.ai/pod-template-hash"

#: The pod labels, runtime class and boundary that tasks asked for, as JSON.
OPENED_WITH_ANNOTATION = "sandbox.namzu.ai/opened-with"

#: The uids of its disks. The controller (agent-sandbox v0.5.6, measured) makes a new, empty claim where one is
#: gone, under the same name, so the name alone does not tell.
DISKS_ANNOTATION = "sandbox.namzu.ai/disks"

LONGEST_ID = 253

_READABLE = 36


def workspace_ref(namespace: str, workspace_id: str) -> ObjectRef:
    """The Sandbox of a workspace: what of the id a name can hold, and a hash of all of it.

    Raises:
        InputError: the id is empty, longer than 253 characters, or has characters that no line of text has.
    """
    if not 1 <= len(workspace_id) <= LONGEST_ID or not workspace_id.isprintable() or not workspace_id.strip():
        raise InputError(
            f"workspace_id has {len(workspace_id)} characters, {workspace_id[:60]!r}; it must be 1 to {LONGEST_ID} "
            "printable ones.",
            next_step="Use a name that stays the same for as long as the disk shall be found again.",
        )
    readable = re.sub("[^a-z0-9]+", "-", workspace_id.lower())[:_READABLE].strip("-")
    digest = hashlib.sha256(workspace_id.encode()).hexdigest()[:12]
    return SANDBOX.ref(namespace, "-".join(part for part in ("workspace", readable, digest) if part))
