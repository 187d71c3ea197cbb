# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``namzu-sandbox``, also as ``python -m namzu_sandbox.cli``."""

from __future__ import annotations

import importlib.util
import sys

_MISSING = "namzu-sandbox: the Python libraries typer and rich are not installed. Install namzu-sandbox[cli].\n"


def main() -> None:
    """Run the command of the arguments and exit with its status."""
    if importlib.util.find_spec("typer") is None or importlib.util.find_spec("rich") is None:
        sys.stderr.write(_MISSING)
        sys.exit(1)
    from .commands import app

    app()


if __name__ == "__main__":
    main()
