# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``boundary_check``: what it says about manifests and about a cluster, and that module and action say the same."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import (
    translate,
    translate_ingress,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Result, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.boundary_check import VERB

from ....faults import bounded
from ....faults.fake.cluster import FakeCluster
from ....faults.fake.controller import NAMESPACE, POOL
from ..playing import Task, access, play

LABELS = {"sandbox.namzu.ai/template": "python"}
PLACE: dict[str, t.Any] = {"namespace": "agents", "labels": LABELS}
PLAYS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "awx"}}}]
EGRESS = translate("dns_only", name="namzu-python-egress", **PLACE)
INGRESS = translate_ingress(PLAYS, name="namzu-python-ingress", **PLACE)
TEMPLATE = {
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
    "kind": "SandboxTemplate",
    "metadata": {"name": "python"},
    "spec": {"podTemplate": {"metadata": {"labels": LABELS}, "spec": {"containers": []}}},
}
UNMANAGED = {
    **TEMPLATE,
    "spec": {**t.cast("dict[str, t.Any]", TEMPLATE["spec"]), "networkPolicyManagement": "Unmanaged"},
}
WARM_POOL = {
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
    "kind": "SandboxWarmPool",
    "metadata": {"name": "pool"},
    "spec": {"sandboxTemplateRef": {"name": "python"}},
}
FORGOTTEN = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "forgotten"},
    "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 443}]}]},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "labels": LABELS}}


def check(**options: t.Any) -> Result:
    validator = ArgumentSpecValidator(VERB.options, **VERB.constraints)
    validated = validator.validate({"namespace": "agents", **options})
    if validated.error_messages:
        return {"failed": True, "msg": ", ".join(validated.error_messages), "reason": "options"}
    return perform(VERB, validated.validated_parameters, Context(check_mode=False, environ={}))


@pytest.mark.parametrize("chosen", [{"manifests": [UNMANAGED], "template": "python"}, {"labels": LABELS}])
def test_isolation_is_refused_for_what_has_no_runtime(chosen: dict[str, t.Any]) -> None:
    result = check(**chosen, isolation="gvisor")
    assert (result["failed"], result["reason"]) == (True, "invalid-input")


def test_manifests_that_keep_a_pod_closed_hold() -> None:
    result = check(manifests=[EGRESS, INGRESS, UNMANAGED, WARM_POOL], warm_pool="pool", egress={"kind": "dns_only"})
    assert (result["holds"], result["changed"], result.get("failed")) == (True, False, None)
    (found,) = result["checks"]
    assert found["policy"] == {"name": "NetworkPolicy agents/namzu-python-egress", "holds": True, "problem": None}
    assert [one["policy"] for one in found["reached_by"]] == ["NetworkPolicy agents/namzu-python-ingress"]
    assert "holds" in result["text"]


def test_the_policy_that_the_controller_will_add_counts_before_it_is_there() -> None:
    result = check(manifests=[EGRESS, INGRESS, TEMPLATE, WARM_POOL], warm_pool="pool", egress={"kind": "dns_only"})
    assert (result["failed"], result["reason"], result["retryable"]) == (True, "boundary", False)
    assert "NetworkPolicy agents/python-network-policy, egress rule 0" in result["msg"]
    # It selects only the pods of pools.
    assert check(manifests=[EGRESS, INGRESS, TEMPLATE], template="python", egress={"kind": "dns_only"})["holds"]


def test_a_widening_policy_is_named_with_a_witness_and_only_reported_when_that_is_asked() -> None:
    asked: dict[str, t.Any] = {"labels": LABELS, "egress": {"kind": "dns_only"}}
    result = check(manifests=[EGRESS, INGRESS, FORGOTTEN], **asked, fail=False)
    assert "failed" not in result
    assert result["holds"] is False
    (finding,) = result["checks"][0]["egress"]["findings"]
    assert (finding["policy"], finding["rule"], finding["port"]) == ("NetworkPolicy agents/forgotten", 0, 443)
    assert check(manifests=[EGRESS, INGRESS, FORGOTTEN], **asked)["failed"]


