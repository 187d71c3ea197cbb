# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The privilege probe: the kernel is asked, through the agent in the pod, which privileges a command has.

The evidence is ``/proc/self/status`` (proc_pid_status(5)) of the agent, which starts every command: they inherit what
it has (capabilities(7)). All five capability masks must be zero, the bounding set and the ambient set among them, and
``NoNewPrivs`` must be 1: then no program in the image, set-user-ID or with file capabilities, can gain a privilege.

A kernel that does not show ``CapAmb`` or ``NoNewPrivs`` there (gVisor shows neither) is asked with prctl(2). A field
that can be neither read nor asked is refused, and so is a guest in which no program can be started. An agent of an
older version is asked for the status of a command.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import operator
import re
import typing as t

from ..deadline import Deadline
from ..text import clean_text
from .agent import Agent
from .errors import GuestRefusedError, GuestTimeoutError, GuestUnreachableError, GuestUnsupportedError, PrivilegeError
from .execution.stream import Execution

Kernel = t.Literal["linux", "gvisor", "unknown"]

_STATUS = "/proc/self/status"
_READ_STATUS = f"import sys; sys.stdout.write(open('{_STATUS}').read())"
#: The file has some 60 lines.
_MAX_STATUS = 64 * 1024

_DROP_ALL = "capabilities.drop: [ALL]"
#: Field of the status file, the attribute here, and the settings of a container that make it zero.
_MASKS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("CapInh", "inheritable", (_DROP_ALL,)),
    ("CapPrm", "permitted", (_DROP_ALL, "runAsNonRoot: true")),
    ("CapEff", "effective", (_DROP_ALL, "runAsNonRoot: true")),
    ("CapBnd", "bounding", (_DROP_ALL, "privileged: false")),
    ("CapAmb", "ambient", (_DROP_ALL,)),
)
_NO_NEW_PRIVS_SETTING = "allowPrivilegeEscalation: false"

#: Bit to name, in order: include/uapi/linux/capability.h.
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip

#: Bits of a capability mask, one prctl(2) result each.
_CAPABILITY_BITS = 64

#: uname(2) of gVisor: the fixed build text of its older releases, the suffix of its newer ones (pkg/sentry/kernel).
_GVISOR_BUILD = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
_GVISOR_RELEASE = re.compile(r"\d+\.\d+\.\d+-gvisor", re.ASCII)
_LINUX_RELEASE = re.compile(r"\d+\.\d+.*", re.ASCII)

#: uid_map of the initial user namespace: every user id is itself (user_namespaces(7)).
_IDENTITY = ((0, 0, 0xFFFFFFFF),)
_UID_MAP_LINE = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Privileges:
    """What the kernel reports about a command in the sandbox. All of it is a statement from inside the sandbox.

    Attributes:
        inheritable, permitted, effective, bounding, ambient: capability masks (CapInh, CapPrm, CapEff, CapBnd, CapAmb).
        no_new_privs: whether exec can gain nothing.
        uid: the effective user id.
        seccomp: 0 off, 1 strict, 2 filter; None when the kernel does not show it. Reported, not judged.
        kernel: ``linux``, ``gvisor``, or ``unknown``. Reported, not judged: whoever controls the image can forge it.
        uid_map: lines of ``/proc/self/uid_map`` (first id inside, first id outside, number of ids); empty when the
            kernel does not show it. Reported, not judged.
    """

    inheritable: int
    permitted: int
    effective: int
    bounding: int
    ambient: int
    no_new_privs: bool
    uid: int
    seccomp: int | None
    kernel: Kernel = "unknown"
    uid_map: tuple[tuple[int, int, int], ...] = ()

    @property
    def none(self) -> bool:
        """Whether there is no privilege at all."""
        return self.no_new_privs and not any(getattr(self, attribute) for _field, attribute, _closing in _MASKS)

    @property
    def user_namespace(self) -> bool | None:
        """Whether user ids are mapped to others outside; None when the kernel does not show it."""
        return self.uid_map != _IDENTITY if self.uid_map else None


