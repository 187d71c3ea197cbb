# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Policies that the API server stores and Cilium then refuses."""

from __future__ import annotations


class Refused(Exception):
    """A policy that Cilium does not import (``Rule.Sanitize`` of v1.20.2, or its status says so).

    It isolates nothing and denies nothing. What it allows cannot be known: an agent that had an older version of it
    keeps enforcing that one. So its allowance counts as open, and a verdict names the reason.
    """
