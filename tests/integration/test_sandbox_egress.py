# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy of one sandbox on a real cluster: what it opens, for whom, for how long, and behind which fence.

The fence is the one of role ``admission_fence`` under a name of this run's own, so that it can be broken while other
tests rely on theirs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import typing as t
import uuid

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import rbac as rules
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired, AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress import fence as fence_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.change import (
    EgressChange,
    remove_egress,
    set_egress,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.fence import FenceError, require_fence
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"
FENCES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LABEL = "sandbox.users.io/egress"
ROLE = pathlib.Path(__file__).parents[2] / "roles" / "admission_fence" / "vars" / "main" / "egress.yml"

#: Seconds until a change of the fence or of a policy is in force.
IN_FORCE = 20.0
LISTENS_ON = 24710
LISTEN = f"import http.server as h; h.HTTPServer(('', {LISTENS_ON}), h.BaseHTTPRequestHandler).serve_forever()"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()"

ALL, INTERNET = EgressBoundary.of("allow_all"), EgressBoundary.of("public_internet")


@dataclasses.dataclass(frozen=True)
class Ground:
    """A pool behind a boundary and a fence, with a claimant who may write policies behind it."""

    namespace: str
    pool: str
    fence: str
    kube: t.Any
    admin: Client
    claimant: Client

    @contextlib.contextmanager
    def held(self, **changes: t.Any) -> t.Iterator[Acquired]:
        address = os.environ.get("NAMZU_TEST_AGENT_ADDRESS") or "pod_ip"
        usual = {"namespace": self.namespace, "warm_pool": self.pool, "agent_address": address, "ready_timeout": 120.0}
        acquired = acquire(self.admin, AcquireRequest(**{**usual, "per_sandbox_egress": True, **changes}))
        try:
            yield acquired
        finally:
            release(self.admin, self.namespace, acquired.name, Deadline(30.0))

    def give(self, acquired: Acquired, egress: EgressBoundary, client: Client | None = None) -> EgressChange:
        who = client or self.claimant
        return set_egress(who, self.namespace, acquired.name, egress, Deadline(30.0), uid=acquired.uid)

    def policy(self, acquired: Acquired) -> str:
        return f"{POLICIES.format(self.namespace)}/{acquired.labels[LABEL]}"

    def until_reason(self, reason: str | None, client: Client | None = None) -> None:
        """Wait until the fence fails for that reason, or holds; a changed fence is in force a moment later."""
        deadline = Deadline(IN_FORCE, SYSTEM_CLOCK)
        while (found := self._reason(client or self.claimant)) != reason:
            assert not deadline.expired, f"the fence says {found!r}, not {reason!r}"
            deadline.sleep(0.1)

    def _reason(self, client: Client) -> str | None:
        try:
            require_fence(client, self.namespace, Deadline(10.0))
        except FenceError as error:
            return error.reason
        return None


def fence_objects(name: str, namespace: str) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """The policy of the role, under another name, and its binding to one namespace."""
    spec = yaml.safe_load(ROLE.read_text(encoding="utf-8"))["admission_fence_egress_rules"]
    operator = (
        "!authorizer.group('admissionregistration.k8s.io').resource('validatingadmissionpolicies')"
        f".name('{name}').check('update').allowed()"
    )
    conditions = [{"name": "no-operator", "expression": operator}]
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    bound = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchExpressions": [here]}},
    }
    policy = {**head, "kind": "ValidatingAdmissionPolicy", "spec": {**spec, "matchConditions": conditions}}
    return policy, {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}


def as_rbac(table: t.Iterable[rules.Rule]) -> list[dict[str, t.Any]]:
    return [
        {"apiGroups": [rule.kind.group], "resources": [rule.kind.plural], "verbs": list(rule.verbs)} for rule in table
    ]


def grant(kube: t.Any, namespace: str, name: str, *, reads_fence: bool) -> dict[str, t.Any]:
    """Access options of a service account with the rules of the core's table."""
    kube.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    parts = [
        (f"namespaces/{namespace}/", "Role", name, rules.CLAIMANT + rules.EGRESS + rules.CILIUM + rules.EGRESS_CILIUM)
    ]
    if reads_fence:
        parts.append(("", "ClusterRole", f"{namespace}-{name}", rules.EGRESS_CLUSTER))
    for place, kind, called, table in parts:
        body = {"metadata": {"name": called}, "rules": as_rbac(table)}
        kube.request("POST", f"{RBAC}/{place}{kind.lower()}s", body)
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": called}
        bound = {"metadata": {"name": called}, "roleRef": ref, "subjects": subjects}
        kube.request("POST", f"{RBAC}/{place}{kind.lower()}bindings", bound)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    token = kube.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    return {"host": kube.server, "api_key": token["status"]["token"], "ca_cert": kube.ca_cert}


