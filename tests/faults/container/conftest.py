# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake engine, and clients that are impatient."""

from __future__ import annotations

import pathlib
import tempfile
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import EngineAccess
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FakeEngine


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[FakeEngine]:
    # Paths of Unix sockets are short, and those of pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="nz-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(acquire, "CLEANUP_SECONDS", 5.0)
        made = FakeEngine(pathlib.Path(folder))
        yield made
        made.close()


@pytest.fixture
def client(engine: FakeEngine) -> EngineClient:
    return EngineClient(EngineAccess(f"unix://{engine.path}", timeout=1.5))


@pytest.fixture
def folders(engine: FakeEngine) -> t.Callable[[], list[str]]:
    """The folders of sockets that exist now."""

    def found() -> list[str]:
        return [path.name for path in (engine.path.parent / "namzu-sandbox").glob("*/*")]

    return found
