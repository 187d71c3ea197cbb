# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# An unattended run tries the same examples each time, so that it fails because of a change and not of a draw; whoever
# runs the tests by hand draws new ones.
settings.register_profile("unattended", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")

# A shell starts background jobs with SIGINT ignored, and programs that a test starts inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
