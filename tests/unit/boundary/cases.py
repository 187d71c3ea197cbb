# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy cases of public suites, where they are at hand: a folder of cases as data, kept outside this project."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing as t

import yaml

#: Names a folder that holds ``cases/netpol``; else it is looked for as ``shared`` beside this project's parents.
SHARED = "NAMZU_SHARED"


@dataclasses.dataclass(frozen=True)
class Case:
    """One case: objects, and what the source says is allowed."""

    id: str
    semantics: str
    objects: list[dict[str, t.Any]]
    checks: list[dict[str, t.Any]]
    connections: list[dict[str, t.Any]]


def folder() -> pathlib.Path | None:
    """The folder ``cases/netpol``, or None when it is not at hand."""
    here = pathlib.Path(__file__).resolve()
    places = [pathlib.Path(os.environ[SHARED])] if SHARED in os.environ else [up / "shared" for up in here.parents]
    return next((place / "cases" / "netpol" for place in places if (place / "cases" / "netpol").is_dir()), None)


def load(family: str) -> list[Case]:
    """The cases of a family (``core``, ``admin``, ``cilium``); none when the folder is not at hand."""
    root = folder()
    return [] if root is None else [_read(path) for path in sorted((root / family).iterdir()) if path.is_dir()]


def _read(path: pathlib.Path) -> Case:
    expect = _yaml(path / "expect.yaml")[0]
    return Case(
        id=expect["id"],
        semantics=expect["semantics"],
        objects=[body for body in _yaml(path / "manifests.yaml") if body],
        checks=expect.get("checks") or [],
        connections=expect.get("connections") or [],
    )


def _yaml(path: pathlib.Path) -> list[t.Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=loader))