@pytest.fixture(scope="module")
def ground(pool, kube, kubeconfig) -> t.Iterator[Ground]:
    run = uuid.uuid4().hex[:8]
    name, namespace = f"namzu-fence-egress-{run}", pool.namespace
    policy, binding = fence_objects(name, namespace)
    with contextlib.ExitStack() as stack:
        for path, body in ((FENCES, policy), (BINDINGS, binding)):
            kube.request("POST", path, body)
            stack.callback(kube.delete, f"{path}/{name}")
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(fence_module, "FENCE_NAME", name)
        account = f"opener-{run}"
        access = grant(kube, namespace, account, reads_fence=True)
        for plural in ("clusterroles", "clusterrolebindings"):
            stack.callback(kube.delete, f"{RBAC}/{plural}/{namespace}-{account}")
        claimant = stack.enter_context(Client(resolve_access(access, {})))
        admin = stack.enter_context(Client(resolve_access({"kubeconfig": kubeconfig}, {})))
        made = Ground(namespace, pool.name, name, kube, admin, claimant)
        made.until_reason(None)
        yield made


@pytest.fixture(scope="module")
def listener(kube, new_namespace, image) -> str:
    """The address of a pod that anybody may connect to."""
    namespace = new_namespace()
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    kube.until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", bool)
    container = {"name": "listen", "image": image, "imagePullPolicy": "IfNotPresent"}
    container["command"] = ["python3", "-c", LISTEN]
    container["readinessProbe"] = {"tcpSocket": {"port": LISTENS_ON}, "periodSeconds": 1}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    kube.request("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "listener"}, "spec": spec})

    def ready(pod: t.Any) -> bool:
        conditions = (pod or {}).get("status", {}).get("conditions") or []
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    kube.until(f"/api/v1/namespaces/{namespace}/pods/listener", ready)
    return str(kube.get(f"/api/v1/namespaces/{namespace}/pods/listener")["status"]["podIP"])


def connects(acquired: Acquired, address: str) -> bool:
    argv = ["python3", "-c", CONNECT, address, str(LISTENS_ON)]
    return Agent(acquired.agent).execute(argv, deadline=Deadline(20.0), timeout=10.0).rc == 0


def until_connects(acquired: Acquired, address: str, *, wanted: bool) -> None:
    deadline = Deadline(IN_FORCE, SYSTEM_CLOCK)
    while connects(acquired, address) != wanted:
        assert not deadline.expired, f"a connection was {'refused' if wanted else 'let through'} for {IN_FORCE:g} s"
        deadline.sleep(0.2)


def test_policy_of_one_sandbox_opens_that_one_alone(ground, listener, kube) -> None:
    with ground.held() as opened, ground.held() as neighbour:
        assert opened.warm, "a pod label must not make a claim start cold"
        until_connects(opened, listener, wanted=False)
        internet = ground.give(opened, INTERNET)
        assert (internet.changed, internet.verdict.holds, internet.fence.held) == (True, True, True)
        assert not connects(opened, listener), "a private address is not the internet"
        assert ground.give(opened, ALL).changed
        until_connects(opened, listener, wanted=True)
        assert not connects(neighbour, listener)
        assert not ground.give(opened, ALL).changed
        taken = remove_egress(ground.claimant, ground.namespace, opened.name, Deadline(30.0))
        assert taken.changed
        until_connects(opened, listener, wanted=False)
        assert kube.get(ground.policy(opened)) is None


@pytest.mark.parametrize("direct", [False, True], ids=["claim", "direct"])
def test_policy_goes_with_its_sandbox_whoever_deletes_that(ground, kube, direct: bool) -> None:
    changes = {"warm_pool": None, "template": ground.pool} if direct else {}
    with ground.held(**changes) as acquired:
        change = ground.give(acquired, INTERNET)
        (owner,) = kube.get(ground.policy(acquired))["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["kind"]) == (acquired.uid, "Sandbox" if direct else "SandboxClaim")
        assert change.verdict.holds
    kube.until_gone(ground.policy(acquired))


def test_fence_and_policy_are_ciliums_where_cilium_is_said_to_enforce(ground, kube) -> None:
    names = EgressBoundary.of({"kind": "hosts", "hosts": ["example.com"], "engine": "cilium"})
    with ground.held() as acquired:
        change = ground.give(acquired, names)
        assert (change.changed, change.fence.held, change.verdict.holds) == (True, True, True)
        path = f"/apis/cilium.io/v2/namespaces/{ground.namespace}/ciliumnetworkpolicies/{acquired.labels[LABEL]}"
        assert kube.get(path)["spec"] == change.after
        assert not ground.give(acquired, names).changed
    kube.until_gone(path)


def test_policy_that_opens_more_is_named_and_nothing_is_written(ground, kube) -> None:
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}
    with ground.held() as acquired:
        kube.request("POST", POLICIES.format(ground.namespace), {"metadata": {"name": "wide"}, "spec": spec})
        try:
            with pytest.raises(BoundaryError) as caught:
                ground.give(acquired, INTERNET)
        finally:
            kube.delete(f"{POLICIES.format(ground.namespace)}/wide")
        assert caught.value.object == f"NetworkPolicy {ground.namespace}/wide"
        assert kube.get(ground.policy(acquired)) is None


def test_operator_who_may_change_the_fence_is_not_held_and_is_told(ground) -> None:
    fence = require_fence(ground.admin, ground.namespace, Deadline(10.0))
    assert (fence.policy, fence.held) == (f"ValidatingAdmissionPolicy {ground.fence}", False)


def test_claimant_who_may_not_read_the_fence_is_refused(ground, kube) -> None:
    access = grant(kube, ground.namespace, f"blind-{uuid.uuid4().hex[:8]}", reads_fence=False)
    with Client(resolve_access(access, {})) as blind:
        with ground.held() as acquired, pytest.raises(FenceError) as caught:
            ground.give(acquired, INTERNET, blind)
        assert caught.value.reason == "fence-unreadable"
        assert "claimant_egress" in str(caught.value)
        assert kube.get(ground.policy(acquired)) is None


NOBODY = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nowhere"]}]}
FAULTY: dict[str, tuple[str, dict[str, t.Any] | None, str]] = {
    "no policy": (FENCES, None, "fence-missing"),
    "no binding": (BINDINGS, None, "fence-unbound"),
    "a binding that only audits": (BINDINGS, {"validationActions": ["Audit"]}, "fence-not-denying"),
    "a policy that lets errors through": (FENCES, {"failurePolicy": "Ignore"}, "fence-weakened"),
    "other expressions": (FENCES, {"validations": [{"expression": "true"}]}, "fence-weakened"),
    "another namespace": (BINDINGS, {"matchResources": {"namespaceSelector": NOBODY}}, "fence-elsewhere"),
    "a namespace without the label": (
        BINDINGS,
        {"matchResources": {"namespaceSelector": {"matchLabels": {"fenced": "true"}, "matchExpressions": None}}},
        "fence-not-held",
    ),
    "a condition that holds nobody": (
        FENCES,
        {"matchConditions": [{"name": "nobody", "expression": "false"}]},
        "fence-not-held",
    ),
}


@pytest.mark.parametrize(("path", "change", "reason"), FAULTY.values(), ids=FAULTY)
def test_faulty_fence_is_told_apart_and_nothing_is_written(ground, kube, path: str, change: t.Any, reason: str) -> None:
    stands = dict(zip((FENCES, BINDINGS), fence_objects(ground.fence, ground.namespace), strict=True))
    with ground.held() as acquired:
        if change is None:
            kube.delete(f"{path}/{ground.fence}")
        else:
            kube.request("PATCH", f"{path}/{ground.fence}", {"spec": change})
        try:
            ground.until_reason(reason)
            with pytest.raises(FenceError) as caught:
                ground.give(acquired, INTERNET)
            assert caught.value.reason == reason
            assert kube.get(ground.policy(acquired)) is None
        finally:
            kube.delete(f"{path}/{ground.fence}")
            kube.request("POST", path, stands[path])
            ground.until_reason(None)


def test_role_refuses_the_right_to_write_policies_where_nothing_fences_it(play, kube, namespace) -> None:
    given = {"claimant_namespace": namespace, "claimant_name": "opener", "claimant_egress": True}
    refused = play.role("claimant", **given, may_fail=True)
    assert "namzu.sandbox.admission_fence" in refused.failures[-1]["msg"]
    assert kube.get(f"{RBAC}/namespaces/{namespace}/roles/opener") is None
