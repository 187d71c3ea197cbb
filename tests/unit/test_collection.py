# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as a whole: its metadata agree with its files, and its files keep to the house's rules."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST_FILE = 400
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
APACHE = ("wheel/", "plugins/module_utils/", "roles/template/files/agent/")
# Written by tools, and licensed in REUSE.toml.
HEADERLESS = re.compile(r"requirements/.*\.txt|LICENSE.*|.*\.(json|sum|mod)|changelogs/changelog\.yaml|tests/.*\.ya?ml")


def files_of_the_clone() -> list[str]:
    """What git tracks, and what is new and not ignored."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())


FILES = files_of_the_clone()
PYTHON = [name for name in FILES if name.endswith(".py")]


def read_yaml(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text())


def plugins_of(kind: str) -> set[str]:
    return {path.stem for path in (ROOT / "plugins" / kind).glob("*.py") if path.stem != "__init__"}


def test_the_clone_has_files() -> None:
    assert "galaxy.yml" in FILES
    assert len(PYTHON) > 10


def test_galaxy_metadata_name_the_collection() -> None:
    galaxy = read_yaml("galaxy.yml")
    assert (galaxy["namespace"], galaxy["name"]) == ("namzu", "sandbox")
    assert re.fullmatch(r"\d+\.\d+\.\d+", galaxy["version"])
    assert galaxy["license"] == ["GPL-3.0-or-later", "Apache-2.0"]
    assert (ROOT / galaxy["readme"]).is_file()


def test_every_licence_that_galaxy_metadata_name_is_here() -> None:
    for licence in read_yaml("galaxy.yml")["license"]:
        assert (ROOT / "LICENSES" / f"{licence}.txt").is_file()


def test_every_verb_is_a_module_and_an_action() -> None:
    assert plugins_of("modules"), "there is no module at all"
    assert plugins_of("modules") == plugins_of("action")


@pytest.mark.parametrize("group", ["all", "sandbox"])
def test_action_group_holds_every_verb(group: str) -> None:
    members = read_yaml("meta/runtime.yml")["action_groups"][group]
    assert members == sorted(plugins_of("modules"))


def test_action_group_agent_holds_every_verb_that_takes_it() -> None:
    documents = {name: (ROOT / f"plugins/modules/{name}.py").read_text() for name in plugins_of("modules")}
    taking = sorted(name for name, text in documents.items() if "- namzu.sandbox.agent\n" in text)
    assert read_yaml("meta/runtime.yml")["action_groups"]["agent"] == taking != []


def test_execution_environment_names_files_that_exist() -> None:
    for file in read_yaml("meta/execution-environment.yml")["dependencies"].values():
        assert (ROOT / file).is_file()


@pytest.mark.parametrize("name", PYTHON)
def test_file_is_short_enough_to_read(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("name", PYTHON)
def test_file_name_says_what_is_in_it(name: str) -> None:
    assert pathlib.PurePath(name).stem not in NAMES_THAT_SAY_NOTHING


@pytest.mark.parametrize("name", [name for name in FILES if not HEADERLESS.fullmatch(name)])
def test_file_names_the_licence_of_its_folder(name: str) -> None:
    content = (ROOT / name).read_text()
    if pathlib.PurePath(name).name == "__init__.py" and not content:
        return
    licence = "Apache-2.0" if name.startswith(APACHE) else "GPL-3.0-or-later"
    head = "\n".join(content.splitlines()[:8])
    # REUSE-IgnoreStart
    assert f"SPDX-License-Identifier: {licence}" in head
    assert "SPDX-FileCopyrightText: 2026 The namzu.sandbox authors" in head
    # REUSE-IgnoreEnd
