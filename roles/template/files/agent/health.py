# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The operation healthz: the version of this agent and its features."""

from __future__ import annotations

import sys
import time

from wire import PROTOCOL, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

AGENT_VERSION = "1.0.0"


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
