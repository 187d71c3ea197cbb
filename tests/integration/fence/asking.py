# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server in somebody's name, and what it says to them."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.transport.pools import open_pools

Body = dict[str, t.Any]

MERGE = "application/merge-patch+json"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the API server said: the status, its message, and the whole body."""

    status: int
    message: str
    body: Body = dataclasses.field(repr=False)

    @property
    def by_rules(self) -> bool:
        """Whether RBAC refused the request."""
        return self.status == 403 and " cannot " in self.message

    @property
    def by_fence(self) -> bool:
        """Whether a policy of role ``admission_fence`` refused it."""
        return self.status in (403, 422) and "ValidatingAdmissionPolicy 'namzu-fence-" in self.message


class Asking:
    """One user of the API server, who only ever tries: every write is a dry run."""

    def __init__(self, **access: t.Any) -> None:
        self._access = resolve_access(access, {})
        self._client = Client(self._access)
        self._pool, _watches = open_pools(self._access)

    def __call__(self, method: str, path: str, body: t.Any = None, content_type: str = "") -> Answer:
        """Send a request; a PATCH is a merge patch unless said otherwise."""
        dry = "" if method == "GET" else ("&" if "?" in path else "?") + "dryRun=All"
        headers = self._client.headers(30.0)
        headers["Content-Type"] = content_type or (MERGE if method == "PATCH" else "application/json")
        data = None if body is None else json.dumps(body)
        answer = self._pool.request(
            method, self._access.server + path + dry, body=data, headers=headers, timeout=30, retries=False
        )
        try:
            said = json.loads(answer.data)
        except ValueError:
            said = {"message": answer.data[:500].decode(errors="replace")}
        return Answer(answer.status, str(said.get("message", "")), said)

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()
        self._client.close()
