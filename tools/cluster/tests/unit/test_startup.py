# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps run in the order of their needs, and a failure stops the start."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.cluster import startup, status
from tools.cluster.build.materials import Materials
from tools.cluster.build.objects import Objects
from tools.cluster.build.programs import Programs
from tools.cluster.components import health
from tools.cluster.components.table import Component, components
from tools.cluster.failures import ClusterError
from tools.cluster.host import network
from tools.cluster.layout import Layout
from tools.cluster.progress import Progress
from tools.cluster.startup import Step
from tools.cluster.status import Kind


def run(steps: list[Step], stop: threading.Event | None = None) -> None:
    startup.run_steps(steps, stop or threading.Event(), Progress(io.StringIO()))


def test_a_step_runs_after_the_steps_that_it_needs() -> None:
    order: list[str] = []
    names = {"d": ("b", "c"), "c": ("a",), "b": ("a",), "a": ()}
    run([Step(name, lambda name=name: order.append(name), needs) for name, needs in names.items()])  # type: ignore[misc]
    assert order[0] == "a"
    assert order[3] == "d"


def test_steps_that_do_not_need_each_other_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)
    run([Step("one", lambda: _ignore(meeting.wait())), Step("two", lambda: _ignore(meeting.wait()))])


def _ignore(_value: object) -> None:
    return None


@pytest.mark.parametrize("failure", [ClusterError("etcd ended"), ConnectionRefusedError("refused")])
def test_a_failure_stops_running_and_waiting_steps(failure: Exception) -> None:
    stop = threading.Event()

    def fail() -> None:
        raise failure

    with pytest.raises(ClusterError, match=r"etcd ended|crds: refused"):
        run(
            [Step("crds", fail), Step("long", lambda: _ignore(stop.wait(10))), Step("later", pytest.fail, ("crds",))],
            stop,
        )
    assert stop.is_set()


class LogLayout(Layout):
    """An instance whose folders are in the working directory of the test."""

    @property
    def state(self) -> Path:
        return Path.cwd()


@pytest.fixture(name="layout")
def layout_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.chdir(tmp_path)
    layout = LogLayout(1)
    layout.logs.mkdir()
    return layout


def never() -> str | None:
    return "refused"


def script(text: str, healthy: Callable[[], str | None] = never) -> Component:
    return Component("unit-test", (sys.executable, "-c", text), healthy)


def test_the_error_of_an_ended_component_has_its_last_log_lines(layout: Layout) -> None:
    talk = "import sys; [print('line', number) for number in range(40)]; sys.exit(7)"
    with pytest.raises(ClusterError) as caught:
        startup.start_component(layout, script(talk), threading.Event())
    text = str(caught.value)
    assert "unit-test ended with code 7 while starting" in text
    assert str(layout.logs / "unit-test.log") in text
    assert "line 39" in text
    assert text.count("line ") == 15


def test_a_component_is_not_started_after_a_stop(layout: Layout) -> None:
    stop = threading.Event()
    stop.set()
    startup.start_component(layout, script("open('started', 'w').close()"), stop)
    assert list(layout.logs.iterdir()) == []


@pytest.mark.parametrize("enforce", [False, True])
def test_every_need_of_a_component_is_a_step(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, enforce: bool
) -> None:
    programs = Programs(tmp_path, enforce)
    layout.volumes.mkdir()
    monkeypatch.setattr("tools.cluster.build.packages.find", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(startup, "administrator_api", lambda _path: None)
    materials = Materials(programs, tmp_path, tmp_path, Objects((), (), ()))
    steps = startup.steps(layout, materials, threading.Event())
    names = {step.name for step in steps}
    assert {component.name for component in components(layout, programs)} <= names
    assert {need for step in steps for need in step.needs} <= names


def test_a_bare_cluster_is_etcd_and_the_api_server(layout: Layout, tmp_path: Path) -> None:
    bare = components(layout, Programs(tmp_path), bare=True)
    assert [component.name for component in bare] == ["etcd", "kube-apiserver"]
    assert {need for component in bare for need in component.needs} <= {"etcd"}


@pytest.mark.parametrize(("enforce", "inside"), [(False, ["kube-proxy"]), (True, ["kube-proxy", "kube-router"])])
def test_only_kube_proxy_and_kube_router_run_in_the_pods_network(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, enforce: bool, inside: list[str]
) -> None:
    monkeypatch.setattr("tools.cluster.build.packages.find", lambda program: f"/usr/bin/{program}")
    found = components(layout, Programs(tmp_path, enforce))
    assert [component.name for component in found if component.network] == inside


def test_kube_router_starts_when_the_rules_of_kube_proxy_exist(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tools.cluster.build.packages.find", lambda program: f"/usr/bin/{program}")
    found = {component.name: component for component in components(layout, Programs(tmp_path, enforce=True))}
    assert "kube-proxy" in found["kube-router"].needs
    rules = "-N KUBE-SERVICES\n"
    monkeypatch.setattr(network, "inside", lambda *_argv: rules)
    assert health.service_rules(layout)() == "the rules of services are missing"
    rules += f"-A KUBE-SERVICES -d {layout.service_address}/32 -p tcp -j KUBE-SVC-NPX46M4PTMTKRN6Y\n"
    assert health.service_rules(layout)() is None


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("enforce", [False, True])
def test_the_kind_of_an_instance_is_recorded(layout: Layout, bare: bool, enforce: bool) -> None:
    assert status.kind(layout) is None
    Programs(layout.state, enforce).write(layout.programs_record)
    if bare:
        layout.bare_marker.touch()
    assert status.kind(layout) == Kind(bare, enforce)


def test_kinds_have_different_names() -> None:
    assert len({str(Kind(bare, enforce)) for bare, enforce in [(True, False), (False, False), (False, True)]}) == 3


def test_waiting_ends_with_a_stop() -> None:
    stop = threading.Event()
    stop.set()
    startup.wait_until(never, stop)


def test_nothing_listens_on_every_address(layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.cluster.build.packages.find", lambda program: f"/usr/bin/{program}")
    arguments = [word for component in components(layout, Programs(tmp_path)) for word in component.argv]
    assert [word for word in arguments if "0.0.0.0" in word] == []  # noqa: S104 (looked for, not used)
    assert "--bind-address=127.0.0.1" in arguments
