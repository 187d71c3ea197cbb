# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fake API server without sockets, for tests of very many requests that are about none of them going wrong."""

from __future__ import annotations

import email.utils
import io
import json
import typing as t
import urllib.parse

import urllib3

from .plan import Request
from .server import _PATH, FakeServer, _Handler, _verb


class _Acting(_Handler):
    """What the server does with a request, without the connection on which one comes."""

    def __init__(self, fake: FakeServer) -> None:
        self.server = fake._http


class Wireless:
    """Stands in for the pool of connections of a client; watches are not for it.

    Args:
        fake: the server.
    """

    def __init__(self, fake: FakeServer) -> None:
        self._fake = fake
        self._acting = _Acting(fake)

    def request(
        self, method: str, url: str, *, body: bytes | None = None, **_options: t.Any
    ) -> urllib3.BaseHTTPResponse:
        """The answer of the server."""
        parts = urllib.parse.urlsplit(url)
        query = dict(urllib.parse.parse_qsl(parts.query))
        match = _PATH.fullmatch(parts.path)
        request = Request(_verb(method, match, query), match["plural"] if match else parts.path)
        assert self._fake.plan.met_by(request) is None, "faults need a wire"
        status, answer = self._acting._act(request, match, query, json.loads(body) if body else {})
        headers = {"Date": email.utils.format_datetime(self._fake.now(), usegmt=True)}
        return urllib3.HTTPResponse(
            io.BytesIO(json.dumps(answer).encode()), headers, status, preload_content=False, request_method=method
        )

    def clear(self) -> None:
        """There is nothing to close."""
