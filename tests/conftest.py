# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# An unattended run tries the same examples each time, so that it fails because of a change and not of a draw; whoever
# runs the tests by hand draws new ones.
settings.register_profile("unattended", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")
