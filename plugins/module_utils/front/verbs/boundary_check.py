# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``boundary_check``: what pods may reach and who may reach them, against what was asked for; it changes nothing."""

from __future__ import annotations

import dataclasses
import typing as t

from ...boundary.engines.model import DIRECTIONS
from ...boundary.reach.groups import Group, grouped
from ...boundary.reach.matrix import matrix
from ...boundary.reach.reach import Reach
from ...boundary.reach.verdict import Verdict
from ...boundary.sets.addresses import show_address
from ...boundary.sets.selectors import parse_selector
from ...boundary.world.manifests import read_manifests
from ...boundary.world.objects import Pod, World
from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import POD
from ...deadline import Deadline
from ...errors import InputError
from ...guest.agent import Agent
from ...lifecycle.check.check import Asked, Checked, Live, Offline, Subject, check, matching, own_address
from ...lifecycle.check.isolation import check_sandbox, check_template
from ...lifecycle.check.template_boundary import boundary_policies
from ...lifecycle.durations import seconds
from ...lifecycle.errors import BoundaryError
from ...lifecycle.observed.agent_address import AddressMode, locate
from ...lifecycle.verification.network_probe import places_near, probe_network
from ...lifecycle.verification.spec import EgressBoundary, IngressBoundary
from ..options.labels import labels_of
from ..options.specs import BOUNDARY_CHECK, Params
from ..verb import Context, Result, Verb, connect, namespace_of

#: Seconds for all lists, retries included.
READ_SECONDS = 60.0

_SUBJECTS = ("name", "pod", "warm_pool", "template", "labels", "label_selector")

Source = t.Union[Live, Offline]


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    asked = _asked(params)
    if params["network_probe"] and not (params.get("name") and asked.egress):
        raise InputError(
            "network_probe tries from inside a sandbox what egress opens and closes.",
            next_step="Give name and egress.",
        )
    demands_isolation = params["isolation"] != "any"
    if demands_isolation and (
        params.get("manifests") is not None
        or not any(params.get(option) for option in ("name", "template", "warm_pool"))
    ):
        raise InputError(
            "isolation is checked for a sandbox that runs, a template or a warm pool.",
            next_step="Give name, template or warm_pool, without manifests.",
        )
    if params.get("manifests") is not None:
        return _result(params, asked, *_offline(params, asked))
    with connect(params, context) as client:
        namespace = namespace_of(params, client)
        deadline = Deadline(READ_SECONDS, client.clock)
        live = Live(
            client,
            namespace,
            deadline,
            engine=asked.engine,
            required=params.get("required_sources") or (),
            peers_in=params.get("peer_namespaces") or (),
        )
        subjects = _subjects(params, asked, live, namespace, live.sandbox)
        host = own_address(_target(subjects, client))
        asked = dataclasses.replace(asked, host=host)
        probe = _probe(params, asked, client, namespace) if params["network_probe"] else None
        isolation = _isolation(params, client, namespace, asked.agent_port) if demands_isolation else None
        return _result(params, asked, live.world, subjects, {"network_probe": probe, "isolation": isolation})


def _asked(params: Params) -> Asked:
    agent = params.get("agent") or {}
    port = int(agent.get("port", 1024))
    if not 1 <= port <= 65535:
        raise InputError(f"agent.port is {port}; it must be between 1 and 65535.")
    egress = EgressBoundary.of(params["egress"]) if params.get("egress") else None
    return Asked(
        egress, IngressBoundary.of(params.get("ingress")), port, template_boundary=bool(params["template_boundary"])
    )


def _offline(params: Params, asked: Asked) -> tuple[World, list[Subject], dict[str, None]]:
    if params.get("name"):
        raise InputError("Manifests hold no sandboxes.", next_step="Give pod, template, warm_pool or labels.")
    namespace = params.get("namespace") or "default"
    source = Offline(read_manifests(params["manifests"], namespace), namespace)
    subjects = _subjects(params, asked, source, namespace, source.pod)
    return source.world, subjects, {}


