# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What commands print: results on standard output, messages on standard error, and their exit statuses."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import signal
import sys
import typing as t

import rich.console
import rich.table
import rich.text

from ..errors import SandboxError

#: The status of a command that could not do its work, where other statuses are those of a program; as ssh has it.
FAILED = 255
TIMED_OUT = 124

Row = t.Mapping[str, t.Any]


class Output(enum.StrEnum):
    """The forms of a result."""

    text = "text"
    json = "json"


def show(rows: t.Sequence[Row], columns: t.Mapping[str, str], output: Output) -> None:
    """Print rows as a table with these columns (title by field), or whole as JSON."""
    if output is Output.json:
        print_json(list(rows))
        return
    table = rich.table.Table(box=None, pad_edge=False, header_style="bold")
    for title in columns.values():
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(rich.text.Text(_text(row.get(field))) for field in columns))
    console().print(table)


def print_json(value: t.Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


def console(*, stderr: bool = False) -> rich.console.Console:
    """The console of standard output or standard error; without a terminal, a line is as long as its text."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100_000
    return rich.console.Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def _text(value: t.Any) -> str:
    return "" if value is None else str(value)


@contextlib.contextmanager
def failures(status: int = 1, output: Output = Output.text) -> t.Iterator[None]:
    """Report a failure as a message, and exit with a status; signals end the block, so that it cleans up."""
    with _signals():
        try:
            yield
        except SandboxError as error:
            report(error, output)
            sys.exit(status)
        except (TypeError, ValueError) as error:
            sys.stderr.write(f"namzu-sandbox: {error}.\n")
            sys.exit(status)
        except BrokenPipeError:
            # The reader of the output has ended: nobody is left to report to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            sys.stderr.write(f"namzu-sandbox: {name}{error.strerror or error}.\n")
            sys.exit(status)
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)


def report(error: SandboxError, output: Output = Output.text) -> None:
    """Print an error with its next step on standard error."""
    if output is Output.json:
        document = {**error.fields(), "message": error.message, "next_step": error.next_step}
        sys.stderr.write(json.dumps(document, default=str) + "\n")
    else:
        sys.stderr.write(f"namzu-sandbox: {error}\n")


@contextlib.contextmanager
def _signals() -> t.Iterator[None]:
    def leave(number: int, _frame: object) -> t.NoReturn:
        sys.exit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
