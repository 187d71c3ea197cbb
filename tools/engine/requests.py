# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few requests to an engine that starting one needs."""

from __future__ import annotations

import http.client
import socket
import urllib.parse
from pathlib import Path

from tools.cluster.build import images
from tools.cluster.failures import ClusterError
from tools.cluster.progress import Progress

IMAGE = images.PYTHON_IMAGE


def is_ready(docker_host: str) -> bool:
    """Whether an engine answers there."""
    try:
        return _request(docker_host, "GET", "/_ping", timeout=5)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def load_image(docker_host: str, cache: Path, progress: Progress) -> None:
    """Load the image with Python into the engine, made from Debian packages where the cache does not have it."""
    if _request(docker_host, "GET", f"/images/{IMAGE}/json")[0] == 200:
        return
    archive = images.make(cache, progress) / "python.tar"
    status, answer = _request(docker_host, "POST", "/images/load", archive.read_bytes())
    if status != 200:
        raise ClusterError(f"{docker_host}: the image could not be loaded ({status}): {answer[:300].decode()}")


def _request(
    docker_host: str, method: str, path: str, content: bytes | None = None, timeout: float = 120
) -> tuple[int, bytes]:
    split = urllib.parse.urlsplit(docker_host)
    connection = http.client.HTTPConnection(split.hostname or "engine", split.port or 2375, timeout=timeout)
    try:
        if split.scheme == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(timeout)
            connection.sock.connect(split.path)
        connection.request(method, path, content, {"Content-Type": "application/x-tar"} if content else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
