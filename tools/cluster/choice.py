# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice between the local cluster and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from .existing import ExistingCluster
from .failures import CannotRun
from .layout import INSTANCES, Layout
from .local import LocalCluster
from .progress import Progress

CHOICES = ("local", "existing")


class Cluster(Protocol):
    """The verbs that both kinds of cluster have."""

    def up(self, *, bare: bool = False, enforce: bool = True) -> None: ...
    def down(self) -> None: ...
    def status(self) -> None: ...
    def env(self) -> None: ...
    def runner_image(self) -> None: ...


def choose(environment: Mapping[str, str], progress: Progress) -> Cluster:
    """The cluster that the environment asks for."""
    if is_existing(environment):
        return ExistingCluster.named_by(environment)
    return LocalCluster.named_by(environment, progress)


def is_existing(environment: Mapping[str, str]) -> bool:
    """Whether the user's own cluster is used: NAMZU_CLUSTER decides, else a KUBECONFIG that no instance wrote."""
    wanted = environment.get("NAMZU_CLUSTER", "")
    if wanted and wanted not in CHOICES:
        raise CannotRun(f"NAMZU_CLUSTER={wanted!r} is not one of {', '.join(CHOICES)}.")
    if wanted:
        return wanted == "existing"
    kubeconfig = environment.get("KUBECONFIG", "")
    return bool(kubeconfig) and Path(kubeconfig) not in {Layout(instance).kubeconfig for instance in INSTANCES}
