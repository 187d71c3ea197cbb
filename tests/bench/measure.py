# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two or more things measured side by side in one run: rounds take turns, so that a machine's drift hits them alike."""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import time
import typing as t


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds of one candidate, a number a round."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds)


def side_by_side(
    candidates: t.Mapping[str, t.Callable[[], None]], rounds: int, before_each: t.Callable[[], None]
) -> dict[str, Measured]:
    """Run every candidate once a round, each after ``before_each``, which is not measured.

    Returns:
        What each took, by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _round in range(rounds):
        for name, run in candidates.items():
            before_each()
            began = time.monotonic()
            run()
            seconds[name].append(time.monotonic() - began)
    return {name: Measured(name, tuple(values)) for name, values in seconds.items()}


def command(words: list[str]) -> t.Callable[[], None]:
    """A command as a candidate; one that fails ends the measurement with what it said."""

    def run() -> None:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")

    return run
