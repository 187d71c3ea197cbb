# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors can be copied and pickled, and are never changed after they were made."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pathlib
import pickle
import pkgutil
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins import module_utils
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError

ROOT = pathlib.Path(__file__).parents[2]


def all_modules() -> t.Iterator[t.Any]:
    for found in pkgutil.walk_packages(module_utils.__path__, module_utils.__name__ + "."):
        yield importlib.import_module(found.name)


def every_class() -> list[type[SandboxError]]:
    for _module in all_modules():
        pass
    found, left = set(), [SandboxError]
    while left:
        one = left.pop()
        found.add(one)
        left += one.__subclasses__()
    return sorted(found, key=lambda one: one.__qualname__)


CLASSES = every_class()

_VALUES: dict[str, t.Any] = {
    "message": "It failed.",
    "status": 404,
    "excess": {"CapEff": "all"},
    "before": {"pod": "a"},
    "left": [{"pid": 1}],
    "outcomes": [],
    "retryable": True,
    "next_step": "Do something.",
}

#: What a class passes on to its base, which requires it.
_OF_A_BASE: dict[str, dict[str, t.Any]] = {"ExecutionDetachedError": {"id": "e1", "offset": 3}}


def example(kind: type[SandboxError]) -> SandboxError:
    """One error of a class, with a value for everything that it requires."""
    required = [
        one
        for one in inspect.signature(kind).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    values = {one.name: _VALUES.get(one.name, f"a {one.name}") for one in required}
    positional = [values.pop(one.name) for one in required if one.kind is not one.KEYWORD_ONLY]
    return kind(*positional, **values, **_OF_A_BASE.get(kind.__name__, {}))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__qualname__)
def test_error_can_be_copied_and_pickled(kind: type[SandboxError]) -> None:
    error = example(kind)
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert again.__class__ is kind
        assert (str(again), again.args, repr(again)) == (str(error), error.args, repr(error))
        assert again.fields() == error.fields()
        assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__qualname__)
def test_replacing_makes_another_error_and_leaves_the_first(kind: type[SandboxError]) -> None:
    error = example(kind)
    text, fields = str(error), error.fields()
    other = error.replace(message="It failed twice.", next_step="Try again.", leftover="Pod a/b")
    assert other.__class__ is kind
    assert (str(other), other.args) == ("It failed twice. Try again.", ("It failed twice.",))
    assert other.fields() == {**fields, "leftover": "Pod a/b"}
    assert (str(error), error.fields()) == (text, fields)


def _changes_an_error(path: pathlib.Path) -> t.Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            continue
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in (
                "message",
                "next_step",
                "leftover",
                "retryable",
                "reason",
                "object",
            ):
                holder = target.value
                if not (isinstance(holder, ast.Name) and holder.id == "self"):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(target)}"


def test_no_error_is_changed_after_it_was_made() -> None:
    changed = [one for path in sorted((ROOT / "plugins").rglob("*.py")) for one in _changes_an_error(path)]
    assert not changed
