# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine cannot enforce, or does not do as asked, is refused; names that are taken are not disturbed."""

from __future__ import annotations

import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import Request
from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.errors import (
    ConfinementError,
    ContainerBoundaryError,
    ContainerLeaseError,
    ContainerMismatchError,
    UnsupportedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.container.inventory import list_containers, locate_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.lease import renew_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.images import ImagePullError
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FakeEngine


def request(**options: t.Any) -> ContainerRequest:
    return ContainerRequest(**{"image": "python", "name": "one", "ready_timeout": 30.0, **options})


def gvisor(**described: t.Any) -> dict[str, t.Any]:
    return {"Runtimes": {"runsc": {"path": "/usr/bin/runsc", **described}}, "DefaultRuntime": "runsc"}


LIMITS: list[dict[str, t.Any]] = [{"cpus": 1.0}, {"memory": 64 << 20}, {"pids": 20, "runtime": "runsc"}]
#: Runtimes that take a limit and do not enforce it, or of which the engine does not report whether they do.
UNENFORCED = [
    gvisor(runtimeArgs=["--network=none", "--ignore-cgroups"]),
    gvisor(runtimeArgs=["-ignore-cgroups=true"]),
    gvisor(path=None, runtimeType="io.containerd.runsc.v1", options={"ConfigPath": "/etc/runsc.toml"}),
]


@pytest.mark.parametrize("described", [{}, {"runtimeArgs": ["--ignore-cgroups=false"]}])
def test_limits_are_taken_by_gvisor_that_has_cgroups(
    engine: FakeEngine, client: EngineClient, described: dict[str, t.Any]
) -> None:
    engine.info.update(gvisor(**described))
    limits = acquire_container(client, request(pids=20, runtime="runsc", channel="socket")).verdict.confinement.limits
    assert limits["pids"] == 20


def test_gvisor_without_cgroups_is_used_without_limits(engine: FakeEngine, client: EngineClient) -> None:
    engine.info.update(UNENFORCED[0])
    assert acquire_container(client, request(runtime="runsc", channel="socket")).created


@pytest.mark.parametrize("network", ["bridge", "missing"])
def test_no_network_with_a_network_is_a_contradiction(engine: FakeEngine, client: EngineClient, network: str) -> None:
    engine.networks = {"bridge": {"Driver": "bridge"}}
    with pytest.raises(ContainerBoundaryError, match=f"network is {network}, and no_network allows none"):
        acquire_container(client, request(network=network))
    assert not [one for one in engine.requests if "networks" in one]


@pytest.mark.parametrize(
    ("info", "options"),
    [
        ({"SecurityOptions": []}, {}),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, {}),
        ({"OSType": "windows"}, {}),
        ({"MemoryLimit": False}, {"memory": 64 << 20}),
        ({"PidsLimit": False}, {"pids": 20}),
        ({"CpuCfsQuota": False}, {"cpus": 1.0}),
        ({}, {"runtime": "runsc"}),
        *((info, limit) for info in UNENFORCED for limit in LIMITS),
    ],
)
def test_what_the_engine_cannot_enforce_is_refused_before_anything_is_created(
    engine: FakeEngine, client: EngineClient, info: dict[str, t.Any], options: dict[str, t.Any]
) -> None:
    engine.info.update(info)
    with pytest.raises(UnsupportedError) as raised:
        acquire_container(client, request(**options))
    assert raised.value.reason == "unsupported"
    assert not [one for one in engine.requests if one.startswith("POST")]


def test_unknown_runtime_is_refused_with_those_that_exist(engine: FakeEngine, client: EngineClient) -> None:
    engine.info["Runtimes"] = {"runc": {}, "kata": {}}
    with pytest.raises(UnsupportedError, match="kata, runc"):
        acquire_container(client, request(runtime="runsc"))


def test_no_seccomp_profile_shows_in_the_verdict_when_it_was_asked_for(
    engine: FakeEngine, client: EngineClient
) -> None:
    engine.info["SecurityOptions"] = []
    assert acquire_container(client, request(seccomp="unconfined")).verdict.confinement.seccomp == "unconfined"


@pytest.mark.parametrize(
    "change",
    [
        {"Privileged": True},
        {"CapAdd": ["NET_ADMIN"]},
        {"Devices": [{"PathOnHost": "/dev/kvm"}]},
        {"PidMode": "host"},
        {"IpcMode": "host"},
        {"UTSMode": "host"},
        {"UsernsMode": "host"},
        {"SecurityOpt": ["seccomp=unconfined", "no-new-privileges"]},
        {"SecurityOpt": ["apparmor=unconfined", "no-new-privileges"]},
        {"SecurityOpt": []},
        {"ReadonlyRootfs": False},
        {"PortBindings": {"80/tcp": [{"HostPort": "80"}]}},
        {"PidsLimit": 0},
        {"Memory": 0},
        {"NanoCpus": 0},
        {"Runtime": "crun"},
    ],
    ids=str,
)
def test_container_that_has_more_than_was_asked_for_is_removed(
    engine: FakeEngine, client: EngineClient, change: dict[str, t.Any]
) -> None:
    engine.changes = change
    with pytest.raises(ConfinementError) as raised:
        acquire_container(client, request(pids=20, memory=64 << 20, cpus=1.0, runtime="runc"))
    assert raised.value.findings
    assert engine.containers == {}


@pytest.mark.parametrize("mode", ["host", "bridge", "container:other"])
def test_network_that_was_not_asked_for_is_refused(engine: FakeEngine, client: EngineClient, mode: str) -> None:
    engine.changes = {"NetworkMode": mode}
    with pytest.raises(ContainerBoundaryError):
        acquire_container(client, request())
    assert engine.containers == {}


