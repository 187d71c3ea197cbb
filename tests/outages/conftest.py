# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster for each file of these tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

from .outage import command, make_pool


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a cluster with a pool of one ready member."""
    command("up")
    try:
        exports = dict(word.split("=", 1) for word in shlex.split(command("env")) if "=" in word)
        with Client(resolve_access({"kubeconfig": exports["KUBECONFIG"].rstrip(";")}, {})) as made:
            make_pool(made)
            yield made
    finally:
        command("down")
