# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_exec``: run a command in a sandbox."""

from __future__ import annotations

import typing as t

from ...cluster.deadline import Deadline
from ...cluster.errors import InputError
from ...guest.agent import Agent
from ...guest.errors import ExecutionDetachedError
from ...guest.execution import Execution
from ...guest.executions import LARGEST_KEPT_OUTPUT, Executions
from ...lifecycle.address import Located, locate
from ...lifecycle.request import check_name
from ..durations import length
from ..options import SANDBOX_EXEC
from ..verb import Context, Params, Result, Verb, connect, namespace_of

#: Seconds for finding the sandbox: two or three reads.
LOCATE_SECONDS = 30.0

#: Seconds beyond a command's own timeout in which the agent must have ended it and said so.
ANSWER_SECONDS = 30.0

#: Seconds that a command without a timeout may take: a day, so that even that is bounded.
UNBOUNDED_SECONDS = 86400.0

LARGEST_OUTPUT = 64 * 1024 * 1024


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    name = str(params["name"])
    check_name("name", name)
    attach = params.get("attach")
    argv = [] if attach else _argv(params)
    timeout = length("timeout", params["timeout"]) if params.get("timeout") is not None else None
    _check(params, attach)
    agent = params.get("agent") or {}
    with connect(params, context) as client:
        located = locate(
            client,
            namespace_of(params, client),
            name,
            port=agent.get("port", 1024),
            mode=agent.get("address", "service"),
            deadline=Deadline(LOCATE_SECONDS, client.clock),
        )
        if context.check_mode and not (attach and not attach["cancel"]):
            return {"changed": False, "skipped": True, "msg": f"Not run in check mode; sandbox {name} is there."}
        if attach:
            return _attached(located, attach, timeout)
        if params["detach"]:
            return _detached(params, located, argv, timeout)
        return _result(located, _shown(params, argv), _execute(params, located, argv, timeout))


def _check(params: Params, attach: t.Mapping[str, t.Any] | None) -> None:
    largest = LARGEST_KEPT_OUTPUT if params["detach"] else LARGEST_OUTPUT
    if not 0 <= params["max_output"] <= largest:
        raise InputError(f"max_output is {params['max_output']}; it must be between 0 and {largest} bytes.")
    if attach and attach["offset"] < 0:
        raise InputError(f"attach.offset is {attach['offset']}; it must be at least 0.")


def _execute(params: Params, located: Located, argv: list[str], timeout: float | None) -> Execution:
    bound = UNBOUNDED_SECONDS if timeout is None else timeout + ANSWER_SECONDS
    return Agent(located.agent).execute(argv, deadline=Deadline(bound), **_options(params, timeout))


def _options(params: Params, timeout: float | None) -> dict[str, t.Any]:
    return {
        "cwd": params.get("chdir"),
        "env": {str(key): str(value) for key, value in (params.get("environment") or {}).items()},
        "stdin": (params.get("stdin") or "").encode(),
        "timeout": timeout,
        "max_output": params["max_output"],
    }


def _argv(params: Params) -> list[str]:
    if params.get("argv"):
        return [str(word) for word in params["argv"]]
    if params.get("command"):
        return ["/bin/sh", "-c", str(params["command"])]
    raise InputError("There is nothing to run: argv and command are empty.", next_step="Give one of them.")


def _shown(params: Params, argv: list[str]) -> t.Any:
    return params.get("command") or argv


def _detached(params: Params, located: Located, argv: list[str], timeout: float | None) -> Result:
    executions = Executions(Agent(located.agent))
    key = executions.start(argv, deadline=Deadline(ANSWER_SECONDS), **_options(params, timeout))
    return {"changed": True, "cmd": _shown(params, argv), **_standing(located, key, 0, done=False)}


def _attached(located: Located, attach: t.Mapping[str, t.Any], timeout: float | None) -> Result:
    """Follow an execution to its end, or for as long as the task's timeout lets us."""
    executions, key = Executions(Agent(located.agent)), str(attach["id"])
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
        return {"changed": changed, **said, **_standing(located, key, error.offset, done=False)}
    received = attach["offset"] + len(done.stdout) + len(done.stderr)
    result = {**_result(located, None, done), "changed": changed}
    if attach["cancel"] and done.signal is not None:
        # It was to end, and did. Without the word Ansible takes any rc but 0 for a failure.
        result = {key: value for key, value in result.items() if key not in ("reason", "msg")} | {"failed": False}
    return {**result, **_standing(located, key, received, done=True)}


def _standing(located: Located, key: str, offset: int, *, done: bool) -> Result:
    return {"id": key, "offset": offset, "running": not done, "sandbox": located.name, "pod": located.pod}


def _result(located: Located, shown: t.Any, done: Execution) -> Result:
    stdout, stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    result: Result = {
        "changed": True,
        "cmd": shown,
        "rc": done.rc,
        "signal": done.signal,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": done.truncated_stdout or done.truncated_stderr,
        "timed_out": done.timed_out,
        "sandbox": located.name,
        "pod": located.pod,
        "duration": done.duration,
    }
    if done.timed_out:
        result.update(failed=True, reason="timeout", msg=f"The command in sandbox {located.name} ran into its timeout.")
    elif done.rc != 0:
        result.update(failed=True, reason="non-zero-rc", msg="non-zero return code")
    return result


VERB = Verb(
    name="sandbox_exec",
    options=SANDBOX_EXEC,
    run=run,
    constraints={
        "mutually_exclusive": [
            ("argv", "command", "attach"),
            *((option, "attach") for option in ("chdir", "environment", "stdin")),
        ],
        "required_one_of": [("argv", "command", "attach")],
    },
)
