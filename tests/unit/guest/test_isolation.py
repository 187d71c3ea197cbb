# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An isolation is stated only where the probe inside and the backend agree."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.isolation import (
    check_engine_isolation,
    judge_container,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import Confinement, ContainerRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.isolation import (
    Isolation,
    IsolationError,
    Level,
    RuntimeEvidence,
    judge_isolation,
    runtime_level,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.privileges import Kernel, Privileges

MAPPED = ((0, 100000, 65536),)
IDENTITY = ((0, 0, 0xFFFFFFFF),)


def probed(kernel: Kernel, uid_map: tuple[tuple[int, int, int], ...] = ()) -> Privileges:
    return Privileges(0, 0, 0, 0, 0, True, 1000, 2, kernel, uid_map)


def evidence(handler: str | None, **changes: t.Any) -> RuntimeEvidence:
    return RuntimeEvidence(runtime_class="some", handler=handler, level=runtime_level(handler), **changes)


def level_of(kernel: Kernel, handler: str | None, demanded: Isolation = "any") -> Level:
    return judge_isolation(probed(kernel), evidence(handler), demanded, "Pod a/b", "Change it.").level


@pytest.mark.parametrize(
    ("handler", "level"),
    [("runsc", "gvisor"), ("gvisor", "gvisor"), ("runsc-kvm", "gvisor"), ("kata", "vm"), ("kata-qemu", "vm"),
     ("runc", "container"), ("not-runsc", "container"), ("runscx", "container"), ("", "container"),
     (None, "container"), ("gvisor\nrunc", "container")],
)  # fmt: skip
def test_handler_has_a_level(handler: str | None, level: str) -> None:
    assert runtime_level(handler) == level


@pytest.mark.parametrize(
    ("kernel", "handler", "level"),
    [("gvisor", "runsc", "gvisor"), ("linux", "kata", "vm"), ("linux", "runc", "container"),
     # A lie from inside, and a handler whose runtime is another one than its name.
     ("gvisor", "runc", "container"), ("gvisor", None, "container"), ("linux", "runsc", "container"),
     ("unknown", "runsc", "container"), ("gvisor", "kata", "container")],
)  # fmt: skip
def test_level_is_what_both_agree_on(kernel: Kernel, handler: str | None, level: str) -> None:
    assert level_of(kernel, handler) == level


@pytest.mark.parametrize(
    ("kernel", "handler", "demanded"),
    [("gvisor", "runc", "gvisor"), ("gvisor", None, "gvisor"), ("linux", "runsc", "gvisor"), ("gvisor", "runsc", "vm"),
     ("linux", "runc", "vm"), ("gvisor", "kata", "vm")],
)  # fmt: skip
def test_weaker_isolation_is_refused(kernel: Kernel, handler: str | None, demanded: Isolation) -> None:
    with pytest.raises(IsolationError) as caught:
        level_of(kernel, handler, demanded)
    assert (caught.value.reason, caught.value.demanded) == ("isolation", demanded)


@pytest.mark.parametrize(
    ("kernel", "handler", "demanded"), [("gvisor", "runsc", "gvisor"), ("linux", "kata", "gvisor")]
)
def test_stronger_or_equal_isolation_is_accepted(kernel: Kernel, handler: str, demanded: Isolation) -> None:
    assert level_of(kernel, handler, demanded) == runtime_level(handler)


def test_namespace_of_the_machine_is_always_refused() -> None:
    shared = evidence("runsc", host_namespaces=("hostPID",))
    with pytest.raises(IsolationError, match="hostPID"):
        judge_isolation(probed("gvisor"), shared, "any", "Pod a/b", "Change it.")


@pytest.mark.parametrize(
    ("uid_map", "backend", "found"),
    [(MAPPED, True, True), (MAPPED, False, False), (IDENTITY, True, False), ((), True, None), (MAPPED, None, None)],
)
def test_user_namespace_needs_both(
    uid_map: tuple[tuple[int, int, int], ...], backend: bool | None, found: bool | None
) -> None:
    verdict = judge_isolation(probed("linux", uid_map), evidence(None, user_namespace=backend), "any", "Pod a/b", "")
    assert verdict.user_namespace is found


class Engine:
    name = "engine at test"


RUNTIMES = {
    "runc": {"path": "runc"},
    "runsc": {"path": "/usr/local/bin/runsc"},
    "disguised": {"path": "/usr/bin/runsc"},
    "false-runsc": {"path": "/usr/bin/runc"},
    "kata": {"runtimeType": "io.containerd.kata.v2"},
}
INFO = {"DefaultRuntime": "runc", "Runtimes": RUNTIMES, "SecurityOptions": ["name=seccomp,profile=default"]}


def judged(kernel: Kernel, runtime: str | None, demanded: Isolation = "any") -> dict[str, t.Any]:
    request = ContainerRequest("image", runtime=runtime, isolation=demanded)
    check_engine_isolation(t.cast("t.Any", Engine()), INFO, request)
    confinement = Confinement(runtime or "runc", "default", True, "1000:1000", {})
    return judge_container(probed(kernel), INFO, request, confinement, "Container one").as_dict()


@pytest.mark.parametrize(
    ("runtime", "kernel", "level"),
    [("runsc", "gvisor", "gvisor"), ("disguised", "gvisor", "gvisor"), (None, "gvisor", "container"),
     ("false-runsc", "gvisor", "container"), ("kata", "linux", "vm"), ("runc", "linux", "container")],
)  # fmt: skip
def test_container_has_the_level_of_its_runtimes_program(runtime: str | None, kernel: Kernel, level: str) -> None:
    found = judged(kernel, runtime)
    assert (found["level"], found["kernel"], found["handler"]) == (level, kernel, runtime or "runc")
    assert (found["seccomp"], found["runtime_class"], found["user_namespace"]) == ("default", None, False)


@pytest.mark.parametrize("runtime", [None, "runc", "false-runsc"])
def test_engine_refuses_a_weaker_runtime_before_anything_is_created(runtime: str | None) -> None:
    request = ContainerRequest("image", runtime=runtime, isolation="gvisor")
    with pytest.raises(IsolationError):
        check_engine_isolation(t.cast("t.Any", Engine()), INFO, request)


def test_isolation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="isolation"):
        ContainerRequest("image", isolation=t.cast("t.Any", "none"))
