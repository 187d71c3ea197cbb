# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The requests about containers and networks, one function each (Docker Engine API 1.41)."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import tarfile
import typing as t
import urllib.parse

from ..deadline import Deadline
from ..errors import GoneError
from .client import EngineClient, Json, Response, no_engine


def _path(container: str, rest: str = "") -> str:
    return f"/containers/{urllib.parse.quote(container, safe='')}{rest}"


def _subject(container: str) -> str:
    return f"Container {container}"


def read_info(client: EngineClient, deadline: Deadline) -> Json:
    """What the engine reports about itself: runtimes, security options, which limits it can enforce."""
    return _object(client.request("GET", "/info", deadline, subject=client.name), client.name)


def create(client: EngineClient, name: str, spec: Json, deadline: Deadline) -> str:
    """Create a container, which is not started; its id. ConflictError when the name is taken."""
    subject = _subject(name)
    response = client.request("POST", "/containers/create", deadline, subject=subject, query={"name": name}, body=spec)
    return _id(response, subject)


def start(client: EngineClient, container: str, deadline: Deadline) -> None:
    """Start a created container."""
    client.request("POST", _path(container, "/start"), deadline, subject=_subject(container))


def inspect(client: EngineClient, container: str, deadline: Deadline) -> Json:
    """Everything that the engine reports about a container; GoneError when there is none."""
    subject = _subject(container)
    return _object(client.request("GET", _path(container, "/json"), deadline, subject=subject), subject)


def list_labelled(client: EngineClient, labels: t.Sequence[str], deadline: Deadline) -> list[Json]:
    """The containers that have all of these labels (``name`` or ``name=value``), running or not."""
    subject = f"Containers of {client.name}"
    query = {"all": True, "filters": {"label": list(labels)}}
    response = client.request("GET", "/containers/json", deadline, subject=subject, query=query)
    found = _parsed(response, subject)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise no_engine(f"GET {subject}", "the answer is not a list of objects")
    return found


def remove(client: EngineClient, container: str, deadline: Deadline) -> bool:
    """End and remove a container with its anonymous volumes; False when there is none."""
    try:
        client.request(
            "DELETE", _path(container), deadline, subject=_subject(container), query={"force": True, "v": True}
        )
    except GoneError:
        return False
    return True


def prune_volumes(client: EngineClient, label: str, deadline: Deadline) -> None:
    """Remove the anonymous volumes with this label that no container uses."""
    query = {"filters": {"label": [label]}}
    client.request("POST", "/volumes/prune", deadline, subject=f"Volumes of {client.name}", query=query)


def put_archive(client: EngineClient, container: str, path: str, archive: bytes, deadline: Deadline) -> None:
    """Unpack a tar archive below a path of the container; with a read-only root, below a volume."""
    client.request(
        "PUT", _path(container, "/archive"), deadline, subject=_subject(container), query={"path": path},
        content=archive,
    )  # fmt: skip


def stat(client: EngineClient, container: str, path: str, deadline: Deadline) -> Json:
    """A file of the container: ``size``, ``mode`` and ``mtime`` (RFC 3339). GoneError when there is none."""
    subject = _subject(container)
    response = client.request("HEAD", _path(container, "/archive"), deadline, subject=subject, query={"path": path})
    with contextlib.suppress(ValueError):
        found = json.loads(base64.b64decode(response.headers.get("x-docker-container-path-stat", "")))
        if isinstance(found, dict):
            return found
    raise no_engine(f"HEAD {subject}", "the answer does not describe a file")


def read_file(client: EngineClient, container: str, path: str, deadline: Deadline) -> bytes:
    """The content of a file of the container; GoneError when there is none."""
    subject = _subject(container)
    query = {"path": path}
    response = client.request("GET", _path(container, "/archive"), deadline, subject=subject, query=query)
    with contextlib.suppress(tarfile.TarError, OSError), tarfile.open(fileobj=io.BytesIO(response.body)) as tar:
        entry = tar.next()
        file = tar.extractfile(entry) if entry is not None else None
        if file is not None:
            return file.read()
    raise no_engine(f"GET {subject}", "the answer is not an archive of a file")


def create_exec(
    client: EngineClient,
    container: str,
    argv: t.Sequence[str],
    user: str,
    deadline: Deadline,
    *,
    env: t.Mapping[str, str] | None = None,
    attach: bool = False,
) -> str:
    """Prepare a command in a running container; the id that it is started by.

    Args:
        user: ``uid:gid``.
        env: variables beside the container's own.
        attach: whether its standard input, output and error are carried.
    """
    subject = _subject(container)
    body = {
        "User": user,
        "Cmd": list(argv),
        "Env": [f"{name}={value}" for name, value in (env or {}).items()],
        "WorkingDir": "/",
        **{f"Attach{stream}": attach for stream in ("Stdin", "Stdout", "Stderr")},
    }
    return _id(client.request("POST", _path(container, "/exec"), deadline, subject=subject, body=body), subject)


def start_exec(client: EngineClient, command: str, container: str, deadline: Deadline) -> None:
    """Start a prepared command, and do not wait for it."""
    body = {"Detach": True, "Tty": False}
    client.request("POST", f"/exec/{command}/start", deadline, subject=_subject(container), body=body)


def inspect_exec(client: EngineClient, command: str, container: str, deadline: Deadline) -> Json:
    """Whether a command runs (``Running``), and how it ended (``ExitCode``)."""
    subject = _subject(container)
    return _object(client.request("GET", f"/exec/{command}/json", deadline, subject=subject), subject)


def read_log(client: EngineClient, container: str, deadline: Deadline) -> str:
    """The last lines that the container's own process wrote."""
    query = {"stdout": True, "stderr": True, "tail": "20"}
    path = _path(container, "/logs")
    data = client.request("GET", path, deadline, subject=_subject(container), query=query).body
    pieces = []
    # Without a terminal each piece has a header of eight bytes, whose last four are its length.
    while len(data) >= 8:
        length = int.from_bytes(data[4:8], "big")
        pieces.append(data[8 : 8 + length])
        data = data[8 + length :]
    return b"".join(pieces).decode("utf-8", "replace")


def inspect_network(client: EngineClient, network: str, deadline: Deadline) -> Json:
    """Everything that the engine reports about a network; GoneError when there is none."""
    subject = f"Network {network}"
    path = f"/networks/{urllib.parse.quote(network, safe='')}"
    return _object(client.request("GET", path, deadline, subject=subject), subject)


def _parsed(response: Response, subject: str) -> t.Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        raise no_engine(subject, "the answer is not JSON") from None


def _object(response: Response, subject: str) -> Json:
    found = _parsed(response, subject)
    if not isinstance(found, dict):
        raise no_engine(subject, "the answer is not an object")
    return found


def _id(response: Response, subject: str) -> str:
    found = _object(response, subject).get("Id")
    if not isinstance(found, str) or not found.isalnum():
        raise no_engine(subject, "the answer has no id")
    return found
