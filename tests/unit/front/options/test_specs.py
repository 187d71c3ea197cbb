# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option tables and the documentation say the same about every option of every verb."""

from __future__ import annotations

import importlib
import pathlib
import typing as t

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import ENVIRONMENT
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import ACCESS
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Verb

PLUGINS = "ansible_collections.namzu.sandbox.plugins"
ROOT = pathlib.Path(__file__).resolve().parents[4]
VERBS = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")

#: What does not lead to the API server, but stands among the options that do.
NOT_OF_THE_ENVIRONMENT = {"namespace", "request_timeout"}

Table = dict[str, dict[str, t.Any]]

every_verb = pytest.mark.parametrize("name", VERBS)


def verb(name: str) -> Verb:
    found = importlib.import_module(f"{PLUGINS}.module_utils.front.verbs.{name}").VERB
    assert isinstance(found, Verb)
    return found


def documentation(name: str) -> dict[str, t.Any]:
    """A module's documentation with its fragments."""
    module = importlib.import_module(f"{PLUGINS}.modules.{name}")
    documented: dict[str, t.Any] = yaml.safe_load(module.DOCUMENTATION)
    options: Table = dict(documented.get("options", {}))
    for fragment in documented.get("extends_documentation_fragment", []):
        part = importlib.import_module(f"{PLUGINS}.doc_fragments.{fragment.rpartition('.')[2]}")
        for option, described in yaml.safe_load(part.ModuleDocFragment.DOCUMENTATION)["options"].items():
            assert option not in options, f"{option} is described twice"
            options[option] = described
    documented["options"] = options
    return documented


def facts(table: Table, nested: str) -> dict[str, t.Any]:
    """What both sides say about each option, in one shape."""
    return {
        name: {
            "type": option.get("type", "str"),
            "elements": option.get("elements"),
            "default": option.get("default"),
            "choices": sorted(option.get("choices", [])),
            "aliases": sorted(option.get("aliases", [])),
            "required": bool(option.get("required", False)),
            "inside": facts(option.get(nested, {}), nested),
        }
        for name, option in table.items()
    }


def test_there_are_verbs() -> None:
    assert {"sandbox", "sandbox_exec"} <= set(VERBS)


@every_verb
def test_documentation_equals_the_option_table(name: str) -> None:
    assert facts(documentation(name)["options"], "suboptions") == facts(verb(name).options, "options")


@every_verb
def test_every_option_is_described(name: str) -> None:
    for option, described in documentation(name)["options"].items():
        assert described["description"], option
        for inner, inside in described.get("suboptions", {}).items():
            assert inside["description"], f"{option}.{inner}"


@every_verb
def test_module_and_action_and_verb_have_one_name(name: str) -> None:
    action = importlib.import_module(f"{PLUGINS}.action.{name}").ActionModule
    module = importlib.import_module(f"{PLUGINS}.modules.{name}")
    assert verb(name).name == documentation(name)["module"] == name
    assert action.verb is verb(name)
    assert module.VERB is verb(name)


@every_verb
def test_every_verb_has_the_access_options(name: str) -> None:
    assert ACCESS.items() <= verb(name).options.items()


@every_verb
def test_constraints_name_options_that_exist(name: str) -> None:
    def words(value: t.Any) -> set[str]:
        if isinstance(value, bool):
            return set()
        return {value} if isinstance(value, str) else set().union(*map(words, value))

    known = set(verb(name).options) | {"present", "absent", "running", "suspended", "started", "stopped"}
    for constraint in verb(name).constraints.values():
        assert words(constraint) <= known


@every_verb
def test_documentation_speaks_of_check_mode_and_diff(name: str) -> None:
    attributes = documentation(name)["attributes"]
    for attribute in ("check_mode", "diff_mode"):
        assert attributes[attribute]["support"] in ("full", "partial", "none")


@every_verb
def test_examples_are_accepted_by_the_option_table(name: str) -> None:
    module = importlib.import_module(f"{PLUGINS}.modules.{name}")
    for task in yaml.safe_load(module.EXAMPLES):
        for used, options in task.items():
            if used.startswith("namzu.sandbox."):
                of_task = verb(used.rpartition(".")[2])
                validator = ArgumentSpecValidator(of_task.options, **of_task.constraints)
                assert validator.validate(templated(of_task, options)).error_messages == []


def templated(of_task: Verb, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """The options with a value of its type for each that an expression gives as a whole."""
    whole = {"dict": {}, "list": []}
    types = {name: option.get("type", "str") for name, option in of_task.options.items()}
    return {
        name: whole.get(types.get(name, "str"), value) if str(value).startswith("{{") else value
        for name, value in options.items()
    }


@pytest.mark.parametrize("option", sorted(set(ACCESS) - NOT_OF_THE_ENVIRONMENT))
def test_access_option_has_its_variables(option: str) -> None:
    assert f"K8S_AUTH_{option.upper()}" in ENVIRONMENT[option]


def test_environment_names_no_other_option() -> None:
    assert set(ENVIRONMENT) == set(ACCESS) - NOT_OF_THE_ENVIRONMENT


@pytest.mark.parametrize("option", ["ca_cert", "client_cert", "client_key", "validate_certs"])
def test_alias_has_its_variable_too(option: str) -> None:
    for alias in ACCESS[option]["aliases"]:
        assert f"K8S_AUTH_{alias.upper()}" in ENVIRONMENT[option]


@pytest.mark.parametrize("option", sorted(set(ACCESS) - NOT_OF_THE_ENVIRONMENT))
def test_documentation_of_an_access_option_names_a_variable(option: str) -> None:
    described = " ".join(documentation("sandbox")["options"][option]["description"])
    assert any(f"E({variable})" in described for variable in ENVIRONMENT[option])


@every_verb
def test_option_that_holds_a_secret_is_not_logged(name: str) -> None:
    assert verb(name).options["api_key"]["no_log"] is True
