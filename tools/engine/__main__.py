# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command: python -m tools.engine up|down|status|env."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from tools.cluster.failures import ClusterError
from tools.cluster.progress import Progress

from .existing import ExistingEngine
from .private import Instance, PrivateEngine

VERBS = {
    "up": "start a Docker engine of its own and load the test image; or use the engine of DOCKER_HOST",
    "down": "remove the engine and everything that it made",
    "status": "exit code 0 running, 3 not",
    "env": "shell lines for DOCKER_HOST and NAMZU_TEST_IMAGE",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.engine", description="A Docker engine for demo and tests.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(VERBS))
    for verb, meaning in VERBS.items():
        verbs.add_parser(verb, help=meaning)
    verb = parser.parse_args(arguments).verb
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    progress = Progress()
    try:
        getattr(choose(progress), verb)()
    except ClusterError as error:
        progress.end()
        print(f"tools.engine {verb}: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        progress.end()
        print(f"tools.engine {verb}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        print(f"tools.engine {verb}: interrupted", file=sys.stderr)
        return 130
    return 0


def choose(progress: Progress) -> PrivateEngine | ExistingEngine:
    """The engine of DOCKER_HOST when that names one which was not started here, otherwise a private one."""
    host = os.environ.get("DOCKER_HOST", "")
    instance = Instance.named_by(os.environ)
    if host and host not in {Instance(number).docker_host for number in Instance.NUMBERS}:
        return ExistingEngine(host, progress)
    return PrivateEngine(instance, progress)


if __name__ == "__main__":
    sys.exit(main())
