# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The rules that whoever uses the core needs, in the words of RBAC. Role ``claimant`` grants these and no others."""

from __future__ import annotations

import dataclasses

from .resources import CLAIM, POD, SANDBOX, TEMPLATE, WARM_POOL, Kind


@dataclasses.dataclass(frozen=True)
class Rule:
    """What may be done with one kind, all in one namespace.

    Attributes:
        kind: the kind.
        verbs: the API's verbs, in order.
        why: which of our requests need them.
    """

    kind: Kind
    verbs: tuple[str, ...]
    why: str


#: For sandboxes out of a pool. No exec, no secrets, and no right to write pods, Sandboxes or policies: who can write
#: those is not bound by a template.
CLAIMANT = (
    Rule(
        CLAIM,
        ("create", "delete", "get", "list", "watch"),
        "acquire, release and inventory; get when a watch is cut or an answer was lost, list for many at once",
    ),
    Rule(SANDBOX, ("get", "list"), "the service name, what is left to wait for at a release, inventory"),
    Rule(WARM_POOL, ("get",), "capacity"),
    Rule(POD, ("get", "list"), "address and uid, which is the agent's bind token; inventory"),
)

#: In addition, for sandboxes that are made from a template. Whoever may create a Sandbox writes its pod template, so
#: grant it only where an admission policy refuses privileged ones.
DIRECT = (
    Rule(SANDBOX, ("create", "delete", "watch"), "acquire and release"),
    Rule(TEMPLATE, ("get",), "the pod template that is copied into the Sandbox"),
)

#: In addition, for ``agent.address: port_forward``: group, resource and verbs of a subresource.
PORT_FORWARD = ("", "pods/portforward", ("create", "get"))
