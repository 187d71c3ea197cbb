# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that describe a sandbox of the container backend."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``container`` fragment."""

    DOCUMENTATION = r"""
options:
  image:
    description:
      - >-
        With O(backend=container): the image of the sandbox, such as V(docker.io/library/python:3.13-slim); with a
        digest it names one image for ever. It is pulled when the engine does not have it. It needs C(python3) 3.8 or
        newer in its PATH.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Set template_image of role namzu.sandbox.template.
    type: str
  runtime:
    description:
      - >-
        With O(backend=container): a runtime of the engine, such as V(runc), or V(runsc) for gVisor; the engine's
        default when not given.
      - Refused on Kubernetes. Kubernetes names a runtime by a RuntimeClass.
      - Set runtime_class, or template_runtime_class of role namzu.sandbox.template.
    type: str
  user:
    description:
      - >-
        With O(backend=container): C(uid:gid) of all commands, as numbers above 0; V(1000:1000) when not given.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Set template_run_as_user of role namzu.sandbox.template.
    type: str
  cpus:
    description:
      - >-
        With O(backend=container): the most processors, above 0; no limit when not given.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Set limits.cpu in template_resources of role namzu.sandbox.template.
    type: float
  memory:
    description:
      - >-
        With O(backend=container): the most memory, without swap, as V(512m) or V(2g), at least V(6m); no limit when
        not given.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Set limits.memory in template_resources of role namzu.sandbox.template.
    type: str
  pids:
    description:
      - >-
        With O(backend=container): the most processes and threads, at least 16; no limit when not given.
      - Refused on Kubernetes. Kubernetes has no such limit for a pod; the kubelet sets one for all pods of a node.
      - Set podPidsLimit in the configuration of the kubelet.
    type: int
  read_only_rootfs:
    description:
      - >-
        With O(backend=container): whether the image cannot be written to; V(true) when not given. C(/tmp),
        C(/var/tmp) and the workspace are writable.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Role namzu.sandbox.template makes the root file system read-only.
    type: bool
  writable_paths:
    description:
      - >-
        With O(backend=container): more absolute paths that are writable, each empty at first.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Role namzu.sandbox.template makes /tmp and the workspace writable.
    type: list
    elements: str
  env:
    description:
      - >-
        With O(backend=container): variables of all commands.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - For all commands set template_env of role namzu.sandbox.template; environment of sandbox_exec is for one.
    type: dict
  network:
    description:
      - >-
        With O(backend=container): a network of the engine; none at all when not given. The request in O(egress) is
        compared with what the engine reports about the network, and refused when it opens more.
      - Refused on Kubernetes. A pod has the network of its cluster, and policies decide what it reaches.
      - Set egress, and apply the policy with role namzu.sandbox.boundary.
    type: str
  outputs:
    description:
      - >-
        With O(backend=container): a folder of the engine's machine that is writable in the sandbox as C(/outputs).
      - Refused on Kubernetes. A pod runs on a node that has no folder of this machine.
      - Fetch files with ansible.builtin.fetch over connection namzu.sandbox.sandbox.
    type: path
  seccomp:
    description:
      - >-
        With O(backend=container): V(default) is the engine's profile of system calls, and an engine without one is
        refused. V(unconfined) is none, which the verdict shows.
      - Refused on Kubernetes. The pod template decides that, and a member of a warm pool runs already.
      - Role namzu.sandbox.template sets the profile RuntimeDefault.
    type: str
    choices: [default, unconfined]
"""
