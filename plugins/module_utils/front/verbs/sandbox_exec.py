# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_exec``: run a command in a sandbox."""

from __future__ import annotations

from ...cluster.deadline import Deadline
from ...cluster.errors import InputError
from ...guest.agent import Agent
from ...guest.execution import Execution
from ...lifecycle.address import Located, locate
from ...lifecycle.request import check_name
from ..durations import seconds
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
    name, argv = str(params["name"]), _argv(params)
    check_name("name", name)
    timeout = seconds("timeout", params["timeout"]) if params.get("timeout") is not None else None
    if not 0 <= params["max_output"] <= LARGEST_OUTPUT:
        raise InputError(f"max_output is {params['max_output']}; it must be between 0 and {LARGEST_OUTPUT} bytes.")
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
    if context.check_mode:
        return {"changed": False, "skipped": True, "msg": f"Not run in check mode; sandbox {name} is there."}
    return _result(params, located, argv, _execute(params, located, argv, timeout))


def _execute(params: Params, located: Located, argv: list[str], timeout: float | None) -> Execution:
    bound = UNBOUNDED_SECONDS if timeout is None else timeout + ANSWER_SECONDS
    return Agent(located.agent).execute(
        argv,
        deadline=Deadline(bound),
        cwd=params.get("chdir"),
        env={str(key): str(value) for key, value in (params.get("environment") or {}).items()},
        stdin=(params.get("stdin") or "").encode(),
        timeout=timeout,
        max_output=params["max_output"],
    )


def _argv(params: Params) -> list[str]:
    if params.get("argv"):
        return [str(word) for word in params["argv"]]
    if params.get("command"):
        return ["/bin/sh", "-c", str(params["command"])]
    raise InputError("There is nothing to run: argv and command are empty.", next_step="Give one of them.")


def _result(params: Params, located: Located, argv: list[str], done: Execution) -> Result:
    stdout, stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    result: Result = {
        "changed": True,
        "cmd": params.get("command") or argv,
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
    constraints={"mutually_exclusive": [("argv", "command")], "required_one_of": [("argv", "command")]},
)
