# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container sandbox may be asked to be, and the container that is created for it."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import Request
from ansible_collections.namzu.sandbox.plugins.module_utils.container.create import checked_outputs, container_spec
from ansible_collections.namzu.sandbox.plugins.module_utils.container.names import LEASE_USER
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError

REFUSED: list[dict[str, t.Any]] = [
    {"image": ""},
    {"image": "a b"},
    {"name": "Upper"},
    {"name": "a" * 64},
    {"user": "0:0"},
    {"user": "1000:0"},
    {"user": "root"},
    {"user": "1000"},
    {"user": LEASE_USER},
    {"cpus": 0},
    {"cpus": float("nan")},
    {"memory": 1024},
    {"pids": 3},
    {"writable_paths": ("/data",), "read_only_rootfs": False},
    {"writable_paths": ("data",)},
    {"writable_paths": ("/",)},
    {"writable_paths": ("/a/../b",)},
    {"writable_paths": ("/a:b",)},
    {"writable_paths": ("/proc",)},
    {"writable_paths": ("/opt",)},
    {"writable_paths": ("/opt/namzu/agent",)},
    {"writable_paths": ("/etc/x",)},
    {"env": {"A-B": ""}},
    {"env": {"NAMZU_AGENT_BIND_TOKEN": "x"}},
    {"labels": {"sandbox.namzu.ai/name": "x"}},
    {"outputs": "relative"},
    {"ttl": 5},
    {"ready_timeout": 0},
]


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_what_cannot_be_honoured_is_refused(options: dict[str, t.Any]) -> None:
    with pytest.raises(InputError):
        ContainerRequest(**{"image": "python", **options})


def spec_body(image: dict[str, t.Any] | None = None, **options: t.Any) -> dict[str, t.Any]:
    request = ContainerRequest(image="python", **options)
    return container_spec(request, image or {}, "one", "relay", {}, 0).body()


def test_container_has_no_privilege_and_no_network() -> None:
    body = spec_body()
    host = body["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["NetworkMode"], host["IpcMode"], host["Privileged"]) == ("none", "private", False)
    assert (host["ReadonlyRootfs"], host["AutoRemove"], host["PublishAllPorts"]) == (True, True, False)
    assert body["Entrypoint"] == []
    assert body["User"] == LEASE_USER
    assert not {"Devices", "PortBindings", "CapAdd", "Binds", "Memory", "PidsLimit", "NanoCpus"} & set(host)


def test_limits_leave_no_swap() -> None:
    host = spec_body(cpus=0.5, memory=64 << 20, pids=20)["HostConfig"]
    assert (host["NanoCpus"], host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (
        500_000_000,
        64 << 20,
        64 << 20,
        20,
    )
    assert host["Tmpfs"]["/tmp"].endswith(f"size={64 << 20}")


def test_volumes_of_the_image_are_memory_with_a_limit() -> None:
    tmpfs = spec_body({"Config": {"Volumes": {"/var/lib/data": {}}}}, writable_paths=("/data",))["HostConfig"]["Tmpfs"]
    assert {"/tmp", "/var/tmp", "/workspace", "/var/lib/data", "/data", "/run"} == set(tmpfs)
    assert all("nosuid" in options and "size=" in options for options in tmpfs.values())


def test_writable_root_has_its_own_temporary_folder() -> None:
    assert set(spec_body(read_only_rootfs=False)["HostConfig"]["Tmpfs"]) == {"/workspace"}


def test_variables_reach_commands_and_the_agents_own_do_not() -> None:
    env = dict(variable.split("=", 1) for variable in spec_body(env={"A": "1", "B": "x=y"})["Env"])
    assert (env["A"], env["B"]) == ("1", "x=y")
    assert env["NAMZU_AGENT_PASS"] == "A,B"


def test_identity_has_no_value_of_a_variable() -> None:
    one, other = (ContainerRequest(image="python", env={"A": value}).identity for value in ("secret", "other"))
    assert "secret" not in str(one)
    assert one != other
    assert (
        one
        == ContainerRequest(
            image="python", env={"A": "secret"}, ttl=60, name="x", egress=Request("no_network")
        ).identity
    )


def test_outputs_are_a_folder_of_results(tmp_path: pathlib.Path) -> None:
    assert checked_outputs(str(tmp_path)) == str(tmp_path.resolve())
    link = tmp_path / "link"
    link.symlink_to("/run")
    for folder in ("/", "/tmp", "/run/user", str(link), str(tmp_path / "missing")):
        with pytest.raises(InputError):
            checked_outputs(folder)