def test_a_named_policy_that_is_missing_differs_or_selects_others_is_said() -> None:
    asked = {"pod": "one", "egress": {"kind": "dns_only"}, "fail": False}
    gone = check(manifests=[POD, INGRESS], **asked)["checks"][0]["policy"]
    assert "does not exist" in gone["problem"]
    other = translate("no_network", name="namzu-python-egress", **PLACE)
    assert (
        "does not grant dns_only" in check(manifests=[POD, INGRESS, other], **asked)["checks"][0]["policy"]["problem"]
    )
    bare = {**POD, "metadata": {"name": "one", "labels": {"other": "x"}}}
    found = check(
        manifests=[bare, EGRESS, INGRESS], **{**asked, "egress": {"kind": "dns_only", "name": "namzu-python-egress"}}
    )
    assert "the pod lacks the label sandbox.namzu.ai/template=python" in found["checks"][0]["policy"]["problem"]


def test_the_agents_port_that_nobody_closes_is_a_finding_also_when_nothing_is_asked() -> None:
    result = check(manifests=[POD], pod="one", fail=False)
    assert result["checks"][0]["ingress"]["findings"][0]["policy"] is None
    assert check(manifests=[POD], pod="one", ingress="unverified")["holds"]


def test_pods_that_no_policy_tells_apart_are_checked_once() -> None:
    pods = [{**POD, "metadata": {"name": f"p-{n}", "labels": {**LABELS, "n": str(n)}}} for n in range(5)]
    result = check(manifests=[*pods, EGRESS, INGRESS], label_selector="", matrix=True, egress={"kind": "dns_only"})
    assert [sorted(one["pods"]) for one in result["checks"]] == [[f"p-{n}" for n in range(5)]]
    assert [row["pods"] for row in result["matrix"]["rows"]] == [[f"p-{n}" for n in range(5)]]
    assert check(manifests=pods, label_selector="n=7")["checks"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of the following is required"),
        ({"pod": "a", "template": "b"}, "mutually exclusive"),
        ({"pod": "a", "matrix": True}, "label_selector"),
        ({"manifests": [], "name": "a"}, "hold no sandboxes"),
        ({"manifests": [], "pod": "a"}, "no pod agents/a"),
        ({"manifests": [], "template": "a"}, "no SandboxTemplate agents/a"),
        ({"manifests": [], "label_selector": "a b"}, "not a label selector"),
        ({"manifests": ["/no/such/file.yml"], "pod": "a"}, "no file or folder"),
        ({"manifests": [], "labels": {"a": [1]}}, "a label's value is a string"),
        ({"labels": {"a": "b"}, "network_probe": True}, "network_probe"),
        ({"manifests": [], "labels": {"a": "b"}, "agent": {"port": 0}}, "agent.port"),
        ({"manifests": [], "labels": {"a": "b"}, "egress": {"kind": "hosts", "hosts": ["a.b"]}}, "engine core cannot"),
        ({"manifests": [{**FORGOTTEN, "spec": {"egress": 1}}], "labels": {"a": "b"}}, "expected a list"),
        (
            {"labels": {"a": "b"}, "egress": {"kind": "dns_only", "verify": "named_object"}, "manifests": []},
            "names no template",
        ),
    ],
)
def test_what_cannot_be_checked_is_refused_in_words(options: dict[str, t.Any], words: str) -> None:
    result = check(**options)
    assert result["failed"]
    assert words in result["msg"]


