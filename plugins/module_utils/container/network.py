# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine reports about a container's networks, against what the sandbox is asked to reach."""

from __future__ import annotations

import collections.abc as c

from ..boundary.reach.requests import ALLOW_ALL, NO_NETWORK
from ..engine.client import Json
from ..text import clean_text
from .errors import ContainerBoundaryError
from .request import ContainerRequest, NetworkProven

#: Modes of Docker that are not networks of the engine: they share the network of the machine or of another container.
_SHARED = ("host", "container:", "ns:", "slirp4netns", "pasta")
_ISOLATING_DRIVERS = frozenset(("bridge",))
_ICC = "com.docker.network.bridge.enable_icc"


def check_planned(request: ContainerRequest, network: Json | None) -> None:
    """Refuse, before anything is created, a boundary that the engine's networks cannot be shown to have.

    Args:
        network: the network that the request names, as the engine reports it; None for none.

    Raises:
        ContainerBoundaryError: the boundary cannot be shown to hold.
    """
    kind = request.egress.kind
    if request.network is None:
        if kind != NO_NETWORK:
            raise _refused(
                request,
                f"egress is {kind}, and without a network nothing can be reached",
                "Leave out egress, or name a network.",
            )
        return
    if kind == NO_NETWORK:
        raise _refused(
            request,
            f"network is {clean_text(request.network, 80)}, and no_network allows none",
            "Leave out network, or ask for egress: allow_all.",
        )
    if request.network.startswith(_SHARED) or request.network in ("none", "default"):
        raise _refused(
            request,
            f"network {clean_text(request.network, 80)} is not a network of the engine's own",
            "Create a network (docker network create) and name that, or leave out network for none.",
        )
    driver = clean_text(str((network or {}).get("Driver")), 40)
    if driver not in _ISOLATING_DRIVERS:
        raise _refused(
            request,
            f"network {request.network} has the driver {driver}, about which the engine reports no boundary",
            "Use a network of the driver bridge.",
        )
    if kind == ALLOW_ALL:
        return
    raise _refused(request, f"network {request.network} opens more than {kind}: {'; '.join(_open(network or {}))}", (
        "Ask for egress: allow_all, or leave out network. On Kubernetes a network policy can enforce this boundary."
    ))  # fmt: skip


def prove_network(request: ContainerRequest, inspected: Json, network: Json | None) -> NetworkProven:
    """What the engine reports about the running container's networks.

    Raises:
        ContainerBoundaryError: it is attached to another network than asked for, or publishes a port.
    """
    host, settings = inspected.get("HostConfig") or {}, inspected.get("NetworkSettings") or {}
    attached = {str(name): item for name, item in (settings.get("Networks") or {}).items() if name != "none"}
    findings = []
    wanted = request.network or "none"
    if host.get("NetworkMode") not in ({wanted, "bridge"} if wanted == "podman" else {wanted}):
        findings.append(f"its network mode is {clean_text(host.get('NetworkMode'), 80)}, not {wanted}")
    if set(attached) - {wanted}:
        findings.append(f"it is attached to {clean_text(', '.join(sorted(attached)), 200)}")
    addresses = [str(settings.get(key)) for key in ("IPAddress", "GlobalIPv6Address") if settings.get(key)]
    if request.network is None and addresses:
        findings.append(f"it has the address {clean_text(', '.join(addresses), 80)}")
    published = [port for port, bound in (settings.get("Ports") or {}).items() if bound]
    if host.get("PublishAllPorts") or host.get("PortBindings") or published:
        findings.append("it publishes ports on the engine's machine")
    if findings:
        raise _refused(request, "; ".join(findings), "Look at the engine's configuration and its plugins.", findings)
    return NetworkProven(request.egress.kind, tuple(sorted(attached)), tuple(_open(network)) if network else ())


def _open(network: Json) -> list[str]:
    """What a bridge network opens, as the engine reports it."""
    options: c.Mapping[str, object] = network.get("Options") or {}
    others = len(network.get("Containers") or {})
    found = ["the engine's machine is reachable at the bridge's address"]
    if not network.get("Internal"):
        found.append("it is not internal, so every address that the machine reaches is reachable")
    if str(options.get(_ICC, "true")) != "false":
        found.append(f"its containers reach each other (there are {others} others)")
    found.append("the engine's DNS server answers for it")
    return found


def _refused(
    request: ContainerRequest, why: str, next_step: str, findings: c.Sequence[str] = ()
) -> ContainerBoundaryError:
    return ContainerBoundaryError(
        f"The egress of the sandbox cannot be shown to stay within {request.egress.kind}: {why}.",
        findings=findings or [why],
        next_step=next_step,
    )
