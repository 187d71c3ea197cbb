# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role ``boundary`` on a real cluster, and what ``boundary_check`` reads back of it."""

from __future__ import annotations

import typing as t

import pytest

POLICIES = "/apis/networking.k8s.io/v1/namespaces"
TEMPLATES = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces"
TEMPLATE = "sandbox.namzu.ai/template"

#: What a pod may reach, by the name of the template that has it.
REQUESTS: dict[str, t.Any] = {
    "no-network": "no_network",
    "dns-only": {"kind": "dns_only", "dns": {"addresses": ["169.254.20.10/32"]}},
    "public-internet": {"kind": "public_internet", "except_cidrs": ["203.0.113.0/24", "2001:db8::/32"]},
    "allow-all": {"kind": "allow_all"},
    "profiled": {"kind": "dns_only", "profile": {"value": "quiet"}},
}
#: Those that are applied once more, and removed.
AGAIN = ("public-internet", "profiled")
STANDS = (
    "{{ query('kubernetes.core.k8s', kind='NetworkPolicy', api_version='networking.k8s.io/v1', "
    "namespace=boundary_namespace) }}"
)
PLAYS = [
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "awx"}}},
    {"podSelector": {"matchLabels": {"app": "plays"}}},
    {"ipBlock": {"cidr": "10.1.0.0/16"}},
]


def role(template: str, **given: t.Any) -> dict[str, t.Any]:
    return {
        "name": f"boundary {template}",
        "ansible.builtin.include_role": {"name": "namzu.sandbox.boundary"},
        "vars": {"boundary_template": template, **given},
    }


def check(namespace: str, **options: t.Any) -> dict[str, t.Any]:
    return {"namzu.sandbox.boundary_check": {"namespace": namespace, **options}}


def as_request(asked: t.Any) -> dict[str, t.Any]:
    return {"kind": asked} if isinstance(asked, str) else asked


@pytest.fixture(scope="module")
def applied(play, kube, new_namespace) -> t.Any:
    """Every kind of request applied and checked, some once more and then removed; the results, and what is left."""
    namespace = new_namespace()
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    ours = {"boundary_namespace": namespace, "boundary_ingress_from": PLAYS}
    tasks: list[dict[str, t.Any]] = []
    tasks += [role(name, boundary_egress=asked) for name, asked in REQUESTS.items()]
    tasks += [role(name, boundary_egress=REQUESTS[name]) for name in AGAIN]
    for name, asked in REQUESTS.items():
        profile = as_request(asked).get("profile")
        labels = {TEMPLATE: name, **({"sandbox.users.io/egress-profile": "quiet"} if profile else {})}
        options = {"labels": labels, "egress": as_request(asked), "ingress": {"allow_from": PLAYS}}
        tasks.append({"name": f"check {name}", **check(namespace, **options)})
    tasks.append({"name": "stands", "ansible.builtin.debug": {"msg": STANDS}})
    tasks += [role(name, boundary_egress=REQUESTS[name], boundary_state="absent") for name in AGAIN]
    return play(tasks, variables=ours), kube.items(f"{POLICIES}/{namespace}/networkpolicies")


def test_each_request_is_applied_once_and_a_removal_takes_both_policies(applied) -> None:
    played, left = applied
    changed = [result["changed"] for task, result in played.tasks if " : Apply" in task]
    assert changed == [True] * len(REQUESTS) + [False] * len(AGAIN)
    assert [result["changed"] for task, result in played.tasks if " : Remove" in task] == [True] * len(AGAIN)
    kept = {one["metadata"]["name"] for one in left}
    assert kept == {f"namzu-{name}-{way}" for name in REQUESTS if name not in AGAIN for way in ("egress", "ingress")}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_the_role_applied_is_within_its_request_as_it_is_read_back(applied, name: str) -> None:
    result = applied[0][f"check {name}"]
    assert result["holds"]
    (found,) = result["checks"]
    policy = f"namzu-{name}-quiet-egress" if name == "profiled" else f"namzu-{name}-egress"
    assert found["policy"]["holds"]
    assert found["policy"]["name"].endswith(f"/{policy}")
    assert found["egress"]["policies"] == [found["policy"]["name"]]
    assert found["ingress"]["isolated_by"][0].endswith(f"/namzu-{name}-ingress")


def test_named_peers_are_let_in_at_the_agents_port_alone(applied) -> None:
    stand = {one["metadata"]["name"]: one["spec"] for one in applied[0]["stands"]["msg"]}
    assert stand["namzu-dns-only-ingress"]["ingress"] == [{"from": PLAYS, "ports": [{"port": 1024, "protocol": "TCP"}]}]


