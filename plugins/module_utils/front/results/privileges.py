# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the privilege probe read, as a task returns it on every backend."""

from __future__ import annotations

import typing as t

from ...guest.privileges import Privileges

_MASKS = ("inheritable", "permitted", "effective", "bounding", "ambient")


def privileges_result(probed: Privileges) -> dict[str, t.Any]:
    """The privileges as plain data; capability masks in hexadecimal."""
    return {
        "none": probed.none,
        "capabilities": {mask: f"{getattr(probed, mask):016x}" for mask in _MASKS},
        "no_new_privs": probed.no_new_privs,
        "uid": probed.uid,
        "seccomp": probed.seccomp,
    }
