# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Releasing many at once, by name or by label."""

from __future__ import annotations

import collections.abc
import concurrent.futures
import typing as t

from ...cluster.client import Client
from ...cluster.reads import read_items
from ...cluster.resources import ACQUIRE_ID_ANNOTATION, CLAIM, SANDBOX, annotation
from ...cluster.transport.pools import POOL_SIZE
from ...deadline import CLEANUP_SECONDS, Deadline
from ...errors import InputError, SandboxError
from ..errors import ReplacedError
from .release import Released, release


def names_matching(client: Client, namespace: str, label_selector: str, deadline: Deadline) -> dict[str, str]:
    """The claims, and the direct Sandboxes, that a selector matches: each name with its uid.

    Raises:
        InputError: the selector is empty, which would mean every claim of the namespace.
    """
    if not label_selector.strip():
        raise InputError(
            "label_selector is empty, which would release every sandbox in the namespace.",
            next_step="Give a selector that matches only what shall go.",
        )
    claims = read_items(client, CLAIM, namespace, deadline, label_selector=label_selector)
    direct = [
        body
        for body in read_items(client, SANDBOX, namespace, deadline, label_selector=label_selector)
        if annotation(body, ACQUIRE_ID_ANNOTATION)
    ]
    found = {str(body["metadata"]["name"]): str(body["metadata"]["uid"]) for body in direct + claims}
    return dict(sorted(found.items()))


def release_many(
    client: Client,
    namespace: str,
    names: t.Iterable[str] | t.Mapping[str, str | None],
    deadline: Deadline,
    *,
    wait: bool = False,
    dry_run: bool = False,
) -> tuple[list[Released], dict[str, SandboxError]]:
    """Release several at once; one that fails does not keep the others.

    Args:
        names: of claims and direct Sandboxes; a mapping gives the uid of each that is meant, or None.
        deadline, wait, dry_run: as for ``release``.

    Returns:
        What was done, in the order of the names, and the failures by name.
    """

    uids: t.Mapping[str, str | None] = names if isinstance(names, collections.abc.Mapping) else dict.fromkeys(names)

    def one(name: str) -> Released | SandboxError:
        try:
            return release(client, namespace, name, deadline, uid=uids[name], wait=wait, dry_run=dry_run)
        except SandboxError as error:
            return error

    ordered = list(uids)
    if not ordered:
        return [], {}
    with concurrent.futures.ThreadPoolExecutor(min(len(ordered), POOL_SIZE), "namzu-release") as threads:
        results = dict(zip(ordered, threads.map(one, ordered), strict=True))
    failures = {name: result for name, result in results.items() if isinstance(result, SandboxError)}
    return [result for result in results.values() if isinstance(result, Released)], failures


def release_all(client: Client, namespace: str, uids: t.Mapping[str, str]) -> dict[str, SandboxError]:
    """Release what an acquire created, on a clock of its own; returns the failures by name.

    Args:
        uids: by name; what has ended, so that another object has its name, is released.
    """
    failures = release_many(client, namespace, uids, Deadline(CLEANUP_SECONDS, client.clock))[1]
    return {name: error for name, error in failures.items() if not isinstance(error, ReplacedError)}
