# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Podman keeps running beside a container."""

from __future__ import annotations

import pathlib

import pytest

from .conftest import make_way, run, until


def monitors(uid: str) -> list[str]:
    """The processes of Podman's monitor that belong to a container."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[0].endswith(b"conmon") and uid.encode() in argv:
            found.append(folder.name)
    return found


@pytest.mark.parametrize("way", ["podman-runc-socket", "podman-runc-relay"])
def test_no_monitor_outlives_the_container_with_the_documented_setting(
    request: pytest.FixtureRequest, way: str
) -> None:
    podman = make_way(request, way)
    with podman.sandbox() as sandbox:
        assert run(sandbox, "true").rc == 0
        assert monitors(sandbox.uid)
    until(lambda: not monitors(sandbox.uid), 60.0)
