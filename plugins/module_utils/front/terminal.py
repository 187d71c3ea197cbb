# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A terminal in a sandbox or workspace, for people: ``python -m …front.terminal --namespace agents build-4711``."""

from __future__ import annotations

import argparse
import os
import sys
import typing as t

from ..deadline import Deadline
from ..errors import SandboxError
from ..guest.sessions.console import check_terminal, run_on_console
from .backends.opening import open_backend
from .guests import check_guest, find_guest
from .options.specs import ACCESS, AGENT
from .verb import Context

#: What a person expects when no command is given.
SHELL = ["/bin/sh", "-c", "exec $(command -v bash || echo /bin/sh)"]

#: Seconds for the agent to start the command.
START_SECONDS = 30.0

#: The status when we could not do it, as ssh has it; everything else is the command's own.
FAILED = 255

_ABOUT = """\
Opens a terminal in a sandbox or a running workspace. Without a command it is a shell. The status is the command's, 128
and the number of the signal that ended it, or 255 when there was no terminal to be had."""

_ENVIRONMENT = """\
The access options and the variables K8S_AUTH_* and KUBECONFIG mean what they mean to the modules. A token is given by
K8S_AUTH_API_KEY, because every user of a machine can read the arguments of a command."""


def main(arguments: t.Sequence[str] | None = None) -> int:
    """Open the terminal that the command line asks for; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    cut = words.index("--") if "--" in words else len(words)
    parser = _parser()
    params = vars(parser.parse_args(words[:cut]))
    if (params["name"] is None) == (params["workspace_id"] is None):
        parser.error("give the name of a sandbox, or --workspace and an id")
    params["agent"] = {option: params[f"agent_{option}"] for option in AGENT["agent"]["options"]}
    try:
        return _open(params, words[cut + 1 :] or SHELL)
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED


def _open(params: dict[str, t.Any], argv: list[str]) -> int:
    check_terminal()
    check_guest(params)
    term = {"TERM": os.environ["TERM"]} if os.environ.get("TERM") else None
    with open_backend(params, Context(check_mode=False, environ=os.environ)) as backend:
        guest = find_guest(params, backend)
        start = Deadline(START_SECONDS)
        return run_on_console(guest.agent, argv, deadline=start, env=term, cwd=params["chdir"]).rc


def _parser() -> argparse.ArgumentParser:
    """The command line; the access options come from their table."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.terminal",
        usage="%(prog)s [options] NAME [-- command …]\n       %(prog)s [options] --workspace ID [-- command …]",
        description=_ABOUT,
        epilog=_ENVIRONMENT,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the sandbox")
    parser.add_argument("--workspace", dest="workspace_id", metavar="ID", help="id of a workspace, instead of a name")
    parser.add_argument("--uid", help="uid of the sandbox or workspace that is meant; another one is refused")
    parser.add_argument("--chdir", metavar="FOLDER", help="where the command starts; the workspace's folder by default")
    for option, spec in ACCESS.items():
        if not spec.get("no_log"):
            parser.add_argument(*_flags(option), dest=option, default=spec.get("default"), **_shape(spec))
    for option, spec in AGENT["agent"]["options"].items():
        parser.add_argument(
            f"--agent-{option}",
            default=spec["default"],
            type=int if spec["type"] == "int" else str,
            choices=spec.get("choices"),
        )
    return parser


def _flags(option: str) -> list[str]:
    return ["-n", "--namespace"] if option == "namespace" else [f"--{option.replace('_', '-')}"]


def _shape(spec: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    if spec["type"] == "bool":
        return {"action": argparse.BooleanOptionalAction}
    return {"action": "append"} if spec["type"] == "list" else {}


if __name__ == "__main__":
    raise SystemExit(main())
