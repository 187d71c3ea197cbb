# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command: python -m tools.cluster up|down|status|env|runner-image."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from .choice import choose
from .failures import ClusterError
from .progress import Progress

VERBS = {
    "up": "start the cluster, or report that it is up; recover from a crash",
    "down": "remove the cluster and everything it made",
    "status": "one line a component; exit code 0 healthy, 1 not, 3 down",
    "env": "shell lines for KUBECONFIG and PATH",
    "runner-image": "load an image with ansible-core and the collection into the cluster, and print its name",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description="A Kubernetes cluster for the tests.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(VERBS))
    parsers = {verb: verbs.add_parser(verb, help=meaning) for verb, meaning in VERBS.items()}
    kind = parsers["up"].add_mutually_exclusive_group()
    kind.add_argument("--bare", action="store_true", help="etcd and the API server alone, without any CRD")
    kind.add_argument(
        "--no-enforcement", dest="enforce", action="store_false", help="without enforcement of NetworkPolicy"
    )
    chosen = parser.parse_args(arguments)
    verb = chosen.verb
    options = {"bare": chosen.bare, "enforce": chosen.enforce} if verb == "up" else {}
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    progress = Progress()
    try:
        getattr(choose(os.environ, progress), verb.replace("-", "_"))(**options)
    except ClusterError as error:
        progress.end()
        print(f"tools.cluster {verb}: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        progress.end()
        print(f"tools.cluster {verb}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        print(f"tools.cluster {verb}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
