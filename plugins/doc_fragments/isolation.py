# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the option that demands an isolation from the machine."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``isolation`` fragment."""

    DOCUMENTATION = r"""
options:
  isolation:
    description:
      - The least isolation from the kernel of the machine. V(gvisor) accepts gVisor and virtual machines, V(vm) virtual
        machines alone, and V(any) every runtime.
      - A stronger isolation than that of containers counts only where the kernel inside and the backend agree. On
        Kubernetes the backend is the handler of the pod's RuntimeClass (C(gvisor) or C(runsc), also with a suffix, and
        C(kata)), so the caller must be allowed to get C(runtimeclasses); role P(namzu.sandbox.claimant#role) grants
        that with C(claimant_runtime_classes). On the container backend it is the program of the engine's runtime.
      - What is weaker is refused with the reason V(isolation), before anything is created where the template or
        the runtime shows that.
      - Whatever is demanded, a pod that shares the network, processes or IPC of its node is refused, and a
        RuntimeClass of a template that does not exist is refused before anything is created.
    type: str
    choices: [any, gvisor, vm]
    default: any
"""
