# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option that cannot be enforced is refused with the reason and the alternative, and documented with both.

``make expected`` writes docs/reference/refused-options.md again.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.doc_fragments import container, refused
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.refused import (
    OF_A_CLUSTER,
    OF_A_TEMPLATE,
    OF_AN_ENGINE,
    REFUSED_OPTIONS,
    RefusedOption,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox, sandbox_lease, workspace

from ...expected import assert_expected

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "reference" / "refused-options.md"
VALUES: dict[str, t.Any] = {
    "dict": {"A": "b"},
    "str": "1",
    "int": 1,
    "bool": True,
    "list": ["a"],
    "path": "/a",
    "raw": "x",
}

_HEAD = """<!--
SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Refused options

For people who move a play from one backend to the other: the options that a backend cannot enforce. They are refused
before anything is created. The page is written from the table in `plugins/module_utils/front/options/refused.py`.

| option | refused on | why | instead |
|---|---|---|---|
"""

#: Each option with a verb that has it.
CASES = [
    *((verb, option) for option in OF_A_TEMPLATE for verb in (sandbox.VERB, workspace.VERB)),
    *((sandbox.VERB, option) for option in OF_AN_ENGINE),
    *((sandbox.VERB if option.name in sandbox.VERB.options else sandbox_lease.VERB, option) for option in OF_A_CLUSTER),
]

every_option = pytest.mark.parametrize("option", REFUSED_OPTIONS, ids=lambda option: f"{option.backend}-{option.name}")


@pytest.mark.parametrize(("verb", "option"), CASES, ids=lambda one: one.name)
def test_option_is_refused_before_anything_is_sent(verb: Verb, option: RefusedOption) -> None:
    given = {name: spec.get("default") for name, spec in verb.options.items()}
    given |= {"name": "box", "remaining": "1m", option.name: VALUES[option.spec["type"]]}
    # There is no server to connect to.
    result = perform(verb, given, Context(check_mode=False, environ={"NAMZU_SANDBOX_BACKEND": option.backend}))
    assert (result["failed"], result["reason"], result["retryable"]) == (True, "invalid-input", False)
    assert result["msg"].startswith(f"{option.name} ")
    assert option.why in result["msg"]
    assert option.instead in result["msg"]


@pytest.mark.parametrize(
    ("fragment", "option"),
    [
        *((refused, option) for option in OF_A_TEMPLATE),
        *((container, option) for option in (*OF_A_TEMPLATE, *OF_AN_ENGINE)),
    ],
    ids=lambda one: getattr(one, "name", None) or one.__name__.rpartition(".")[2],
)
def test_documentation_has_the_reason_and_the_alternative(fragment: t.Any, option: RefusedOption) -> None:
    described = yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"][option.name]["description"]
    plain = [re.sub(r"M\(([^)]*)\)", r"\1", line) for line in described]
    where = "" if fragment is refused else " on Kubernetes"
    assert plain[-2:] == [f"Refused{where}. {option.why}", option.instead]


def test_page_is_the_table() -> None:
    rows = [f"| `{one.name}` | {one.backend} | {one.why} | {one.instead} |" for one in REFUSED_OPTIONS]
    assert_expected(PAGE, _HEAD + "\n".join(rows) + "\n")


@every_option
def test_alternative_of_a_role_exists(option: RefusedOption) -> None:
    specs = yaml.safe_load((ROOT / "roles/template/meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = specs["argument_specs"]["main"]["options"]
    for variable in re.findall(r"template_[a-z_]+", option.instead):
        assert variable in known
