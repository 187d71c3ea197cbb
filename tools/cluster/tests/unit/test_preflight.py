# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A missing requirement is reported in one line, before anything is changed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tools.cluster import preflight
from tools.cluster.build import packages, programs
from tools.cluster.build.packages import Missing
from tools.cluster.failures import CannotRun
from tools.cluster.layout import Layout


def refusal(caught: pytest.ExceptionInfo[CannotRun]) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.exit_code == 2
    return text


def test_only_linux() -> None:
    with pytest.raises(CannotRun) as caught:
        preflight.check_system("Darwin", "x86_64")
    assert "needs Linux, this is Darwin" in refusal(caught)


def test_only_architectures_that_images_are_made_for() -> None:
    with pytest.raises(CannotRun) as caught:
        preflight.check_system("Linux", "riscv64")
    assert "this is riscv64" in refusal(caught)


def test_root_is_needed() -> None:
    preflight.check_root(0)
    with pytest.raises(CannotRun) as caught:
        preflight.check_root(1000)
    assert "needs root: sudo" in refusal(caught)


@pytest.mark.parametrize(
    ("output", "enough"),
    [
        ("go1.26.8\nlocal\n", True),
        ("go1.26.0\nauto\n", True),
        ("go1.27rc1\nlocal\n", True),
        ("go1.25.9\nlocal\n", False),
        ("go1.25.9\nauto\n", True),
        ("go1.22.1\ngo1.22.1+auto\n", True),
        ("go1.19.8\n\n", False),
        ("devel go1.27-abc\n", False),
        ("", False),
    ],
)
def test_which_go_suffices(output: str, enough: bool) -> None:
    assert preflight.go_suffices(output, (1, 26)) is enough


def test_go_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun) as caught:
        preflight.check_go((1, 26))
    assert "Go 1.26 or newer is missing" in refusal(caught)


def test_go_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho go1.19.8\necho\n", encoding="utf-8")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun) as caught:
        preflight.check_go((1, 26))
    assert "this is 1.19.8" in refusal(caught)


def test_without_apt_the_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: False)
    monkeypatch.setattr(packages, "missing", lambda: Missing(("containerd", "runc"), ("containerd", "runc")))
    with pytest.raises(CannotRun) as caught:
        preflight.check_packages(tmp_path)
    assert "containerd; runc; apt-get" in refusal(caught)


def test_with_apt_missing_programs_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: True)
    monkeypatch.setattr(packages, "missing", lambda: Missing(("containerd",), ("containerd",)))
    preflight.check_packages(tmp_path)


def test_the_error_for_a_taken_port_has_port_use_process_and_next_step() -> None:
    layout = Layout(8)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", layout.port("etcd")))
        listener.listen()
        with pytest.raises(CannotRun) as caught:
            preflight.check_ports(layout)
    text = refusal(caught)
    assert f"port {layout.port('etcd')} (etcd) is taken by" in text
    assert "pid" in text
    assert "NAMZU_CLUSTER_INSTANCE" in text


def test_a_free_port_is_not_taken() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    assert not preflight.port_is_taken(port)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_is_taken_on_one_address_alone(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            other.listen()
        port = other.getsockname()[1]
        assert preflight.port_is_taken(port, "127.0.0.1", kind)
        assert not preflight.port_is_taken(port, Layout(7).node_address, kind)


def test_a_bare_cluster_needs_neither_apt_nor_containers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: False)
    monkeypatch.setattr(packages, "missing", lambda: Missing(("containerd",), ("containerd",)))
    monkeypatch.setattr(programs, "is_missing", lambda _cache: False)
    monkeypatch.setattr(preflight, "check_root", lambda: None)
    preflight.check_bare(tmp_path)
