# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small client for the API server of a cluster."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .failures import ClusterError

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(ClusterError):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status


class Api:
    """An API server, and the headers and TLS settings of its requests; one connection a request."""

    def __init__(self, server: str, tls: ssl.SSLContext | None, headers: Mapping[str, str]) -> None:
        self._address = urllib.parse.urlsplit(server)
        self._tls = tls
        self._headers = dict(headers)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        timeout: float = 15,
    ) -> Any:
        """The decoded answer; ApiError when refused, OSError when the server cannot be reached in `timeout` s."""
        headers = {**self._headers, "Accept": "application/json"}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        connection = self._connection(timeout)
        try:
            connection.request(method, self._address.path.rstrip("/") + path, payload, headers)
            answer = connection.getresponse()
            content = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(method, path, answer.status, _message(content))
        if "json" in (answer.getheader("Content-Type") or ""):
            return json.loads(content)
        return content.decode("utf-8", errors="replace")

    def wait_for_change(self, path: str, version: str, seconds: int = 300) -> None:
        """Return when an object of a list changes after that resource version, or when `seconds` are over."""
        query = f"?watch=true&resourceVersion={version}&timeoutSeconds={seconds}"
        connection = self._connection(seconds + 15)
        try:
            connection.request("GET", self._address.path.rstrip("/") + path + query, None, self._headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise ApiError("GET", path, answer.status, _message(answer.read()))
            answer.readline()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def apply(self, path: str, manifest: Mapping[str, Any]) -> Any:
        """Server-side apply one object."""
        query = "?fieldManager=namzu-cluster&force=true"
        return self.request("PATCH", path + query, manifest, content_type=APPLY)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port or 80, timeout=timeout)
        return http.client.HTTPSConnection(host, port or 443, timeout=timeout, context=self._tls)


def administrator_api(kubeconfig: Path) -> Api:
    """The API as the administrator of a kubeconfig that this program wrote (JSON, token in the first user)."""
    document = json.loads(kubeconfig.read_text(encoding="utf-8"))
    cluster = document["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")
    tls = ssl.create_default_context(cadata=authority)
    return Api(cluster["server"], tls, {"Authorization": f"Bearer {document['users'][0]['user']['token']}"})


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode("utf-8", errors="replace").strip()[:300]
