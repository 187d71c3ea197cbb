# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python names are terms of the field, not invented nouns.

Only names are checked. Texts (docstrings, comments, messages, options, documents) are not covered yet, in any area.
"""

from __future__ import annotations

import io
import pathlib
import subprocess
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("plugins", "roles", "playbooks", "docs", "tools", "tests")

#: An invented name, and the name to use in its place. A name is compared without the underscores around it.
INSTEAD = {
    "lifeline": "parent_death_socket",
    "door": "control_socket",
    "knock": "connect",
    "nobody_comes": "clients_closed",
    "Told": "EventRecorder",
    "SAID": "a noun with its unit",
    "LAST_MOMENT": "LAST_READ_MARGIN_SECONDS",
    "LAST_WORDS": "a noun with its unit",
    "LATE_COMERS": "LATE_CLIENT_SECONDS",
    "AFTER_THE_END": "RELEASE_RETRY_SECONDS",
    "CLOSE_CALL": "CLOCK_SKEW_GUARD_SECONDS",
    "FIRST_SHARE": "FIRST_PROBE_FRACTION",
    "Standing": "SandboxInfo",
    "Making": "ManifestBuilder",
    "Book": "LeaseRegistry",
    "Story": "LeaseReport",
    "Pulse": "Heartbeat",
    "Typist": "InputPump",
    "Doubt": "Uncertainty",
    "Judge": "filter",
}


def invented(source: str) -> list[str]:
    """The invented names in a Python source, each with its line number and the name to use."""
    return [
        f"{token.start[0]}: {token.string} (use {INSTEAD[token.string.strip('_')]})"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string.strip("_") in INSTEAD
    ]


def test_invented_name_is_found() -> None:
    assert invented("def f(_door):\n    return 'door'\n") == ["1: _door (use control_socket)"]


def test_no_python_name_is_invented() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [name for name in listed.split("\0") if name.endswith(".py") and (ROOT / name).is_file()]
    assert len(files) > 100
    found = [f"{name}:{line}" for name in files for line in invented((ROOT / name).read_text("utf-8"))]
    assert found == []
