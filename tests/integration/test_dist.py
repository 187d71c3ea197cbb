# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as others get it: built, installed into an empty path, and run from there."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(sys.executable).parent

#: What others need of this clone, beside what ansible-galaxy adds.
TOP = {
    "CHANGELOG.md", "LICENSE", "LICENSES", "README.md", "REUSE.toml",
    "changelogs", "docs", "meta", "playbooks", "plugins", "roles",
}  # fmt: skip
ADDED = {"FILES.json", "MANIFEST.json"}
#: Python's own, and Ansible's with the PyYAML that it brings, which ansible-builder leaves out of every list.
BROUGHT = {"ansible", "ansible_collections", "yaml"} | sys.stdlib_module_names
#: Imported by the Python API alone, which no play uses.
OF_THE_API = {"greenlet"}
#: With what ansible-builder marks a requirement of ours.
OURS = "# from collection namzu.sandbox"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What `make dist` makes before it runs the demo."""
    folder = tmp_path_factory.mktemp("dist")
    made = ["make", "--silent", "collection", f"DIST={folder}"]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def tarball(dist: pathlib.Path) -> tarfile.TarFile:
    (file,) = dist.glob("*.tar.gz")
    return tarfile.open(file)


def test_the_tarball_holds_the_collection_and_nothing_of_its_workshop(dist: pathlib.Path) -> None:
    with tarball(dist) as opened:
        names = opened.getnames()
        licences = [name for name in names if name.startswith("LICENSES/")]
        manifest = json.load(opened.extractfile("MANIFEST.json"))["collection_info"]
    assert {name.partition("/")[0] for name in names} == TOP | ADDED
    assert not [name for name in names if re.search(r"(^|/)(\.|__pycache__|build$|tests/)|\.pyc$", name)]
    assert {f"LICENSES/{licence}.txt" for licence in manifest["license"]} == set(licences)
    assert all(manifest[link].startswith("https://") for link in ("repository", "documentation", "homepage", "issues"))
    assert list(manifest["dependencies"]) == ["kubernetes.core"]


def test_the_demo_runs_from_the_empty_path_that_it_was_installed_into(play, namespace_name, image, dist) -> None:
    given = {"demo_namespace": namespace_name, "demo_image": image, "demo_replicas": 1}
    only = {"ANSIBLE_COLLECTIONS_PATH": str(dist), "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"}
    ran = play.command("namzu.sandbox.demo", "-vvvv", "--extra-vars", json.dumps(given), environment=only)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "May I become root?                 no" in ran.stdout
    installed = str(dist / "ansible_collections" / "namzu" / "sandbox")
    assert re.findall(r"Loading collection namzu\.sandbox from (\S+)", ran.stdout) == [installed]
    tasks = re.findall(r"^task path: (.+):\d+$", ran.stdout, re.MULTILINE)
    assert tasks
    assert [path for path in tasks if not path.startswith(installed)] == []


def test_an_execution_environment_gets_the_packages_that_the_collection_imports_and_no_others(dist) -> None:
    command = [str(PROGRAMS / "ansible-builder"), "introspect", str(dist)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stderr
    found = yaml.safe_load(said.stdout)
    assert OURS not in str(found["system"])
    named = {re.split(r"[^\w-]", line)[0].lower() for line in found["python"] if line.endswith(OURS)}
    distributions = importlib.metadata.packages_distributions()
    plugins = dist / "ansible_collections" / "namzu" / "sandbox" / "plugins"
    imported = {module for file in plugins.rglob("*.py") for module in modules_of(file)} - BROUGHT - OF_THE_API
    assert named == {distributions[module][0].lower() for module in imported}


def test_ansible_builder_takes_the_definition_of_the_guide_with_the_tarball(dist, tmp_path: pathlib.Path) -> None:
    page = (ROOT / "docs" / "guides" / "awx.md").read_text()
    (definition,) = re.findall(r"^```yaml\n# execution-environment.yml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "execution-environment.yml").write_text(definition)
    (built,) = dist.glob("*.tar.gz")
    shutil.copy(built, tmp_path)
    command = [str(PROGRAMS / "ansible-builder"), "create", "--context", str(tmp_path / "context")]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    # It is built in this folder, where Galaxy's file names it.
    context = tmp_path / "context" / "_build"
    (wanted,) = yaml.safe_load((context / "requirements.yml").read_text())["collections"]
    assert (context / wanted["name"]).read_bytes() == built.read_bytes()


def modules_of(file: pathlib.Path) -> set[str]:
    """The top-level modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found
