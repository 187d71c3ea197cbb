# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""healthz, what this agent is and what it can do; privileges, what the kernel lets it do."""

from __future__ import annotations

import sys
import time

from fields import refuse_unknown
from wire import PROTOCOL, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

AGENT_VERSION = "1.0.0"
STATUS = "/proc/self/status"


def healthz(context: Context, peer: Peer, _body: dict[str, Any]) -> None:
    answer = {
        "protocol": PROTOCOL,
        "features": context.features,
        "agent": AGENT_VERSION,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "workspace": context.settings.workspace,
        "uptime": round(time.monotonic() - context.started, 3),
    }
    peer.send(encode_json(answer))


def privileges(_context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """The agent's own status. Whoever it starts has no more: masks and bounding set are inherited, as is NoNewPrivs."""
    refuse_unknown(body, frozenset(), "privileges")
    with open(STATUS, encoding="utf-8", errors="replace") as file:
        peer.send(encode_json({"status": {"text": file.read()}}))