def _subjects(
    params: Params, asked: Asked, source: Source, namespace: str, sandbox: t.Callable[[str], Subject]
) -> list[Subject]:
    """What is to be checked; exactly one of the options names it."""
    added = {**labels_of("pod_labels", params), **(asked.egress.pod_labels if asked.egress else {})}
    if params.get("label_selector") is not None:
        pods = matching(source.world, namespace, parse_selector(params["label_selector"]))
        return [
            subject
            for group in grouped(source.world, pods, asked.engine)
            if group.reach is not None
            for subject in _of_group(group, group.reach, asked)
        ]
    if params.get("labels") is not None:
        labels = labels_of("labels", params)
        return [Subject("a pod with these labels", Pod(namespace, "", {**labels, **added}))]
    if params.get("pod") is not None:
        return [source.pod(params["pod"])]
    if params.get("warm_pool") is not None:
        return [source.pooled(params["warm_pool"], added)]
    if params.get("template") is not None:
        return [source.direct(params["template"], added)]
    return [sandbox(params["name"])]


def _of_group(group: Group, reach: Reach, asked: Asked) -> list[Subject]:
    """The pods of a group that are judged together: all of them, or those with one boundary each."""
    parts: dict[object, list[Pod]] = {}
    for pod in group.pods:
        key = [boundary_policies(reach, pod, way) for way in DIRECTIONS] if asked.template_boundary else []
        parts.setdefault(tuple(key), []).append(pod)
    return [Subject(group.name, pods[0], pods=tuple(pod.name for pod in pods)) for pods in parts.values()]


def _target(subjects: list[Subject], client: Client) -> str:
    """What this machine would send to: a pod's address, else the API server."""
    for subject in subjects:
        for address in subject.pod.addresses:
            return show_address(address)
    return client.access.server


def _probe(params: Params, asked: Asked, client: Client, namespace: str) -> dict[str, t.Any]:
    """What was tried from inside, and what kept it from holding."""
    agent = params.get("agent") or {}
    deadline = Deadline(seconds("probe_timeout", params["probe_timeout"]), client.clock)
    mode: AddressMode = agent.get("address", "service")
    found = locate(client, namespace, params["name"], port=asked.agent_port, mode=mode, deadline=deadline)
    egress = t.cast("EgressBoundary", asked.egress)
    pod = POD.ref(namespace, found.pod)
    places = places_near(client, read(client, pod, deadline), asked.agent_port, deadline)
    try:
        probe = probe_network(Agent(found.agent), egress.request, deadline, str(pod), places)
    except BoundaryError as error:
        return {"attempts": [], **(error.probe or {}), "holds": False, "problem": str(error)}
    return {**probe.as_dict(), "problem": None}


def _isolation(params: Params, client: Client, namespace: str, port: int) -> dict[str, t.Any]:
    """How the sandbox, or what a template will have, is isolated, and what keeps it from holding."""
    deadline = Deadline(seconds("probe_timeout", params["probe_timeout"]), client.clock)
    demanded = params["isolation"]
    if params.get("name") is not None:
        mode: AddressMode = (params.get("agent") or {}).get("address", "service")
        return check_sandbox(client, namespace, params["name"], demanded, deadline, port, mode)
    pooled = params.get("warm_pool") is not None
    name = params["warm_pool"] if pooled else params["template"]
    return check_template(client, namespace, name, demanded, deadline, pooled=pooled)


