# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option that cannot be enforced is refused with the reason and the alternative, and documented with both."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.doc_fragments.refused import ModuleDocFragment
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.refused import REFUSED_OPTIONS, RefusedOption
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox, workspace

ROOT = pathlib.Path(__file__).resolve().parents[4]
VALUES: dict[str, t.Any] = {"dict": {"A": "b"}, "str": "1", "int": 1}

every_option = pytest.mark.parametrize("option", REFUSED_OPTIONS, ids=lambda option: option.name)


@every_option
@pytest.mark.parametrize("verb", [sandbox.VERB, workspace.VERB], ids=lambda verb: verb.name)
def test_option_is_refused_before_anything_is_sent(verb: Verb, option: RefusedOption) -> None:
    given = {name: spec.get("default") for name, spec in verb.options.items()}
    given[option.name] = VALUES[option.spec["type"]]
    # There is no server to connect to.
    result = perform(verb, given, Context(check_mode=False, environ={}))
    assert (result["failed"], result["reason"], result["retryable"]) == (True, "invalid-input", False)
    assert result["msg"].startswith(f"{option.name} ")
    assert option.why in result["msg"]
    assert option.instead in result["msg"]


@every_option
def test_documentation_has_the_reason_and_the_alternative(option: RefusedOption) -> None:
    described = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"][option.name]["description"]
    plain = [re.sub(r"M\(([^)]*)\)", r"\1", line) for line in described]
    assert plain == [f"Refused. {option.why}", option.instead]


@every_option
def test_alternative_of_a_role_exists(option: RefusedOption) -> None:
    specs = yaml.safe_load((ROOT / "roles/template/meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = specs["argument_specs"]["main"]["options"]
    for variable in re.findall(r"template_[a-z_]+", option.instead):
        assert variable in known
