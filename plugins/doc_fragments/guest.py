# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that name the sandbox or workspace in which something is done."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``guest`` fragment."""

    DOCUMENTATION = r"""
options:
  name:
    description:
      - Name of the sandbox, which is that of its claim, or of the Sandbox that was made directly.
      - Exactly one of O(name) and O(workspace_id) is given.
    type: str
  workspace_id:
    description:
      - Id of the workspace, which runs. It is not woken.
    type: str
"""
