# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Are the sandbox's processes without privileges? Asked of the kernel, through the agent, in the pod itself.

The answer is ``/proc/self/status`` (proc_pid_status(5)) of the agent, which starts every command: they inherit what it
has (capabilities(7)). All five capability masks must be zero, the bounding set and the ambient set among them, and
``NoNewPrivs`` must be 1: then no program in the image, set-user-ID or with file capabilities, can gain one back. An
older agent is asked for the status of a command. What cannot be read is refused.
"""

from __future__ import annotations

import dataclasses
import re

from ..deadline import Deadline
from .agent import Agent
from .errors import GuestRefusedError, GuestTimeoutError, GuestUnreachableError, GuestUnsupportedError, PrivilegeError
from .protocol.call import printable

_STATUS = "/proc/self/status"
_READ_STATUS = f"import sys; sys.stdout.write(open('{_STATUS}').read())"
#: The file has some 60 lines.
_MAX_STATUS = 64 * 1024

#: Field of the status file, the attribute here, and the settings of a container that make it zero.
_DROP_ALL = "capabilities.drop: [ALL]"
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


@dataclasses.dataclass(frozen=True)
class Privileges:
    """What the kernel says that a command in the sandbox may do.

    Attributes:
        inheritable, permitted, effective, bounding, ambient: capability masks (CapInh, CapPrm, CapEff, CapBnd, CapAmb).
        no_new_privs: whether exec can gain nothing.
        uid: the effective user id.
        seccomp: 0 off, 1 strict, 2 filter; None when the kernel does not say. Information, not a condition.
    """

    inheritable: int
    permitted: int
    effective: int
    bounding: int
    ambient: int
    no_new_privs: bool
    uid: int
    seccomp: int | None

    @property
    def none(self) -> bool:
        """Whether there is no privilege at all."""
        return self.no_new_privs and not any(getattr(self, attribute) for _field, attribute, _closing in _MASKS)


def probe_privileges(agent: Agent, deadline: Deadline, subject: str) -> Privileges:
    """Prove that commands in the sandbox have no privileges.

    Args:
        agent: the sandbox's agent.
        deadline: the probe's own clock.
        subject: whose privileges these are, in words for the errors (``sandbox team-a/build-7``).

    Raises PrivilegeError when there is a privilege or when the answer cannot be read, GuestTimeoutError when the
    probe ran out of its time, and the agent's other errors.
    """
    where = f"{subject} ({agent.peer.name})"
    try:
        status = _read_status(agent, deadline, subject, where)
    except GuestUnreachableError as error:
        error.message, error.object = f"The privilege probe of {subject}: {error.message}", subject
        raise
    except GuestTimeoutError as error:
        raise GuestTimeoutError(
            f"The privilege probe of {where} got no answer within {round(deadline.seconds, 2):g} s, so nothing is "
            f"proven and the sandbox is refused. {error.message}",
            stage=error.stage,
            object=subject,
            next_step=error.next_step,
        ) from None
    privileges = _parse(status, subject, where)
    if not privileges.none:
        raise _excess(privileges, subject, where)
    return privileges


def _read_status(agent: Agent, deadline: Deadline, subject: str, where: str) -> str:
    try:
        with agent.caller.call("privileges", {}, deadline) as call:
            return str(call.part("status", text=str)["text"])
    except GuestUnsupportedError:
        return _status_of_a_command(agent, deadline, subject, where)


def _status_of_a_command(agent: Agent, deadline: Deadline, subject: str, where: str) -> str:
    """With ``cat``, and in an image without one, with the Python that runs the agent."""
    try:
        execution = agent.execute(["cat", _STATUS], deadline=deadline, max_output=_MAX_STATUS)
    except GuestRefusedError as error:
        if error.kind not in ("not-found", "not-executable"):
            raise
        python = agent.healthz(deadline).executable
        argv = [python, "-I", "-S", "-c", _READ_STATUS]
        execution = agent.execute(argv, deadline=deadline, max_output=_MAX_STATUS)
    if execution.rc != 0:
        said = printable(execution.stderr_text, 200) or "nothing"
        raise _unreadable(subject, where, f"reading {_STATUS} ended with {execution.rc} and said {said}")
    if execution.truncated_stdout:
        raise _unreadable(subject, where, f"{_STATUS} is longer than {_MAX_STATUS} bytes")
    return execution.stdout_text


def _parse(status: str, subject: str, where: str) -> Privileges:
    fields: dict[str, str] = {}
    for line in status.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            if name in fields:
                raise _unreadable(subject, where, f"{_STATUS} has the field {printable(name, 40)} twice")
            fields[name] = value.strip()

    def field(name: str, pattern: str) -> str:
        value = fields.get(name)
        if value is None:
            raise _unreadable(subject, where, f"{_STATUS} has no field {name}")
        if re.fullmatch(pattern, value, re.ASCII) is None:
            raise _unreadable(subject, where, f"{_STATUS} has {name}: {printable(value, 80)}, which is unreadable")
        return value

    masks = {attribute: int(field(name, "[0-9a-f]{1,32}"), 16) for name, attribute, _closing in _MASKS}
    return Privileges(
        **masks,
        no_new_privs=field("NoNewPrivs", "[01]") == "1",
        uid=int(field("Uid", r"\d+\s+\d+\s+\d+\s+\d+").split()[1]),
        seccomp=int(field("Seccomp", r"\d{1,2}")) if "Seccomp" in fields else None,
    )


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
    # Masks are usually equal, and forty names are read once.
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


def _unreadable(subject: str, where: str, what: str) -> PrivilegeError:
    return PrivilegeError(
        f"The privilege probe of {where} could not be read: {what}. What is not proven is refused.",
        object=subject,
        next_step="Look whether /proc is mounted in the container as usual and the image's cat is the real one.",
    )
