# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the container backend returns, whatever the order in which an engine lists."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends import container
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.container import ContainerBackend


def test_sandboxes_with_labels_are_in_the_order_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        name = "engine"

    client: t.Any = Client()
    monkeypatch.setattr(container, "held_containers", lambda *_arguments, **_options: {"b": "2", "a": "1"})
    found = ContainerBackend(client, {}, {}).names_matching("job=1", Deadline(1.0))
    assert list(found.items()) == [("a", "1"), ("b", "2")]
