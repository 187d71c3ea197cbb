# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the agents of this run answer, for the worker processes of one ansible-playbook.

Ansible starts a process for every task, and what one has found out is lost with it. They share one folder, which
Ansible makes for the run, lets nobody else read, and deletes at the end: it keeps its packed modules there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import tempfile
import typing as t


@dataclasses.dataclass(frozen=True)
class Location:
    """Where an agent answers.

    Attributes:
        namespace, sandbox, pod: names of the objects.
        host, port: the address of the agent.
        token: the pod's uid. It is not part of the text form.
    """

    namespace: str
    sandbox: str
    pod: str
    host: str
    port: int
    token: str = dataclasses.field(repr=False)


class Memory:
    """What this run knows about one target."""

    def __init__(self, folder: pathlib.Path, key: str) -> None:
        self._file = folder / key

    def read(self) -> Location | None:
        """Where the agent was when the run saw it last, or None when it has not."""
        try:
            return Location(**json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def keep(self, location: Location) -> Location:
        """Remember a location unless another process was faster; returns the one that is remembered."""
        with self._written(location) as file, contextlib.suppress(FileExistsError):
            os.link(file, self._file)
        return self.read() or location

    def replace(self, location: Location) -> None:
        """Remember a location instead of the one that was known."""
        with self._written(location) as file:
            os.replace(file, self._file)

    def forget(self) -> None:
        """Know nothing any more."""
        self._file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _written(self, location: Location) -> t.Iterator[str]:
        """A whole file, of which nobody knows yet; what is left of it is deleted."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._file.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(dataclasses.asdict(location), stream)
            yield name
        finally:
            pathlib.Path(name).unlink(missing_ok=True)