@pytest.mark.parametrize(
    ("network", "egress"),
    [
        (None, "allow_all"),
        (None, "public_internet"),
        ("host", "allow_all"),
        ("container:other", "allow_all"),
        ("inside", "no_network"),
        ("outside", "no_network"),
        ("outside", "public_internet"),
        ("outside", "dns_only"),
        ("vlan", "allow_all"),
    ],
)
def test_boundary_that_cannot_be_shown_is_refused_before_anything_is_created(
    engine: FakeEngine, client: EngineClient, network: str | None, egress: str
) -> None:
    engine.networks = {
        "inside": {"Driver": "bridge", "Internal": True},
        "outside": {"Driver": "bridge", "Internal": False},
        "vlan": {"Driver": "macvlan"},
        "host": {"Driver": "host"},
        "container:other": {"Driver": "bridge"},
    }
    with pytest.raises(ContainerBoundaryError) as raised:
        acquire_container(client, request(network=network, egress=Request.of(egress)))
    assert raised.value.reason == "boundary"
    assert raised.value.fields()["direction"] == "egress"
    assert not [one for one in engine.requests if one.startswith("POST")]


def test_open_network_is_what_allow_all_asks_for(engine: FakeEngine, client: EngineClient) -> None:
    engine.networks = {"outside": {"Driver": "bridge", "Internal": False, "Options": {}}}
    egress = acquire_container(client, request(network="outside", egress=Request.of("allow_all"))).verdict.egress
    assert egress.networks == ("outside",)
    assert len(egress.notes) == 4


def test_pull_that_the_registry_refuses_has_its_text(engine: FakeEngine, client: EngineClient) -> None:
    engine.pull_errors["node:22"] = "manifest for node:22 not found: \x1b[31mmanifest unknown"
    with pytest.raises(ImagePullError) as raised:
        acquire_container(client, request(image="node:22"))
    assert raised.value.reason == "image-pull"
    assert not raised.value.retryable
    assert "manifest unknown" in raised.value.message
    assert "\x1b" not in raised.value.message


def test_missing_image_is_pulled(engine: FakeEngine, client: EngineClient) -> None:
    assert acquire_container(client, request(image="registry:5000/team/node")).created


def test_same_request_of_the_name_finds_the_sandbox(engine: FakeEngine, client: EngineClient) -> None:
    first = acquire_container(client, request())
    again = acquire_container(client, request())
    assert (again.uid, again.created, again.agent) == (first.uid, False, first.agent)
    assert len(engine.containers) == 1
    assert again.agent.token == first.agent.token
    assert first.agent.token not in str(engine.containers)


@pytest.mark.parametrize("options", [{"pids": 20}, {"env": {"A": "2"}}, {"labels": {"a": "b"}}])
def test_another_request_of_the_name_is_a_conflict(
    engine: FakeEngine, client: EngineClient, options: dict[str, t.Any]
) -> None:
    first = acquire_container(client, request(env={"A": "1"}))
    with pytest.raises(ContainerMismatchError) as raised:
        acquire_container(client, request(**{"env": {"A": "1"}, **options}))
    assert raised.value.reason == "conflict"
    assert list(engine.containers) == [first.uid]


def test_container_that_is_not_a_sandbox_is_left_alone(engine: FakeEngine, client: EngineClient) -> None:
    uid = acquire_container(client, request()).uid
    engine.containers[uid]["Config"]["Labels"] = {}
    for work in (
        lambda: acquire_container(client, request()),
        lambda: release_container(client, "one", Deadline(30)),
    ):
        with pytest.raises(ContainerMismatchError):
            work()
    with pytest.raises(GoneError):
        locate_container(client, "one", Deadline(30))
    with pytest.raises(ContainerLeaseError):
        renew_lease(client, "one", 3600, Deadline(30))
    assert list(engine.containers) == [uid]


@pytest.mark.parametrize("status", ["exited", "dead"])
def test_container_that_has_ended_is_removed_at_the_next_use(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], status: str
) -> None:
    uid = acquire_container(client, request()).uid
    engine.containers[uid]["State"] = {"Status": status, "Running": False}
    assert [one.phase for one in list_containers(client, Deadline(30))] == ["finished"]
    again = acquire_container(client, request(name="two"))
    assert list(engine.containers) == [again.uid]
    assert len(folders()) == 1


def test_container_that_was_never_started_is_removed_after_its_creators_time(
    engine: FakeEngine, client: EngineClient
) -> None:
    uid = acquire_container(client, request()).uid
    engine.containers[uid]["State"] = {"Status": "created", "Running": False}
    acquire_container(client, request(name="two"))
    assert uid in engine.containers
    engine.containers[uid]["Config"]["Labels"]["sandbox.namzu.ai/start-by"] = str(int(time.time()) - 60)
    acquire_container(client, request(name="three"))
    assert uid not in engine.containers


@pytest.mark.parametrize("state", ["gone", "replaced", "expired"])
def test_lease_that_is_lost_has_a_reason(engine: FakeEngine, client: EngineClient, state: str) -> None:
    uid = acquire_container(client, request()).uid
    if state == "gone":
        engine.containers.clear()
    if state == "expired":
        engine.containers[uid]["State"] = {"Status": "exited", "Running": False}
    with pytest.raises(ContainerLeaseError) as raised:
        renew_lease(client, "one", 3600, Deadline(30), uid="another" if state == "replaced" else uid)
    assert raised.value.reason == state
