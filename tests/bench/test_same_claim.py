# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bare requests ask of the controller is what an acquire asks of it."""

from __future__ import annotations

import datetime

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.claim import claim_body
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.manifest import ManifestBuilder
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest

from . import bare


def test_bare_claim_is_that_of_an_acquire() -> None:
    theirs = bare.claim_body("team-a", "python", "build-1")
    identity = theirs["metadata"]["annotations"]["sandbox.namzu.ai/acquire-id"]
    end = datetime.datetime.fromisoformat(theirs["spec"]["lifecycle"]["shutdownTime"])
    request = AcquireRequest(namespace="team-a", warm_pool="python", name="build-1", ttl=bare.TTL)
    made = ManifestBuilder(
        request, CLAIM.ref("team-a", "build-1"), identity, end - datetime.timedelta(seconds=bare.TTL)
    )
    assert claim_body(made) == theirs