def probe_privileges(agent: Agent, deadline: Deadline, subject: str) -> Privileges:
    """Verify that commands in the sandbox have no privileges, and that a program can be started.

    Args:
        agent: the sandbox's agent.
        deadline: for the probe.
        subject: the object that is probed, for errors (``Pod team-a/build-7``).

    Raises:
        PrivilegeError: there is a privilege, the evidence is incomplete, or a program could not be run.
        GuestTimeoutError: the probe did not end within its deadline.
        GuestError: the other errors of the agent.
    """
    probe = _Probe(agent, deadline, subject)
    try:
        privileges = probe.run()
    except (GuestRefusedError, GuestUnreachableError, GuestTimeoutError) as error:
        raise error.replace(message=f"The privilege probe of {subject}: {error.message}", object=subject) from None
    if not privileges.none:
        raise _excess(privileges, subject, probe.where)
    return privileges


class _Probe:
    """Collects the evidence of one sandbox."""

    def __init__(self, agent: Agent, deadline: Deadline, subject: str) -> None:
        self._agent = agent
        self._deadline = deadline
        self._subject = subject
        self.where = f"{subject} ({agent.peer.name})"

    def run(self) -> Privileges:
        """Ask the agent; for one of an older version, start a command."""
        try:
            return self._ask()
        except _UnprovenError as error:
            raise PrivilegeError(
                f"The privilege probe of {self.where} is incomplete: {error}. A sandbox without a complete probe is "
                "refused.",
                object=self._subject,
                next_step="Check that /proc is mounted in the container as usual and that the image's programs are "
                "the real ones. On gVisor the image's python3 needs its module ctypes.",
            ) from None

    def _ask(self) -> Privileges:
        try:
            with self._agent.caller.call("privileges", {}, self._deadline) as call:
                status, answer = str(call.part("status", text=str)["text"]), call.answer
        except GuestUnsupportedError:
            # The command that reads the status is a program that was started.
            return _privileges(self._status_of_a_command(), {})
        # An agent of an older version answers with its status alone.
        program = answer["program"] if "program" in answer else {"exit": self._execute(["true"], "").rc}
        code = program.get("exit") if isinstance(program, dict) else None
        if code != 0 or isinstance(code, bool):
            raise _UnprovenError("a program that does nothing did not exit with 0")
        return _privileges(status, answer)

    def _status_of_a_command(self) -> str:
        execution = self._execute(["cat", _STATUS], _READ_STATUS)
        if execution.rc != 0:
            output = clean_text(execution.stderr_text, 200) or "no error output"
            raise _UnprovenError(f"reading {_STATUS} ended with exit code {execution.rc} ({output})")
        if execution.truncated_stdout:
            raise _UnprovenError(f"{_STATUS} is longer than {_MAX_STATUS} bytes")
        return execution.stdout_text

    def _execute(self, argv: t.Sequence[str], script: str) -> Execution:
        """Run a program; where the image does not have it, a script with the Python that runs the agent."""
        try:
            return self._agent.execute(argv, deadline=self._deadline, max_output=_MAX_STATUS)
        except GuestRefusedError as error:
            if error.kind not in ("not-found", "not-executable"):
                raise
        argv = [self._agent.healthz(self._deadline).executable, "-I", "-S", "-c", script]
        return self._agent.execute(argv, deadline=self._deadline, max_output=_MAX_STATUS)


class _UnprovenError(Exception):
    """The evidence lacks a field, or has one that cannot be read."""


def _privileges(status: str, answer: t.Mapping[str, t.Any]) -> Privileges:
    """The evidence as numbers. Where a field is both shown and asked for, the worse of the two values counts."""
    fields = _fields(status)
    prctl = answer.get("prctl")
    asked: t.Mapping[str, t.Any] = prctl if isinstance(prctl, dict) else {}
    masks = {attribute: _mask(fields, name) for name, attribute, _closing in _MASKS if name != "CapAmb"}
    ambient = [_mask(fields, "CapAmb")] if "CapAmb" in fields else []
    ambient += _asked_ambient(asked.get("ambient"))
    no_new_privs = [_field(fields, "NoNewPrivs", "[01]") == "1"] if "NoNewPrivs" in fields else []
    no_new_privs += _asked_flag(asked.get("no_new_privs"))
    for name, values in (("CapAmb", ambient), ("NoNewPrivs", no_new_privs)):
        if not values:
            raise _UnprovenError(f"{_STATUS} has no field {name}, and prctl(2) did not report it either")
    return Privileges(
        **masks,
        ambient=functools.reduce(operator.or_, ambient),
        no_new_privs=all(no_new_privs),
        uid=int(_field(fields, "Uid", r"\d+\s+\d+\s+\d+\s+\d+").split()[1]),
        seccomp=int(_field(fields, "Seccomp", r"\d{1,2}")) if "Seccomp" in fields else None,
        kernel=_kernel(answer.get("kernel"), fields),
        uid_map=_uid_map(answer.get("uid_map")),
    )


