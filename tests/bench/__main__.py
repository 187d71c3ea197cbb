# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tests.bench [ROW …]``: measure side by side on the cluster that KUBECONFIG names, and print ratios."""

from __future__ import annotations

import argparse
import os
import sys

from .connection import CONNECTION_ROWS
from .container import CONTAINER_ROWS
from .rows import LARGE_POOL, LARGE_ROWS, ROWS, Ratio
from .stage import Stage


def main() -> int:
    """Print a line a ratio; 1 when a budget is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    names = (
        f"{', '.join(ROWS)}; and when asked for: {', '.join(CONNECTION_ROWS)}; "
        f"on the engine of DOCKER_HOST: {', '.join(CONTAINER_ROWS)}; "
        f"with a pool of {LARGE_POOL}: {', '.join(LARGE_ROWS)}"
    )
    parser.add_argument(
        "row", nargs="*", metavar="ROW", help=f"which rows; those of the tests when none is named: {names}"
    )
    chosen = parser.parse_args().row or list(ROWS)
    unknown = [row for row in chosen if row not in {**ROWS, **CONNECTION_ROWS, **CONTAINER_ROWS, **LARGE_ROWS}]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {names}")
    broken = 0
    for row in (row for row in chosen if row in CONTAINER_ROWS):
        measured = CONTAINER_ROWS[row](os.environ["DOCKER_HOST"], os.environ["NAMZU_TEST_IMAGE"])
        broken += sum(_print(ratio) for ratio in measured)
    for rows, replicas in ((ROWS, 12), (CONNECTION_ROWS, 1), (LARGE_ROWS, LARGE_POOL)):
        asked = [row for row in chosen if row in rows]
        if asked:
            with Stage(replicas=replicas) as stage:
                broken += sum(_print(ratio) for row in asked for ratio in rows[row](stage))
    return 1 if broken else 0


def _print(ratio: Ratio) -> bool:
    """A line for a ratio; whether it is over its budget."""
    verdict = "ok" if ratio.holds else "OVER"
    print(
        f"{ratio.value:6.3f}  of at most {ratio.budget:5.2f}  {verdict:4}  {ratio.name}  ({ratio.detail})", flush=True
    )
    return not ratio.holds


if __name__ == "__main__":
    sys.exit(main())
