# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image that runs plays: pinned packages, and the current collection."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tools.cluster.build import images, runner
from tools.cluster.failures import ClusterError

PINS = """\
ansible-core==2.19.14 \\
    --hash=sha256:00 \\
    --hash=sha256:11
    # via -r py311.in
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:22
jmespath==1.1.0
"""


def collection(folder: Path) -> Path:
    for part in ("meta", "playbooks", "plugins/modules/__pycache__", "roles"):
        (folder / part).mkdir(parents=True)
    (folder / "galaxy.yml").write_text("name: sandbox\n", encoding="utf-8")
    (folder / "plugins/modules/sandbox.py").write_text("x = 1\n", encoding="utf-8")
    (folder / "plugins/modules/sandbox.py").chmod(0o600)
    (folder / "plugins/modules/__pycache__/sandbox.pyc").touch()
    (folder / "tests").mkdir()
    return folder


def test_the_layer_has_the_collections_files_readable_by_every_user(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(runner.collection_layer(collection(tmp_path)))) as tar:
        members = {member.name.removeprefix(f"{runner.COLLECTION}/"): member for member in tar}
    assert {"galaxy.yml", "meta", "playbooks", "roles", "plugins/modules/sandbox.py"} <= set(members)
    assert not [name for name in members if "__pycache__" in name or name.startswith("tests")]
    assert members["plugins/modules/sandbox.py"].mode == 0o644
    assert members["plugins/modules"].mode == 0o755


def test_the_layer_depends_on_the_collection_and_not_on_time(tmp_path: Path) -> None:
    folder = collection(tmp_path)
    before = runner.collection_layer(folder)
    (folder / "galaxy.yml").touch()
    assert runner.collection_layer(folder) == before
    (folder / "galaxy.yml").write_text("name: changed\n", encoding="utf-8")
    assert runner.collection_layer(folder) != before


def test_pins_are_read_without_hashes() -> None:
    lines = runner.without_hashes(PINS).splitlines()
    assert [line.strip() for line in lines] == [
        "ansible-core==2.19.14",
        "colorama==0.4.6 ; sys_platform == 'win32'",
        "jmespath==1.1.0",
    ]


def test_the_pins_of_the_repository_have_every_package_of_the_image() -> None:
    for version in ("3.11", "3.12", "3.13"):
        names = {
            line.split("==")[0].lower() for line in runner.without_hashes(runner._pins(version).read_text()).split("\n")
        }
        assert {package.lower() for package in runner.PACKAGES} <= names


def test_an_image_has_its_layers_in_order_and_its_version(tmp_path: Path) -> None:
    tags = (images.PYTHON_IMAGE, "localhost/namzu/python:3.11")
    images.write_archive([b"lower", b"upper"], tmp_path / "python.tar", images.Image(tags, ("python3",)))
    assert images.python_layer(tmp_path) == b"lower"
    assert runner.python_version(tmp_path) == "3.11"
    with tarfile.open(tmp_path / "python.tar") as tar:
        manifest = json.load(tar.extractfile("manifest.json") or io.BytesIO())[0]
        configuration = json.load(tar.extractfile(manifest["Config"]) or io.BytesIO())
    assert manifest["Layers"] == ["layer-0.tar", "layer-1.tar"]
    assert len(configuration["rootfs"]["diff_ids"]) == len(configuration["history"]) == 2


def test_an_image_without_a_version_is_refused(tmp_path: Path) -> None:
    images.write_archive([b""], tmp_path / "python.tar", images.Image((images.PYTHON_IMAGE,), ("python3",)))
    with pytest.raises(ClusterError, match="no tag"):
        runner.python_version(tmp_path)
