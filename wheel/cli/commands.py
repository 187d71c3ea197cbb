# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of ``namzu-sandbox``."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import typing as t

import typer

from ..api import Execution, Sandbox
from ..api import verify as verify_boundary
from ..deadline import Deadline
from ..errors import MissingDependencyError
from ..guest.sessions.console import check_terminal, run_on_console
from .access import Access, with_access
from .copying import copy
from .doctor import diagnose
from .output import FAILED, TIMED_OUT, Output, failures, print_json, show

app = typer.Typer(
    help="Isolated sandboxes for the code of AI agents, on Kubernetes, Docker and Podman.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: The shell of ``shell`` when no program is given.
SHELL = ["/bin/sh", "-c", "exec $(command -v bash || echo /bin/sh)"]
#: Seconds for the agent to start the program of ``shell``.
START_SECONDS = 30.0
#: Parts of a program's arguments are not options of ours.
PROGRAM = {"ignore_unknown_options": True, "allow_interspersed_args": False}

Name = t.Annotated[str, typer.Argument(help="Name of the sandbox.", show_default=False)]
Uid = t.Annotated[str | None, typer.Option(help="Refuse another sandbox of that name.", show_default=False)]
Program = t.Annotated[
    list[str], typer.Argument(help="Program and arguments; write -- before them.", show_default=False)
]
Form = t.Annotated[Output, typer.Option("--output", "-o", help="Form of the result.")]
Timeout = t.Annotated[
    float | None, typer.Option(min=0.001, help="Seconds after which the program is ended.", show_default=False)
]
Variables = t.Annotated[
    list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="Variable of the program.")
]
Folder = t.Annotated[str | None, typer.Option("--cwd", help="Folder of the program.", show_default=False)]
Interactive = t.Annotated[bool, typer.Option("--stdin", "-i", help="Pass standard input to the program.")]


Image = t.Annotated[str | None, typer.Option(help="Image of a container engine.", show_default=False)]
Pool = t.Annotated[str | None, typer.Option(help="SandboxWarmPool.", show_default=False)]
Template = t.Annotated[str | None, typer.Option(help="SandboxTemplate.", show_default=False)]
Egress = t.Annotated[str | None, typer.Option(help="Verify that the sandbox reaches this at most.", show_default=False)]


@app.command()
@with_access
def acquire(
    access: Access,
    image: Image = None,
    pool: Pool = None,
    template: Template = None,
    name: t.Annotated[str | None, typer.Option(help="Name; made up when not given.", show_default=False)] = None,
    egress: Egress = None,
    ttl: t.Annotated[str, typer.Option(help="Life of the sandbox; extend makes it longer.")] = "15m",
    output: Form = Output.text,
) -> None:
    """Acquire a sandbox, and print its name. It is released when its lease ends, or by release."""
    with failures(output=output):
        given = _given(image=image, pool=pool, template=template, name=name, egress=egress, ttl=ttl)
        sandbox = Sandbox.acquire(**given, **access)
        if output is Output.json:
            print_json(sandbox.info)
        else:
            sys.stdout.write(f"{sandbox.name}\n")


def _given(**options: t.Any) -> dict[str, t.Any]:
    return {name: value for name, value in options.items() if value is not None}


@app.command(context_settings=PROGRAM)
@with_access
def run(
    access: Access,
    program: Program,
    image: Image = None,
    pool: Pool = None,
    template: Template = None,
    egress: Egress = None,
    ttl: t.Annotated[str, typer.Option(help="Life of the sandbox after this command was killed.")] = "5m",
    timeout: Timeout = None,
    env: Variables = None,
    cwd: Folder = None,
    stdin: Interactive = False,
) -> None:
    """Acquire a sandbox, run a program in it, and release it. The status is the program's."""
    with failures(FAILED):
        given = _given(image=image, pool=pool, template=template, egress=egress, ttl=ttl)
        with Sandbox.acquire(**given, **access) as sandbox:
            status = _run(sandbox, program, timeout, env, cwd, stdin=stdin)
        sys.exit(status)


@app.command("exec", context_settings=PROGRAM)
@with_access
def execute(
    access: Access,
    name: Name,
    program: Program,
    uid: Uid = None,
    timeout: Timeout = None,
    env: Variables = None,
    cwd: Folder = None,
    stdin: Interactive = False,
) -> None:
    """Run a program in a sandbox that exists. The status is the program's."""
    with failures(FAILED), Sandbox.connect(name, uid=uid, **access) as sandbox:
        sys.exit(_run(sandbox, program, timeout, env, cwd, stdin=stdin))


