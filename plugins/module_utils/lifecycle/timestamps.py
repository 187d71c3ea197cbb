# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Times as the Kubernetes API writes them."""

from __future__ import annotations

import datetime


def timestamp(moment: datetime.datetime) -> str:
    """A time as the API writes it: RFC 3339, UTC, whole seconds (rounded up, so that no lease is shortened)."""
    whole = moment.astimezone(datetime.UTC).replace(microsecond=0)
    if moment.microsecond:
        whole += datetime.timedelta(seconds=1)
    return whole.strftime("%Y-%m-%dT%H:%M:%SZ")
