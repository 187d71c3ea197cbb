# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example of the documentation runs as it stands."""

from __future__ import annotations

import pathlib
import re

import pytest


def test_the_example_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = next(
        place.read_text(encoding="utf-8")
        for up in pathlib.Path(__file__).resolve().parents
        if (place := up / "docs" / "reference" / "boundaries.md").is_file()
    )
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, "docs/reference/boundaries.md", "exec"), {})  # noqa: S102 - our own documentation
    assert "NetworkPolicy agents/web-for-all, egress rule 0" in capsys.readouterr().out
