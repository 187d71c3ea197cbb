# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that are refused with the reason; its source is ``front/options/refused.py``."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``refused`` fragment."""

    DOCUMENTATION = r"""
options:
  env:
    description:
      - Refused. The pod template decides that, and a member of a warm pool runs already.
      - For all commands set template_env of role namzu.sandbox.template; environment of sandbox_exec is for one.
    type: dict
  memory:
    description:
      - Refused. The pod template decides that, and a member of a warm pool runs already.
      - Set limits.memory in template_resources of role namzu.sandbox.template.
    type: str
  cpus:
    description:
      - Refused. The pod template decides that, and a member of a warm pool runs already.
      - Set limits.cpu in template_resources of role namzu.sandbox.template.
    type: str
  pids:
    description:
      - Refused. Kubernetes has no such limit for a pod; the kubelet sets one for all pods of a node.
      - Set podPidsLimit in the configuration of the kubelet.
    type: int
  image:
    description:
      - Refused. The pod template decides that, and a member of a warm pool runs already.
      - Set template_image of role namzu.sandbox.template.
    type: str
  user:
    description:
      - Refused. The pod template decides that, and a member of a warm pool runs already.
      - Set template_run_as_user of role namzu.sandbox.template.
    type: str
"""
