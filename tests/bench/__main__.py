# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tests.bench [ROW …]``: measure side by side on the cluster that KUBECONFIG names, and print ratios."""

from __future__ import annotations

import argparse
import sys

from .rows import ROWS
from .stage import Stage


def main() -> int:
    """Print a line a ratio; 1 when a budget is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("row", nargs="*", metavar="ROW", help=f"which rows; all when none is named: {', '.join(ROWS)}")
    chosen = parser.parse_args().row or list(ROWS)
    broken = 0
    with Stage() as stage:
        for row in chosen:
            for ratio in ROWS[row](stage):
                broken += not ratio.holds
                verdict = "ok" if ratio.holds else "OVER"
                print(
                    f"{ratio.value:6.3f}  of at most {ratio.budget:5.2f}  {verdict:4}  {ratio.name}  ({ratio.detail})"
                )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