def _run(
    sandbox: Sandbox,
    program: list[str],
    timeout: float | None,
    variables: list[str] | None,
    cwd: str | None,
    *,
    stdin: bool,
) -> int:
    done = sandbox.run(
        _program(program),
        timeout=timeout,
        stdin=sys.stdin.buffer.read() if stdin else None,
        env=dict(_variable(text) for text in variables or ()),
        cwd=cwd,
        on_stdout=_writer(sys.stdout),
        on_stderr=_writer(sys.stderr),
    )
    return _status(done)


def _program(words: list[str]) -> list[str]:
    """Program and arguments, without the ``--`` that separates them from options."""
    program = words[1:] if words and words[0] == "--" else words
    if not program:
        raise typer.BadParameter("no program is given", param_hint="PROGRAM")
    return program


def _status(done: Execution) -> int:
    if done.timed_out:
        sys.stderr.write("namzu-sandbox: the program ran into its timeout and was ended.\n")
        return TIMED_OUT
    return done.rc if done.rc >= 0 else 128 - done.rc


def _writer(stream: t.TextIO) -> t.Callable[[bytes], object]:
    def write(data: bytes) -> None:
        stream.buffer.write(data)
        stream.buffer.flush()

    return write


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--env")
    return name, value


@app.command(context_settings=PROGRAM)
@with_access
def shell(
    access: Access,
    name: Name,
    program: t.Annotated[
        list[str] | None, typer.Argument(help="Program and arguments; a shell when not given.", show_default=False)
    ] = None,
    uid: Uid = None,
    cwd: Folder = None,
) -> None:
    """Run a program in a sandbox on this terminal. The status is the program's."""
    with failures(FAILED):
        check_terminal()
        with Sandbox.connect(name, uid=uid, **access) as sandbox:
            done = run_on_console(
                sandbox.agent, _program(program) if program else SHELL, deadline=Deadline(START_SECONDS), cwd=cwd
            )
        sys.exit(_status(done))


@app.command("list")
@with_access
def list_(
    access: Access,
    selector: t.Annotated[
        str | None, typer.Option("--selector", "-l", help="Label selector.", show_default=False)
    ] = None,
    output: Form = Output.text,
) -> None:
    """List sandboxes."""
    with failures(output=output):
        found = Sandbox.list(label_selector=selector, **access)
        columns = {"name": "NAME", "phase": "PHASE", "lease_left": "LEASE LEFT", "source": "SOURCE", "uid": "UID"}
        rows = [{**one, "lease_left": _seconds(one.get("lease_left")), "source": _source(one)} for one in found]
        show(found if output is Output.json else rows, columns, output)


def _source(sandbox: dict[str, t.Any]) -> str | None:
    return sandbox.get("warm_pool") or sandbox.get("template") or sandbox.get("image")


def _seconds(left: float | None) -> str | None:
    return None if left is None else f"{left:.0f} s"


@app.command()
@with_access
def ls(
    access: Access,
    name: Name,
    path: t.Annotated[str, typer.Argument(help="Folder in the sandbox; the workspace when not given.")] = ".",
    output: Form = Output.text,
) -> None:
    """List a folder of a sandbox."""
    with failures(output=output), Sandbox.connect(name, **access) as sandbox:
        found = sandbox.files.list(path)
        rows = [
            {
                "mode": f"{one.mode:04o}",
                "size": one.size,
                "changed": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.mtime)),
                "path": f"{one.path} -> {one.target}" if one.target is not None else one.path,
                "kind": one.kind,
            }
            for one in found
        ]
        show(rows, {"kind": "KIND", "mode": "MODE", "size": "SIZE", "changed": "CHANGED (UTC)", "path": "PATH"}, output)


@app.command()
@with_access
def cp(
    access: Access,
    source: t.Annotated[str, typer.Argument(help="File or folder; NAME:PATH in a sandbox.", show_default=False)],
    target: t.Annotated[str, typer.Argument(help="File or folder; NAME:PATH in a sandbox.", show_default=False)],
) -> None:
    """Copy a file or a folder into a sandbox, or out of it."""
    with failures():
        copy(source, target, access)


@app.command()
@with_access
def forward(
    access: Access,
    name: Name,
    port: t.Annotated[int, typer.Argument(min=1, max=65535, help="Port in the sandbox.", show_default=False)],
    local_port: t.Annotated[int, typer.Option(min=0, max=65535, help="Local port; 0 takes a free one.")] = 0,
    uid: Uid = None,
) -> None:
    """Forward a local port to a port of a sandbox until interrupted."""
    with (
        failures(),
        Sandbox.connect(name, uid=uid, **access) as sandbox,
        sandbox.forward(port, local_port=local_port) as local,
    ):
        host, number = local.address
        sys.stdout.write(f"{host}:{number} is forwarded to port {port} of sandbox {name}\n")
        sys.stdout.flush()
        signal.pause()


