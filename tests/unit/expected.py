# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a test compares with what the product writes; ``make expected`` writes them again."""

from __future__ import annotations

import os
import pathlib


def assert_expected(path: pathlib.Path, text: str) -> None:
    """Compare a file with a text; with ``NAMZU_WRITE_EXPECTED=1`` in the environment the file is written first."""
    if os.environ.get("NAMZU_WRITE_EXPECTED") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
