# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the measurements stand on: a namespace with a warm pool, settled before every run."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import sys
import time
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, POD, WARM_POOL

HERE = pathlib.Path(__file__).parent
BIN = pathlib.Path(sys.executable).parent

#: Seconds for a pool to be full again and for released pods to be gone, on two busy cores; more for each member.
SETTLE_SECONDS = 120.0
SETTLE_SECONDS_A_MEMBER = 10.0

#: The share of processor time that nobody uses on a machine that has nothing to do but run an idle cluster, and the
#: seconds over which it is looked at; and the seconds for which that is waited for on a machine that never rests.
IDLE_SHARE = 0.6
IDLE_WINDOW = 0.2
IDLE_SECONDS = 10.0
PROCESSOR_TIMES = pathlib.Path("/proc/stat")


@dataclasses.dataclass
class Stage:
    """A pool to measure on.

    Attributes:
        namespace: a namespace of its own.
        pool: name of template and pool.
        replicas: members; at least as many as one run takes.
    """

    namespace: str = "namzu-bench"
    pool: str = "bench"
    replicas: int = 12

    def __post_init__(self) -> None:
        self.client = Client(resolve_access({}, os.environ))

    def __enter__(self) -> t.Self:
        self._play("present")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._play("absent")
        self.client.close()

    def play(self, name: str, *arguments: str) -> list[str]:
        """The command line of one of the measured plays."""
        # kubernetes.core runs as a module, in the Python that has its library.
        variables = {
            "bench_namespace": self.namespace,
            "bench_pool": self.pool,
            "ansible_python_interpreter": sys.executable,
        }
        extra = [word for key, value in variables.items() for word in ("-e", f"{key}={value}")]
        return [str(BIN / "ansible-playbook"), "-i", "localhost,", *extra, *arguments, str(HERE / "plays" / name)]

    def settle(self) -> None:
        """Wait until no claim is left, the pool is full, no other pod is there and the machine has come to rest."""
        seconds = SETTLE_SECONDS + SETTLE_SECONDS_A_MEMBER * self.replicas
        end = time.monotonic() + seconds
        while not self._is_settled():
            if time.monotonic() > end:
                raise SystemExit(f"The pool {self.namespace}/{self.pool} did not fill within {seconds:g} s.")
            time.sleep(0.1)
        end = time.monotonic() + IDLE_SECONDS
        while idle_share() < IDLE_SHARE and time.monotonic() < end:
            pass

    def _is_settled(self) -> bool:
        status = self.client.get(WARM_POOL.ref(self.namespace, self.pool)).get("status") or {}
        pods = self.client.list(POD, self.namespace)["items"]
        claims = self.client.list(CLAIM, self.namespace)["items"]
        return not claims and status.get("readyReplicas") == self.replicas and len(pods) == self.replicas

    def _play(self, state: str) -> None:
        image = os.environ.get("NAMZU_TEST_IMAGE", "localhost/namzu/python:3")
        variables = {"bench_state": state, "bench_image": image, "bench_replicas": self.replicas}
        extra = [word for key, value in variables.items() for word in ("-e", f"{key}={value}")]
        done = subprocess.run(self.play("stage.yml", *extra), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"The stage could not be made {state}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")


def idle_share() -> float:
    """The share of processor time that nobody has used in the next moment; 1 where it cannot be told (proc_stat(5))."""
    if not PROCESSOR_TIMES.exists():
        return 1.0
    before = _processor_times()
    time.sleep(IDLE_WINDOW)
    idle, total = (after - earlier for after, earlier in zip(_processor_times(), before, strict=True))
    return idle / total if total else 1.0


def _processor_times() -> tuple[int, int]:
    times = [int(word) for word in PROCESSOR_TIMES.read_text(encoding="ascii").splitlines()[0].split()[1:]]
    return times[3] + times[4], sum(times)
