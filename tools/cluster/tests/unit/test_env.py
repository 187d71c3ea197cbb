# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of `env` is safe to evaluate."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tools.cluster.existing import ExistingCluster
from tools.cluster.failures import CannotRun, ClusterError
from tools.cluster.layout import Layout
from tools.cluster.local import exports


def evaluated(lines: str, variable: str) -> str:
    """The value of a variable after a POSIX shell evaluated the lines."""
    script = f'eval "$1"; printf %s "${variable}"'
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", lines],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_local_cluster_sets_kubeconfig() -> None:
    assert evaluated(exports(Layout(3), "/bin"), "KUBECONFIG") == "/var/lib/namzu-cluster/3/kubeconfig"


def test_the_local_cluster_comes_first_on_the_path() -> None:
    path = "/opt/with blank/$(touch x)/it's:/usr/bin:/bin"
    assert evaluated(exports(Layout(1), path), "PATH") == f"/var/lib/namzu-cluster/1/bin:{path}"


def test_evaluated_twice_the_path_does_not_grow() -> None:
    once = evaluated(exports(Layout(1), "/usr/bin:/bin"), "PATH")
    assert evaluated(exports(Layout(1), once), "PATH") == once


def test_the_lines_are_readable_without_a_shell() -> None:
    parts = shlex.split(exports(Layout(1), "/usr/bin:/bin"))
    assert dict(word.split("=", 1) for word in parts if "=" in word) == {
        "KUBECONFIG": "/var/lib/namzu-cluster/1/kubeconfig",
        "PATH": "/var/lib/namzu-cluster/1/bin:/usr/bin:/bin",
    }


@pytest.mark.parametrize("name", ["config", "with blank", "it's", "$(touch gone)", "`id`", 'a"b', "a;b", "a\\b", "ä"])
def test_an_existing_kubeconfig_is_quoted(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text("{}", encoding="utf-8")
    ExistingCluster(tmp_path / name).env()
    assert evaluated(capsys.readouterr().out, "KUBECONFIG") == str(tmp_path / name)


def test_a_missing_kubeconfig_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ClusterError, match="does not exist"):
        ExistingCluster(tmp_path / "absent").env()
    assert capsys.readouterr().out == ""


def test_several_kubeconfigs_are_refused() -> None:
    with pytest.raises(CannotRun, match="name one"):
        ExistingCluster.named_by({"KUBECONFIG": "/a:/b"})


def test_bare_and_runner_image_are_refused_for_an_existing_cluster() -> None:
    existing = ExistingCluster(Path("/h/.kube/config"))
    with pytest.raises(CannotRun, match="--bare"):
        existing.up(bare=True)
    with pytest.raises(CannotRun, match="NAMZU_TEST_RUNNER_IMAGE") as caught:
        existing.runner_image()
    assert "\n" not in str(caught.value)


def test_without_kubeconfig_the_existing_cluster_is_kubectls_default() -> None:
    assert ExistingCluster.named_by({"HOME": "/h"}).kubeconfig == Path("/h/.kube/config")
