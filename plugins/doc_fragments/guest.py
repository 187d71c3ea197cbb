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
      - Exactly one of O(name), O(workspace_id) and O(sandbox) is given.
    type: str
  workspace_id:
    description:
      - Id of the workspace, which runs. It is not woken.
    type: str
  uid:
    description:
      - The uid of that sandbox or workspace, as the task that acquired it returned it. When another one has the name
        now, the task fails with reason C(replaced) and does nothing. Without it whichever has the name is used.
    type: str
  sandbox:
    description:
      - The sandbox as the task that acquired it returned it, for example C({{ acquired.sandbox }}), or a workspace as
        C({{ opened.workspace }}). It is used instead of O(name) or O(workspace_id), O(namespace) and O(uid).
    type: dict
"""
