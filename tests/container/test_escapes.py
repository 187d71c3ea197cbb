# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attempts of code in a sandbox to get out of it, to stay longer or to end it: each must fail."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerSandbox
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine import containers

from .conftest import PATIENCE, Way, make_way, run

#: Before each attempt: system calls by number fail with OSError, as others do.
PRELUDE = r"""
import ctypes, os, platform, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
def check(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def syscall(x86, arm, *arguments):
    return check(libc.syscall(x86 if X86 else arm, *arguments))
def agent():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"--token-fd" in open(f"/proc/{pid}/cmdline", "rb").read():
                return int(pid)
        except OSError:
            pass
    raise SystemExit("there is no agent")
def find_token():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"BIND_TOKEN=" in open(f"/proc/{pid}/environ", "rb").read():
                return pid
        except OSError:
            pass
    raise OSError("there is none")
def engine_sockets():
    for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd"):
        if os.path.exists(path):
            return path
    raise OSError("there is none")
def open_limits():
    refused = OSError("there is none")
    for folder, _folders, names in os.walk("/sys/fs/cgroup"):
        for name in set(names) & {"pids.max", "memory.max", "memory.limit_in_bytes", "cpu.max", "release_agent"}:
            try:
                return open(os.path.join(folder, name), "w")
            except OSError as error:
                refused = error
    raise refused
"""

#: Each must raise OSError.
ATTEMPTS = {
    "mount a file system": 'check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None))',
    "remount the root writable": 'check(libc.mount(None, b"/", None, 0x20 | 0x1000, None))',
    "unmount": 'check(libc.umount2(b"/proc", 2))',
    "enter a namespace of PID 1": 'check(libc.setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0))',
    "make a network namespace": "check(libc.unshare(0x40000000))",
    "trace the agent": "check(libc.ptrace(16, agent(), 0, 0))",
    "read the agent's memory": 'open(f"/proc/{agent()}/mem", "rb").read(1)',
    "find the token": "find_token()",
    "read the token": 'open("/opt/namzu/token").read()',
    "trace PID 1": "check(libc.ptrace(16, 1, 0, 0))",
    "kill PID 1": "os.kill(1, signal.SIGKILL)",
    "stop PID 1": "os.kill(1, signal.SIGSTOP)",
    "end PID 1": "os.kill(1, signal.SIGTERM)",
    "limit the time of PID 1": "resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))",
    "extend the lease": 'open("/opt/namzu/lease", "w").write("99999999999")',
    "remove the lease": 'os.unlink("/opt/namzu/lease")',
    "replace the lease": 'open("/tmp/l", "w").close(); os.rename("/tmp/l", "/opt/namzu/lease")',
    "change the agent": 'open("/opt/namzu/agent/__main__.py", "a")',
    "reach the folder of the socket": 'os.listdir("/opt/namzu/private")',
    "take the socket of the agent": 'socket.socket(socket.AF_UNIX).connect("\\0namzu-listener")',
    "become root": "os.setuid(0)",
    "become PID 1's user": "os.setuid(65431)",
    "give a file to root": 'open("/tmp/f", "w").close(); os.chown("/tmp/f", 0, 0)',
    "read the machine's memory": 'open("/dev/mem", "rb")',
    "change the root": 'os.chroot("/tmp")',
    "send raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "read packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "connect outside": 'socket.create_connection(("1.1.1.1", 443), 2)',
    "find the engine's socket": "engine_sockets()",
    "write a setting of the kernel": 'open("/proc/sys/kernel/core_pattern", "w")',
    "ask the kernel to act": 'open("/proc/sysrq-trigger", "w")',
    "raise its limits": "open_limits()",
    "write to the image": 'open("/usr/bin/evil", "w")',
    "load a program into the kernel": "syscall(321, 280, 0, ctypes.create_string_buffer(128), 128)",
    "load a module": 'syscall(175, 105, b"", 0, b"")',
    "open a file by its handle": "syscall(304, 265, -100, ctypes.create_string_buffer(128), 0)",
    "set the clock": "syscall(164, 170, ctypes.create_string_buffer(16), None)",
    "name the machine": 'socket.sethostname("evil")',
    "reboot": "syscall(169, 142, 0xFEE1DEAD, 672274793, 0x1234567, None)",
}
#: Of a kernel that is shared with the machine only: what gVisor's own kernel allows stays in the sandbox.
SHARED_KERNEL = {
    "read the environment of PID 1": 'open("/proc/1/environ", "rb").read()',
    "read the agent's environment": 'open(f"/proc/{agent()}/environ", "rb").read()',
    "open a descriptor of PID 1": 'os.listdir("/proc/1/fd")',
    "lower its nice value": "os.nice(-5)",
    "make a device": 'os.mknod("/tmp/device", 0o60600, os.makedev(8, 0))',
    "make a mount namespace": "check(libc.unshare(0x20000))",
    "make a user namespace": "check(libc.unshare(0x10000000))",
    "use a keyring": 'syscall(248, 217, b"user", b"a", b"b", 1, -5)',
}


@pytest.fixture(scope="module", params=("docker-runc-socket", "docker-runsc-auto", "podman-runc-socket"))
def place(request: pytest.FixtureRequest) -> t.Iterator[tuple[Way, ContainerSandbox]]:
    way = make_way(request, str(request.param))
    with way.sandbox(**way.limits(pids=64, memory=128 << 20)) as sandbox:
        yield way, sandbox


@pytest.mark.parametrize("attempt", [*ATTEMPTS, *SHARED_KERNEL])
def test_attempt_fails(place: tuple[Way, ContainerSandbox], attempt: str) -> None:
    way, sandbox = place
    if attempt in SHARED_KERNEL and way.runtime == "runsc":
        pytest.skip("the kernel is the sandbox's own")
    if attempt == "make a user namespace" and way.runtime is None:
        pytest.skip("the seccomp profile of Podman allows user namespaces")
    code = (ATTEMPTS | SHARED_KERNEL)[attempt]
    program = f"{PRELUDE}\ntry:\n    {code}\nexcept OSError as error:\n    print('refused:', error)\n"
    done = run(sandbox, "python3", "-c", program)
    assert done.stdout_text.startswith("refused: "), (done.stdout_text, done.stderr_text)
    state = containers.inspect(way.client, sandbox.uid, Deadline(PATIENCE))["State"]
    assert state["Running"]


def test_filling_what_is_writable_ends_at_its_limit(place: tuple[Way, ContainerSandbox]) -> None:
    _way, sandbox = place
    program = "open('/workspace/big', 'wb').write(b'x' * (300 << 20))"
    done = run(sandbox, "sh", "-c", f'python3 -c "{program}"; rm -f /workspace/big; df -k /workspace | tail -1')
    assert run(sandbox, "true").rc == 0
    assert done.rc == 0


def test_fork_bomb_ends_at_its_limit(place: tuple[Way, ContainerSandbox]) -> None:
    way, sandbox = place
    if way.runtime == "runsc":
        pytest.skip("without cgroups gVisor does not count the processes of this machine's engine")
    program = (
        "import os, time\ncount = 0\n"
        "try:\n"
        "    while count < 1000:\n"
        "        if os.fork() == 0:\n            time.sleep(3); os._exit(0)\n"
        "        count += 1\n"
        "except OSError:\n    pass\n"
        "print(count)\n"
    )
    done = run(sandbox, "python3", "-c", program)
    assert 0 < int(done.stdout) < 64
