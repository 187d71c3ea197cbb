# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_exec``: run a command in a sandbox or workspace."""

from __future__ import annotations

import signal
import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ...guest.errors import ExecutionDetachedError, GuestStoppedError
from ...guest.execution.stream import Execution
from ...guest.sessions.detached import LARGEST_RETAINED_OUTPUT, Executions
from ..backends.opening import open_backend
from ..backends.protocol import Guest
from ..guests import check_guest, find_guest
from ..options.commands import command_options, shown, timeout_of, words_of
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_EXEC, Params
from ..options.target import with_target
from ..verb import Context, Result, Verb, failure

#: Seconds for the answer of the agent, beyond the timeout of a command.
ANSWER_SECONDS = 30.0

#: Seconds that a command without a timeout may take: a day, so that even that is bounded.
UNBOUNDED_SECONDS = 86400.0

LARGEST_OUTPUT = 64 * 1024 * 1024


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    check_guest(params)
    attach = params.get("attach")
    argv = [] if attach else words_of(params)
    timeout = timeout_of(params)
    _check(params, attach)
    with open_backend(params, context) as backend:
        guest = find_guest(params, backend)
        if context.check_mode and not (attach and not attach["cancel"]):
            return {"changed": False, "skipped": True, "msg": f"Not run in check mode; {guest.subject} exists."}
        if attach:
            return _attached(guest, attach, timeout)
        if params["detach"]:
            return _detached(params, guest, argv, timeout)
        return _result(guest, shown(params, argv), _execute(params, guest, argv, timeout))


def _check(params: Params, attach: t.Mapping[str, t.Any] | None) -> None:
    largest = LARGEST_RETAINED_OUTPUT if params["detach"] else LARGEST_OUTPUT
    if not 0 <= params["max_output"] <= largest:
        raise InputError(f"max_output is {params['max_output']}; it must be between 0 and {largest} bytes.")
    if attach and attach["offset"] < 0:
        raise InputError(f"attach.offset is {attach['offset']}; it must be at least 0.")


def _execute(params: Params, guest: Guest, argv: list[str], timeout: float | None) -> Execution:
    bound = UNBOUNDED_SECONDS if timeout is None else timeout + ANSWER_SECONDS
    return guest.agent.execute(argv, deadline=Deadline(bound), **_options(params, timeout))


def _options(params: Params, timeout: float | None) -> dict[str, t.Any]:
    return {**command_options(params, timeout), "max_output": params["max_output"]}


def _detached(params: Params, guest: Guest, argv: list[str], timeout: float | None) -> Result:
    executions = Executions(guest.agent)
    key = executions.start(argv, deadline=Deadline(ANSWER_SECONDS), **_options(params, timeout))
    return {"changed": True, "cmd": shown(params, argv), **_session(guest, key, 0, done=False)}


def _attached(guest: Guest, attach: t.Mapping[str, t.Any], timeout: float | None) -> Result:
    """Follow an execution to its end, or for as long as the task's timeout lets us."""
    executions, key = Executions(guest.agent), str(attach["id"])
    output = {"stdout": bytearray(), "stderr": bytearray()}
    changed = False
    if attach["cancel"]:
        changed = executions.cancel(key, deadline=Deadline(ANSWER_SECONDS))
    try:
        done = executions.attach(
            key,
            offset=attach["offset"],
            deadline=Deadline(UNBOUNDED_SECONDS if timeout is None else timeout),
            on_output=lambda stream, data: output[stream].extend(data),
        )
    except ExecutionDetachedError as error:
        if not error.reached:
            raise
        said = {name: data.decode("utf-8", "replace") for name, data in output.items()}
        return {"changed": changed, **said, **_session(guest, key, error.offset, done=False)}
    received = attach["offset"] + len(done.stdout) + len(done.stderr)
    result = {**_result(guest, None, done), "changed": changed}
    if attach["cancel"] and done.signal is not None:
        # It was cancelled, and ended. Without this Ansible takes any rc but 0 for a failure.
        result = {key: value for key, value in result.items() if key not in ("reason", "msg")} | {"failed": False}
    return {**result, **_session(guest, key, received, done=True)}


def _session(guest: Guest, key: str, offset: int, *, done: bool) -> Result:
    return {"id": key, "offset": offset, "running": not done, "sandbox": guest.name, "pod": guest.pod}


def _result(guest: Guest, cmd: t.Any, done: Execution) -> Result:
    stdout, stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    result: Result = {
        "changed": True,
        "cmd": cmd,
        "rc": done.rc,
        "signal": done.signal,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": done.truncated_stdout or done.truncated_stderr,
        "timed_out": done.timed_out,
        "out_of_memory": done.out_of_memory,
        "sandbox": guest.name,
        "pod": guest.pod,
        "duration": done.duration,
    }
    if done.timed_out:
        message = f"The command in {guest.subject} was stopped by its timeout after {done.duration:.1f} s."
        result.update(failed=True, reason="timeout", msg=f"{message} Use a longer timeout, or detach.")
    elif done.cut_short:
        result.update(failure(GuestStoppedError(f"The command in {guest.subject}", guest.agent.peer.name)))
        result["changed"] = True
    elif done.out_of_memory:
        text = f"The command in {guest.subject} was killed because the container reached its memory limit."
        result.update(failed=True, reason="non-zero-rc", msg=f"{text} Raise the limit in the template, or use less.")
    elif done.signal is not None:
        result.update(failed=True, reason="non-zero-rc", msg=_signalled(guest, done.signal))
    elif done.rc != 0:
        result.update(
            failed=True,
            reason="non-zero-rc",
            msg=f"The command in {guest.subject} failed: non-zero return code {done.rc}.",
        )
    return result


def _signalled(guest: Guest, number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"The command in {guest.subject} was ended by {name}."


VERB = Verb(
    name="sandbox_exec",
    options=SANDBOX_EXEC,
    run=run,
    constraints={
        "mutually_exclusive": [
            *GUEST_EXCLUSIVE,
            ("argv", "command", "attach"),
            *((option, "attach") for option in ("chdir", "environment", "stdin")),
        ],
        "required_one_of": [*GUEST_REQUIRED, ("argv", "command", "attach")],
    },
)
