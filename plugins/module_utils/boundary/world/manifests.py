# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects out of files, for judging what is not applied yet."""

from __future__ import annotations

import collections.abc as c
import json
import pathlib
import typing as t

from ...cluster.resources import Body
from ...errors import InputError, MissingDependencyError

_ENDINGS = frozenset({".yaml", ".yml", ".json"})

#: Kinds without a namespace, among those that matter here.
_OF_THE_CLUSTER = frozenset(
    {
        "AdminNetworkPolicy",
        "BaselineAdminNetworkPolicy",
        "CiliumCIDRGroup",
        "CiliumClusterwideNetworkPolicy",
        "ClusterNetworkPolicy",
        "Namespace",
        "Node",
    }
)


def read_manifests(sources: c.Iterable[object], namespace: str) -> list[Body]:
    """The objects of some sources.

    Args:
        sources: paths of YAML or JSON files, paths of folders (every such file in and below them, by name), and objects
            as plain data.
        namespace: for objects that are made in a namespace and do not say in which, as ``kubectl apply`` takes them.

    Raises:
        InputError: a path leads nowhere, a file cannot be read, or something in it is not a Kubernetes object.
    """
    found: list[Body] = []
    for number, source in enumerate(sources):
        if isinstance(source, str):
            for file in _files(pathlib.Path(source).expanduser()):
                found.extend(_checked(body, str(file), namespace) for body in _documents(file))
        else:
            found.append(_checked(source, f"manifests[{number}]", namespace))
    return found


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    if not path.is_file():
        raise InputError(
            f"manifests: there is no file or folder {path}.", next_step="Check the path on the machine where this runs."
        )
    return [path]


def _documents(file: pathlib.Path) -> list[t.Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"manifests: {file} cannot be read: {error}.") from None
    if file.suffix == ".json":
        try:
            return [json.loads(text)]
        except ValueError as error:
            raise InputError(f"manifests: {file} is not valid JSON: {error}.") from None
    try:
        import yaml
    except ImportError:
        raise MissingDependencyError("PyYAML is needed to read manifests.", next_step="Install PyYAML here.") from None
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise InputError(f"manifests: {file} is not valid YAML: {error}.") from None


def _checked(body: object, where: str, namespace: str) -> Body:
    if not isinstance(body, dict) or not body.get("kind") or not body.get("apiVersion"):
        raise InputError(
            f"manifests: {where} has something that is not a Kubernetes object.",
            next_step="Each object has apiVersion and kind.",
        )
    metadata = body.get("metadata")
    if body["kind"] in _OF_THE_CLUSTER or str(body["kind"]).endswith("List") or not isinstance(metadata, dict):
        return body
    return body if metadata.get("namespace") else {**body, "metadata": {**metadata, "namespace": namespace}}