@app.command()
@with_access
def extend(
    access: Access,
    name: Name,
    remaining: t.Annotated[str, typer.Argument(help="How much must be left, for example 15m.", show_default=False)],
    uid: Uid = None,
) -> None:
    """Extend the lease of a sandbox, unless as much is left."""
    with failures(), Sandbox.connect(name, uid=uid, **access) as sandbox:
        sandbox.extend(remaining)


@app.command()
@with_access
def release(
    access: Access,
    names: t.Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of sandboxes.", show_default=False)],
    uid: Uid = None,
    output: Form = Output.text,
) -> None:
    """Release sandboxes."""
    with failures(output=output):
        if uid is not None and len(names) > 1:
            raise typer.BadParameter("it is about one sandbox", param_hint="--uid")
        released = Sandbox.release_named(dict.fromkeys(names, uid), **access)
        if output is Output.json:
            print_json({"released": released})
        else:
            for name in names:
                sys.stdout.write(f"{name} {'released' if name in released else 'did not exist'}\n")


@app.command()
@with_access
def doctor(
    access: Access,
    image: Image = None,
    pool: Pool = None,
    template: Template = None,
    egress: t.Annotated[str, typer.Option(help="What the sandbox may reach at most.")] = "no_network",
    output: Form = Output.text,
) -> None:
    """Check what works from here: access, source, sandbox, agent, privileges, boundary. Status 1 when a check fails."""
    with failures(output=output):
        checks = diagnose(_given(image=image, pool=pool, template=template), egress, access)
        rows = [check.row() for check in checks]
        show(rows, {"check": "CHECK", "result": "RESULT", "detail": "DETAIL", "next_step": "NEXT STEP"}, output)
        sys.exit(1 if any(check.error is not None for check in checks) else 0)


@app.command()
@with_access
def verify(
    access: Access,
    name: t.Annotated[str | None, typer.Argument(help="Name of a sandbox.", show_default=False)] = None,
    pool: Pool = None,
    template: Template = None,
    pod: t.Annotated[str | None, typer.Option(help="Pod.", show_default=False)] = None,
    selector: t.Annotated[
        str | None, typer.Option("--selector", "-l", help="Label selector of pods.", show_default=False)
    ] = None,
    manifests: t.Annotated[
        list[str] | None, typer.Option(help="File or folder of objects, instead of a cluster.", show_default=False)
    ] = None,
    egress: Egress = None,
    output: Form = Output.text,
) -> None:
    """Verify what pods reach and who reaches them; nothing is changed. Status 1 when a boundary does not hold."""
    with failures(output=output):
        pods = {"name": name, "pool": pool, "template": template, "pod": pod, "label_selector": selector}
        found = verify_boundary(**_given(**pods, manifests=manifests, egress=egress), **access)
        if output is Output.json:
            print_json(found)
        else:
            sys.stdout.write(f"{found['text']}\n")
        sys.exit(0 if found["holds"] else 1)


@app.command("mcp")
@with_access
def serve_tools(
    access: Access,
    image: Image = None,
    pool: Pool = None,
    template: Template = None,
    egress: Egress = None,
    ttl: t.Annotated[str, typer.Option(help="Life of the sandbox after this command was killed.")] = "5m",
    allow: t.Annotated[
        list[str] | None, typer.Option(help="run, background, read or write; all when not given.")
    ] = None,
    max_timeout: t.Annotated[float, typer.Option(min=0.001, help="The most seconds for a program.")] = 600.0,
    max_output: t.Annotated[int, typer.Option(min=1, help="The most bytes of an output stream or a file.")] = 65536,
) -> None:
    """Serve one sandbox to an agent as MCP tools on standard input and output; it is released with the client."""
    with failures():
        try:
            from .tool_server import Limits, Operation, serve
        except ImportError as error:
            raise MissingDependencyError(
                f"namzu-sandbox mcp needs the Python library {error.name}.",
                next_step="Install namzu-sandbox[cli,mcp].",
            ) from None
        operations = frozenset(Operation(word) for word in allow or [*Operation])
        given = _given(image=image, pool=pool, template=template, egress=egress, ttl=ttl)
        asyncio.run(serve(given, access, Limits(operations, max_timeout, max_output)))