def _result(
    params: Params,
    asked: Asked,
    world: World,
    subjects: list[Subject],
    more: t.Mapping[str, dict[str, t.Any] | None],
) -> Result:
    checks = [check(world, subject, asked) for subject in subjects]
    shown = [_shown(one, asked, params) for one in checks]
    problems = [line for one in checks for line in one.problems]
    for key, found in more.items():
        if found is not None:
            shown[0] = {**shown[0], key: found, "holds": shown[0]["holds"] and found["holds"]}
            problems += [found["problem"]] if found["problem"] else []
    result: Result = {
        "changed": False,
        "holds": all(one["holds"] for one in shown),
        "checks": shown,
        "unread": list(world.unread),
        "text": "\n\n".join(_text(one) for one in shown),
    }
    if params["matrix"]:
        pods = [pod for subject in subjects for pod in world.pods.values() if _stands_for(subject, pod)]
        result["matrix"] = matrix(world, pods, asked.engine).as_dict()
    if result["holds"] or not params["fail"]:
        return result
    rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    words = (
        f"The boundary of {next(one['name'] for one in shown if not one['holds'])} does not hold: {problems[0]}{rest}."
    )
    isolation = more.get("isolation") or {}
    reason = "isolation" if problems == [isolation.get("problem")] else "boundary"
    return {**result, "failed": True, "msg": words, "reason": reason, "retryable": False}


def _stands_for(subject: Subject, pod: Pod) -> bool:
    return pod.namespace == subject.pod.namespace and pod.name in subject.pods


def _shown(checked: Checked, asked: Asked, params: Params) -> dict[str, t.Any]:
    subject = checked.subject
    return {
        "name": subject.name,
        "namespace": subject.pod.namespace,
        "pods": list(subject.pods),
        "labels": dict(subject.pod.labels),
        "holds": checked.holds,
        "egress": _verdict(checked.egress),
        "policy": None
        if checked.named is None
        else {"name": checked.named.policy, "holds": checked.named.holds, "problem": checked.named.problem},
        "ingress": _verdict(checked.ingress),
        "agent_port": asked.agent_port,
        "reached_by": [finding.as_dict() for finding in checked.reached_by],
        "controller": {
            "address": asked.host,
            "allowed": checked.host_allowed,
            "text": _controller(checked, asked, params),
        },
    }


def _controller(checked: Checked, asked: Asked, params: Params) -> str:
    """Whether the machine that this runs on reaches the agent, in words."""
    if (params.get("agent") or {}).get("address") == "port_forward":
        return "Through a port-forward the agent is reached from its own node, which policies never close."
    if checked.host_allowed is None:
        return "The address of this host is not known."
    if checked.host_allowed:
        return f"This host ({asked.host}) may reach port {asked.agent_port}."
    return (
        f"This host ({asked.host}) may not reach port {asked.agent_port}, unless it is the pod's own node: "
        "let it in (boundary_ingress_from), or use agent.address: port_forward."
    )


def _verdict(verdict: Verdict | None) -> dict[str, t.Any] | None:
    return None if verdict is None else {**_plain(verdict.as_dict()), "text": str(verdict)}


def _plain(value: t.Any) -> t.Any:
    """Tuples as lists, as they are after a result has travelled."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _text(shown: dict[str, t.Any]) -> str:
    lines = [f"{shown['name']}: {'holds' if shown['holds'] else 'does not hold'}"]
    if shown["policy"] is not None and shown["policy"]["problem"]:
        lines.append(f"{shown['policy']['name']}: {shown['policy']['problem']}")
    lines += [shown[way]["text"] for way in ("egress", "ingress") if shown[way] is not None]
    reached = [f"- {one['policy'] or 'no policy closes it'}: {one['peers']}" for one in shown["reached_by"]]
    lines.append(f"Port {shown['agent_port']} is reached by {'its own node and:' if reached else 'its own node alone'}")
    lines += [*reached, shown["controller"]["text"]]
    lines += [shown[key]["problem"] for key in ("network_probe", "isolation") if shown.get(key, {}).get("problem")]
    return "\n".join(lines)


VERB = Verb(
    name="boundary_check",
    options=BOUNDARY_CHECK,
    run=run,
    constraints={
        "required_one_of": [_SUBJECTS],
        "mutually_exclusive": [
            _SUBJECTS,
            ("manifests", "network_probe"),
            ("manifests", "required_sources"),
            ("template_boundary", "egress"),
        ],
        "required_if": [("matrix", True, ("label_selector",))],
    },
)
