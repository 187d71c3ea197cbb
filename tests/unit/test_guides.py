# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guides name what is there: plays that Ansible accepts, variables, options, playbooks, targets, pages."""

from __future__ import annotations

import importlib
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ["first-hour", "operators", "awx", "containers"]
PAGES = {name: (ROOT / "docs" / "guides" / f"{name}.md").read_text() for name in GUIDES}
VERBS = "ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs"
#: With what the variables of the roles and the playbooks begin.
PREFIXES = (
    "controller", "namespace", "template", "warm_pool", "boundary", "claimant", "admission_fence",
    "site", "demo", "run", "recover", "retention", "audit", "gate",
)  # fmt: skip
#: Words that begin like variables: fields of results.
FIELDS = {"template_current"}


def blocks(name: str) -> list[t.Any]:
    """The YAML of a page."""
    return [
        yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", PAGES[name], re.MULTILINE | re.DOTALL)
    ]


def plays(name: str) -> list[list[dict[str, t.Any]]]:
    """The playbooks of a page."""
    return [block for block in blocks(name) if isinstance(block, list) and {"hosts", "import_playbook"} & set(block[0])]


def names_there_are() -> set[str]:
    """Options of roles, variables of playbooks, and what is called like them."""
    specs = [yaml.safe_load(file.read_text()) for file in ROOT.glob("roles/*/meta/argument_specs.yml")]
    options = {option for spec in specs for option in spec["argument_specs"]["main"]["options"]}
    playbooks = list(ROOT.glob("playbooks/*.yml"))
    variables = {name for file in playbooks for name in re.findall(r"\b[a-z]+_[a-z_]+\b", file.read_text())}
    return options | variables | {file.stem for file in playbooks} | FIELDS


@pytest.mark.parametrize("name", GUIDES)
def test_plays_of_a_guide_are_plays_to_ansible(name: str, tmp_path: pathlib.Path) -> None:
    files = []
    for number, play in enumerate(plays(name)):
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(yaml.safe_dump(play))
    assert files
    program = pathlib.Path(sys.executable).parent / "ansible-playbook"
    command = [str(program), "--syntax-check", *map(str, files)]
    environment = {"PATH": "/usr/bin:/bin", "ANSIBLE_HOME": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "false"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["first-hour", "operators", "awx"])
def test_variables_of_a_guide_are_variables_of_roles_and_playbooks(name: str) -> None:
    named = set(re.findall(rf"\b(?:{'|'.join(PREFIXES)})_[a-z_]+\b", PAGES[name]))
    assert named
    assert named - names_there_are() == set()


@pytest.mark.parametrize("name", ["first-hour", "operators", "containers"])
def test_tasks_of_a_guide_use_options_that_the_verbs_have(name: str) -> None:
    for play in plays(name):
        for task in [task for part in play for task in part.get("tasks", [])]:
            for action, given in task.items():
                if action.startswith("namzu.sandbox."):
                    verb = importlib.import_module(f"{VERBS}.{action.rpartition('.')[2]}").VERB
                    raise_if_unknown(given, verb.options)


def raise_if_unknown(given: dict[str, t.Any], options: dict[str, dict[str, t.Any]]) -> None:
    assert set(given) - set(options) == set()
    for option, value in given.items():
        if isinstance(value, dict) and "options" in options[option]:
            raise_if_unknown(value, options[option]["options"])


@pytest.mark.parametrize("name", GUIDES)
def test_commands_and_links_of_a_guide_lead_somewhere(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.findall(r"^    (?:eval \"\$\()?make (?:-s )?([a-z-]+)|`make ([a-z-]+)`", PAGES[name], re.MULTILINE)
    assert {one or other for one, other in commands} - targets == set()
    playbooks = {file.stem for file in ROOT.glob("playbooks/*.yml")}
    assert set(re.findall(r"ansible-playbook namzu\.sandbox\.([a-z_]+)", PAGES[name])) - playbooks == set()
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[name]):
        assert (ROOT / "docs" / "guides" / link).exists(), link
    for path in re.findall(r"`((?:tests|playbooks|roles)/[\w./-]+)`", PAGES[name]):
        assert (ROOT / path).exists(), path