def test_peers_that_mean_everyone_and_requests_that_cannot_be_expressed_change_nothing(play, kube, namespace) -> None:
    refused = {
        "everyone": ({"boundary_ingress_from": [{"namespaceSelector": {}}]}, "lets in"),
        "themselves": ({"boundary_ingress_from": [{"podSelector": {}}]}, "the sandboxes themselves"),
        "names": ({"boundary_egress": {"kind": "hosts", "hosts": ["example.com"]}}, "engine core cannot"),
        "kind": ({"boundary_egress": "some_network"}, "kind is one of"),
    }
    tasks = [
        {
            "block": [role("python", **given)],
            "rescue": [{"name": name, "ansible.builtin.debug": {"msg": "{{ ansible_failed_result }}"}}],
        }
        for name, (given, _words) in refused.items()
    ]
    played = play(tasks, variables={"boundary_namespace": namespace})
    for name, (_given, words) in refused.items():
        assert words in str(played[name]["msg"]), name
    assert kube.items(f"{POLICIES}/{namespace}/networkpolicies") == []


def test_the_controllers_own_policy_is_as_it_is_expected_and_void_together_with_ours(play, kube, namespace) -> None:
    template = {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxTemplate",
        "metadata": {"name": "python", "namespace": namespace},
        "spec": {
            "podTemplate": {
                "metadata": {"labels": {TEMPLATE: "python"}},
                "spec": {"containers": [{"name": "agent", "image": "localhost/none"}]},
            }
        },
    }
    pool = {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxWarmPool",
        "metadata": {"name": "pool", "namespace": namespace},
        "spec": {"replicas": 0, "sandboxTemplateRef": {"name": "python"}},
    }
    kube.request("POST", f"{TEMPLATES}/{namespace}/sandboxtemplates", template)
    kube.request("POST", f"{TEMPLATES}/{namespace}/sandboxwarmpools", pool)
    asked = {"warm_pool": "pool", "egress": {"kind": "dns_only"}, "fail": False}
    live = kube.until(f"{POLICIES}/{namespace}/networkpolicies/python-network-policy", lambda body: body)
    played = play(
        [
            role("python", boundary_egress="dns_only"),
            {"name": "live", **check(namespace, **asked)},
            {"name": "offline", **check(namespace, **asked, manifests=[template, pool, live])},
            {"name": "expected", **check(namespace, **asked, manifests=[template, pool])},
        ],
        variables={"boundary_namespace": namespace},
    )
    (found,) = played["live"]["checks"]
    assert found["policy"]["holds"]
    assert {one["policy"] for one in found["egress"]["findings"]} == {
        f"NetworkPolicy {namespace}/python-network-policy"
    }
    # Only the router reaches the agent, and so whoever runs the play does not.
    assert "sandbox-router" in found["reached_by"][0]["peers"]
    assert found["controller"]["allowed"] is False
    assert "may not reach port 1024" in found["controller"]["text"]
    # The policy that is expected before it is there is the one that the controller writes.
    for way in ("egress", "ingress"):
        assert played["offline"]["checks"][0][way]["findings"] == played["expected"]["checks"][0][way]["findings"]


def test_a_check_of_a_live_sandbox_and_the_audit_of_its_namespace(play, pool, claimant, tmp_path) -> None:
    access = {**pool.access, **claimant}
    report = tmp_path / "audit.html"
    played = play(
        [
            {"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": pool.name, **access}, "register": "held"},
            {
                "name": "check",
                "namzu.sandbox.boundary_check": {
                    "name": "{{ held.sandbox.name }}", "egress": {"kind": "no_network"}, **access,
                },
            },
            {
                "name": "probe",
                "namzu.sandbox.boundary_check": {
                    "name": "{{ held.sandbox.name }}", "egress": {"kind": "no_network"}, "network_probe": True,
                    "probe_timeout": "20s", "fail": False, **access,
                },
            },
            {"namzu.sandbox.sandbox": {"state": "absent", "name": "{{ held.sandbox.name }}", **access}},
        ]
    )  # fmt: skip
    probe = played["probe"]["checks"][0]["network_probe"]
    assert {"api", "node", "pod"} <= {attempt["place"] for attempt in probe["attempts"]}
    if probe["holds"]:
        assert "closed" in {attempt["says"] for attempt in probe["attempts"] if attempt["place"] == "pod"}
    else:
        assert "the network enforces nothing" in probe["problem"]
    (found,) = played["check"]["checks"]
    assert found["pods"] == [played["acquire"]["sandbox"]["pod"]]
    assert found["holds"]
    # A token of one namespace may not read the administrators' policies.
    assert any("ClusterNetworkPolicy" in source for source in played["check"]["unread"])
    variables = {"audit_namespace": pool.namespace, "audit_report": str(report)}
    play.playbook("namzu.sandbox.boundary_audit", variables=variables)
    assert pool.namespace in report.read_text()