def _fields(status: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in status.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            if name in fields:
                raise _UnprovenError(f"{_STATUS} has the field {clean_text(name, 40)} twice")
            fields[name] = value.strip()
    return fields


def _field(fields: t.Mapping[str, str], name: str, pattern: str) -> str:
    value = fields.get(name)
    if value is None:
        raise _UnprovenError(f"{_STATUS} has no field {name}")
    if re.fullmatch(pattern, value, re.ASCII) is None:
        raise _UnprovenError(f"{_STATUS} has {name}: {clean_text(value, 80)}, which is not a valid value")
    return value


def _mask(fields: t.Mapping[str, str], name: str) -> int:
    return int(_field(fields, name, "[0-9a-f]{1,32}"), 16)


def _asked_ambient(results: t.Any) -> list[int]:
    """The ambient set as PR_CAP_AMBIENT_IS_SET reports it, one result for each bit; empty when it does not.

    EINVAL means that the kernel does not have that capability, and for all of them that it has no ambient set.
    """
    if not isinstance(results, list) or len(results) != _CAPABILITY_BITS:
        return []
    if not all(result in (0, 1, -errno.EINVAL) and not isinstance(result, bool) for result in results):
        return []
    return [sum(1 << bit for bit, result in enumerate(results) if result == 1)]


def _asked_flag(result: t.Any) -> list[bool]:
    return [result == 1] if result in (0, 1) and not isinstance(result, (bool, float)) else []


def _kernel(named: t.Any, fields: t.Mapping[str, str]) -> Kernel:
    """Which kernel serves the sandbox, by its uname(2)."""
    release, version = (named.get("release"), named.get("version")) if isinstance(named, dict) else (None, None)
    if not isinstance(release, str) or not isinstance(version, str):
        return "unknown"
    if version == _GVISOR_BUILD or _GVISOR_RELEASE.fullmatch(release):
        return "gvisor"
    # Linux has shown both since 4.10.
    shown = "CapAmb" in fields and "NoNewPrivs" in fields
    return "linux" if shown and _LINUX_RELEASE.fullmatch(release) else "unknown"


def _uid_map(text: t.Any) -> tuple[tuple[int, int, int], ...]:
    lines = [line.split() for line in text.splitlines()] if isinstance(text, str) else []
    if not all(
        len(line) == 3 and all(re.fullmatch(r"\d{1,10}", number, re.ASCII) for number in line) for line in lines
    ):
        return ()
    return tuple((int(first), int(outside), int(count)) for first, outside, count in lines)


def capability_names(mask: int) -> list[str]:
    """The names of the bits in ``mask``: ``CAP_NET_RAW``; ``CAP_41`` for one that has no name yet."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    return [f"CAP_{CAPABILITIES[bit] if bit < len(CAPABILITIES) else bit}" for bit in bits]


def _excess(privileges: Privileges, subject: str, where: str) -> PrivilegeError:
    excess: dict[str, str] = {}
    settings: list[str] = []
    for name, attribute, closing in _MASKS:
        mask = getattr(privileges, attribute)
        if mask:
            excess[name] = f"{mask:016x} ({' '.join(capability_names(mask))})"
            settings.extend(closing)
    if not privileges.no_new_privs:
        excess["NoNewPrivs"] = "0"
        settings.append(_NO_NEW_PRIVS_SETTING)
    # Masks are usually equal; list their names once.
    by_value: dict[str, list[str]] = {}
    for name, value in excess.items():
        by_value.setdefault(value, []).append(name)
    found = "; ".join(f"{', '.join(names)}: {value}" for value, names in by_value.items())
    return PrivilegeError(
        f"The privilege probe of {where} found privileges (uid {privileges.uid}): {found}.",
        excess=excess,
        object=subject,
        next_step=f"Set in the container's securityContext of the template: {', '.join(dict.fromkeys(settings))}.",
    )
