# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease keeper with a real engine: leases outlast their ttl while the play runs, and end after it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t
import uuid

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient

from .conftest import IMAGE, Way, until

#: Seconds of the shortest lease that there is.
TTL = 10
Task = dict[str, t.Any]


class Kept:
    """Starts plays with the lease keeper."""

    def __init__(self, folder: pathlib.Path, docker: EngineClient) -> None:
        self._folder = folder
        self.engine = Way(docker, None, "auto")

    @contextlib.contextmanager
    def started(self, *tasks: Task) -> t.Iterator[subprocess.Popen[str]]:
        """A play under way; after these tasks it waits until the gate is opened."""
        gate = self._folder / "gate"
        os.mkfifo(gate)
        waiting = {"ansible.builtin.command": {"argv": ["cat", str(gate)]}, "changed_when": False}
        book = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [*tasks, waiting]}]
        (self._folder / "play.yml").write_text(yaml.safe_dump(book))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environ = {
            **kept,
            "ANSIBLE_HOME": str(self._folder / "home"),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_CALLBACKS_ENABLED": "namzu.sandbox.lease_keeper",
            "DOCKER_HOST": self.engine.client.access.docker_host,
            "NAMZU_SANDBOX_BACKEND": "container",
        }
        program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        process = subprocess.Popen(
            [program, str(self._folder / "play.yml")], cwd=self._folder, env=environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            self.open_gate()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def open_gate(self) -> None:
        """Let the play, or its worker when that outlived the play, go on."""
        with contextlib.suppress(OSError):
            os.close(os.open(self._folder / "gate", os.O_WRONLY | os.O_NONBLOCK))

    def running(self, name: str) -> bool:
        return name in self.engine.names()


@pytest.fixture
def kept(docker: EngineClient, tmp_path: pathlib.Path) -> Kept:
    return Kept(tmp_path, docker)


def sandbox(name: str, **options: t.Any) -> Task:
    return {"namzu.sandbox.sandbox": {"image": IMAGE, "name": name, "ready_timeout": "120s", **options}}


def names(*kinds: str) -> list[str]:
    return [f"{kind}-{uuid.uuid4().hex[:8]}" for kind in kinds]


def test_lease_outlasts_its_ttl_while_the_play_runs_and_is_released_at_the_end(kept: Kept) -> None:
    marked, unmarked = names("marked", "unmarked")
    tasks = [sandbox(marked, ttl=TTL, release_on_end=True), sandbox(unmarked, ttl=TTL)]
    with kept.started(*tasks) as process:
        until(lambda: kept.running(unmarked))
        # Past the end of the first lease, and of a tick of PID 1.
        time.sleep(2 * TTL)
        assert kept.running(marked)
        assert kept.running(unmarked)
        until(lambda: kept.open_gate() or process.poll() is not None)
        said, _nothing = process.communicate()
    assert process.returncode == 0, said
    assert not kept.running(marked)
    assert "2 sandboxes held" in said
    assert "1 released at the end" in said
    assert f"not released, as release_on_end is off: Sandbox {unmarked} (expires at" in said
    until(lambda: not kept.running(unmarked))


def test_killed_play_releases_what_is_marked_and_the_rest_ends_with_its_lease(kept: Kept) -> None:
    marked, unmarked = names("marked", "unmarked")
    with kept.started(sandbox(marked, ttl="1h", release_on_end=True), sandbox(unmarked, ttl=20)) as process:
        until(lambda: kept.running(unmarked))
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Its lease lasts an hour: only the keeper can have released it.
        until(lambda: not kept.running(marked))
        assert kept.running(unmarked)
        until(lambda: not kept.running(unmarked))


def test_what_the_play_releases_is_no_loss(kept: Kept) -> None:
    (name,) = names("released")
    tasks = [sandbox(name, release_on_end=True), {"namzu.sandbox.sandbox": {"name": name, "state": "absent"}}]
    with kept.started(*tasks) as process:
        until(lambda: kept.open_gate() or process.poll() is not None)
        said, _nothing = process.communicate()
    assert process.returncode == 0, said
    assert "1 sandbox held, 0 renewals, 1 released by the play" in said
