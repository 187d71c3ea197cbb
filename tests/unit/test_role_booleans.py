# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's boolean may come from the command line (``-e claimant_direct=false``): a text, which counts as true.

So every condition on one says ``| bool``; a module's option that is nothing but the variable converts it itself.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

ROLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "roles").iterdir())
CONDITIONS = {"when", "that", "changed_when", "failed_when", "until"}
EXPRESSION = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)


def conditions(node: t.Any) -> t.Iterator[str]:
    """What tasks depend on, anywhere below."""
    if isinstance(node, list):
        for one in node:
            yield from conditions(one)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in CONDITIONS:
                yield from (str(one) for one in (value if isinstance(value, list) else [value]))
            else:
                yield from conditions(value)


def expressions(role: pathlib.Path) -> t.Iterator[str]:
    """The conditions and the expressions of a role."""
    for path in sorted(role.glob("**/*")):
        if path.suffix not in {".yml", ".j2"} or path.relative_to(role).parts[0] in {"files", "meta", "defaults"}:
            continue
        text = path.read_text(encoding="utf-8")
        yield from (inside or block for inside, block in EXPRESSION.findall(text))
        if path.suffix == ".yml":
            yield from conditions(yaml.safe_load(text))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_condition_on_a_boolean_converts_it(role: pathlib.Path) -> None:
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    booleans = [name for name, option in options.items() if option["type"] == "bool"]
    for expression in expressions(role):
        for name in booleans:
            if expression.strip() != name:
                bare = re.search(rf"\b{name}\b(?!\s*\|\s*bool\b)", expression)
                assert bare is None, f"{role.name}: {name} without | bool in: {' '.join(expression.split())}"
