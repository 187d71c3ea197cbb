# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next steps of an error name only options that the verb has."""

from __future__ import annotations

import ast
import importlib
import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import (
    Context,
    Result,
    Verb,
    applicable,
    known_options,
    perform,
)

ROOT = pathlib.Path(__file__).resolve().parents[3] / "plugins"
VERBS = sorted(path.stem for path in (ROOT / "modules").glob("*.py") if path.stem != "__init__")


def texts() -> set[str]:
    """Every text of the core that is given as a next step, also as a part of one."""
    found = set()
    for path in (ROOT / "module_utils").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "next_step":
                found |= {
                    one.value
                    for one in ast.walk(node.value)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
    return found


def verb(name: str) -> Verb:
    found = importlib.import_module(f"ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.{name}").VERB
    assert isinstance(found, Verb)
    return found


def test_there_are_steps_to_look_at() -> None:
    assert sum("ready_timeout" in text for text in texts()) >= 2


@pytest.mark.parametrize("name", VERBS)
def test_no_step_of_the_core_names_an_option_that_the_verb_lacks(name: str) -> None:
    options = verb(name).options
    foreign = {option for option in known_options() - options.keys() if "_" in option}
    for text in texts():

        def fail(_params: t.Any, _context: t.Any, step: str = text) -> Result:
            raise SandboxError("SandboxClaim agents/a: not ready.", next_step=step)

        result = perform(Verb(name, options, fail), {}, Context(check_mode=False, environ={}))
        assert result["msg"].startswith("SandboxClaim agents/a: not ready.")
        for sentence in result["msg"].split(". "):
            if "namzu.sandbox." not in sentence:
                assert not {word.strip(".,;:()") for word in sentence.split()} & foreign


def test_step_keeps_what_applies() -> None:
    step = "Look at the pod and at the log of the controller; a longer ready_timeout may be enough."
    assert applicable(step, verb("sandbox").options) == step
    assert applicable(step, verb("sandbox_exec").options) == "Look at the pod and at the log of the controller."