def sequence(cluster: FakeCluster) -> dict[str, Task]:
    """Everything that the verb can answer on one cluster."""
    live = access(cluster)

    def task(**options: t.Any) -> Task:
        return {"namzu.sandbox.boundary_check": {**live, **options}}

    deny = {"kind": "dns_only"}
    return {
        "sandbox": task(name="build-1", egress=deny, fail=False),
        "pool": task(warm_pool=POOL, pod_labels=LABELS, egress=deny, fail=False),
        "open": task(template="python", egress={"kind": "no_network"}),
        "everything": task(label_selector="", matrix=True, fail=False),
        "offline": task(manifests=[POD, EGRESS, INGRESS], namespace="agents", pod="one", egress=deny),
        "wrong credential": task(label_selector="", api_key="wrong"),
        "wrong options": task(template="python", pod="one"),
    }


class Both(t.NamedTuple):
    """The results by name, from the action and from the module."""

    action: dict[str, Result]
    module: dict[str, Result]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    results = []
    for connection in ("local", "elsewhere"):
        with FakeCluster() as cluster, cluster.client() as client:
            bounded.set_up(cluster)
            bounded.acquire(client, bounded.wanted(cluster, name="build-1"))
            tasks = sequence(cluster)
            played = play(tmp_path_factory.mktemp(connection), list(tasks.values()), connection=connection)
            results.append(dict(zip(tasks, played.results, strict=True)))
    return Both(*results)


NAMES = ("sandbox", "pool", "open", "everything", "offline", "wrong credential", "wrong options")


@pytest.mark.parametrize("name", NAMES)
def test_module_returns_what_the_action_returns(both: Both, name: str) -> None:
    def shown(result: Result) -> Result:
        kept = {key: value for key, value in result.items() if key not in {"invocation", "msg"}}
        return {**kept, "msg": str(result.get("msg", "")).split(" http", maxsplit=1)[0]}

    assert shown(both.module[name]) == shown(both.action[name])


def test_a_live_sandbox_is_checked_by_its_own_labels(both: Both) -> None:
    (found,) = both.action["sandbox"]["checks"]
    assert found["name"] == f"sandbox {NAMESPACE}/build-1"
    assert found["pods"] == ["python-00001"]
    assert found["egress"]["holds"]
    assert found["policy"]["name"] == f"NetworkPolicy {NAMESPACE}/namzu-python-egress"


def test_a_task_fails_exactly_when_it_should(both: Both) -> None:
    assert not both.action["offline"]["failed"], both.action["offline"]["msg"]
    failed = {name for name in NAMES if both.action[name]["failed"]}
    assert failed == {"open", "wrong credential", "wrong options"}
    assert not any(both.action[name]["changed"] for name in NAMES)


def test_all_pods_are_in_the_matrix(both: Both) -> None:
    result = both.action["everything"]
    assert [row["pods"] for row in result["matrix"]["rows"]] == [["python-00001"]]
    assert result["unread"] == []


def test_the_host_is_told_that_it_may_not_reach_the_agent(both: Both) -> None:
    (found,) = both.action["open"]["checks"]
    assert found["controller"]["allowed"] is False
    assert "boundary_ingress_from" in found["controller"]["text"]


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    with FakeCluster() as running:
        yield running


def test_isolation_of_a_template_is_judged_by_its_runtime_class(cluster: FakeCluster) -> None:
    options = {**access(cluster), "namespace": NAMESPACE, "template": "python", "isolation": "gvisor"}
    cluster.store.create("sandboxtemplates", NAMESPACE, UNMANAGED)
    weak = check(**options)
    assert (weak["failed"], weak["reason"], weak["checks"][0]["isolation"]["holds"]) == (True, "isolation", False)
    spec = {"podTemplate": {"spec": {"containers": [], "runtimeClassName": "sandboxed"}}}
    cluster.store.patch(cluster.key("sandboxtemplates", "python"), {"spec": spec})
    cluster.store.create("runtimeclasses", "", {"metadata": {"name": "sandboxed"}, "handler": "runsc"})
    found = check(**options)["checks"][0]["isolation"]
    assert (found["holds"], found["handler"], found["kernel"]) == (True, "runsc", "unknown")
