# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties are checked without a time limit of their own: a machine that is busy makes no property false."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("without-time-limit", deadline=None)
settings.load_profile("without-time-limit")
