# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every reason is in one table, with which classes, code, docs and modules agree.

``make expected`` writes docs/reference/reasons.md again.
"""

from __future__ import annotations

import ast
import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import REASONS, SandboxError

from .expected import assert_expected
from .test_errors import CLASSES, ROOT, example

PAGE = ROOT / "docs" / "reference" / "reasons.md"
MODULES = sorted(path for path in (ROOT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")

_HEAD = """<!--
SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Reasons

For people and programs that handle failures: every value of `reason` in a failed result and in a `SandboxError`. The
page is written from the table `REASONS` in `plugins/module_utils/errors.py`. Retryable says whether the same call may
succeed later, unchanged; where it depends, the field `retryable` of the error says so.

| reason | retryable | meaning |
|---|---|---|
"""


def page() -> str:
    shown = {True: "yes", False: "no", None: "depends"}
    rows = [f"| `{one.name}` | {shown[one.retryable]} | {one.meaning} |" for one in REASONS.values()]
    return _HEAD + "\n".join(rows) + "\n"


def test_page_is_the_table() -> None:
    assert_expected(PAGE, page())


def test_table_is_in_order() -> None:
    assert list(REASONS) == sorted(REASONS)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__qualname__)
def test_class_has_a_reason_of_the_table(kind: type[SandboxError]) -> None:
    known = REASONS[kind.reason]
    if kind.reason != "error" and known.retryable is not None and "reason" in vars(kind):
        assert example_retryable(kind) == known.retryable


def example_retryable(kind: type[SandboxError]) -> bool:
    return kind.retryable if "retryable" in vars(kind) else example(kind).retryable


def _reasons_in(path: pathlib.Path) -> t.Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "reason":
            yield from _texts(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "reason":
                    yield from _texts(value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Complaint":
            yield from _texts(node.args[0])


def _texts(node: ast.expr) -> t.Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)


def test_code_uses_reasons_of_the_table() -> None:
    used = {reason for path in (ROOT / "plugins").rglob("*.py") for reason in _reasons_in(path)}
    assert used
    assert not used - REASONS.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_names_reasons_of_the_table(path: pathlib.Path) -> None:
    text = re.search(r'RETURN = r"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    described = yaml.safe_load(text[1]).get("reason", {}).get("description", [])
    lines = described if isinstance(described, list) else [described]
    named = {name for line in lines for name in re.findall(r"V\(([a-z-]+)\)", line)}
    assert not named - REASONS.keys()
