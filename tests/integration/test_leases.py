# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases on a real controller: kept for longer than they last, given back after a kill, and never mistaken."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import subprocess
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import (
    ACQUIRE_ID_ANNOTATION,
    CLAIM,
    POD,
    SANDBOX,
    ObjectRef,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ConflictError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import (
    Lease,
    LeaseLostError,
    ensure_left,
    find_lease,
    renew,
)

from .kept_play import Body, started

pytestmark = pytest.mark.each_ansible

EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/{}"

#: Seconds of the lease of a play that takes three of them, and a little.
TTL = 15
LONG = 3 * TTL + 2

#: Seconds from the end of a lease at which it is renewed: from where that is sure to succeed to where it is too late.
OFFSETS = [step / 10 for step in range(-40, 11, 5)]
#: Seconds of the leases that are raced against: the controller has started their sandboxes by then.
RACED = 14
FAMILIES = [(CLAIM, "delete", "Delete"), (CLAIM, "retain", "Retain"), (SANDBOX, "direct", "Delete")]

#: A pod that waits for an image that does not exist: it is there, and costs nothing.
NEVER_RUNS = {
    "spec": {"containers": [{"name": "none", "image": "localhost/there-is-none:0", "imagePullPolicy": "Never"}]}
}


@pytest.fixture(scope="module")
def client(kubeconfig: str) -> t.Iterator[Client]:
    with Client(resolve_access({"kubeconfig": kubeconfig}, {})) as made:
        yield made


@pytest.fixture(scope="module")
def long_play(kubeconfig, pool, claimant, tmp_path_factory) -> t.Iterator[subprocess.Popen[str]]:
    """A play of a claimant that works in one sandbox for longer than three of its leases, beside the other tests."""
    access = {**pool.access, **claimant}
    named = {**access, "name": "long"}
    command = {"namzu.sandbox.sandbox_exec": {**named, "argv": ["cat", "/tmp/mark"]}}
    tasks = [
        {"namzu.sandbox.sandbox": {**named, "warm_pool": pool.name, "ttl": TTL, "release_on_end": True}},
        {"namzu.sandbox.sandbox_exec": {**named, "command": "echo kept > /tmp/mark"}},
        {"ansible.builtin.wait_for": {"timeout": LONG}},
        {**command, "register": "read"},
        {"ansible.builtin.assert": {"that": "read.stdout == 'kept\\n'"}},
    ]
    with started(kubeconfig, tmp_path_factory.mktemp("long"), tasks) as process:
        yield process


@pytest.fixture
def sterile(kube, namespace) -> str:
    """A namespace with an empty pool whose sandboxes never run: only what the controller makes of a claim matters."""
    objects: list[tuple[str, str, Body]] = [
        ("sandboxtemplates", "SandboxTemplate", {"podTemplate": NEVER_RUNS}),
        ("sandboxwarmpools", "SandboxWarmPool", {"replicas": 0, "sandboxTemplateRef": {"name": "sterile"}}),
    ]
    for plural, kind, spec in objects:
        metadata = {"name": "sterile", "namespace": namespace}
        body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
        kube.request("POST", EXTENSIONS.format(namespace, plural), body)
    return namespace


def make(kube, ref: ObjectRef, seconds: float, policy: str) -> Body:
    """A claim, or a Sandbox as an acquire makes one, with a lease of so many seconds."""
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    life = {"shutdownTime": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "shutdownPolicy": policy}
    claim = {"warmPoolRef": {"name": "sterile"}, "lifecycle": life}
    metadata = {"name": ref.name, "namespace": ref.namespace, "annotations": {ACQUIRE_ID_ANNOTATION: "test"}}
    body = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": metadata,
        "spec": claim if ref.kind is CLAIM else {**life, "podTemplate": NEVER_RUNS},
    }
    made: Body = kube.request("POST", ref.kind.collection(ref.namespace), body)
    return made


@dataclasses.dataclass
class SandboxInfo:
    """A claim or Sandbox, and what the controller has made of it: the Sandbox, or its pod."""

    lease: Lease
    end: datetime.datetime
    made: ObjectRef
    made_uid: str


def existing(kube, ref: ObjectRef) -> SandboxInfo:
    """Wait until the controller has made something of it."""
    if ref.kind is CLAIM:
        body = kube.until(ref.path, lambda body: body if ((body or {}).get("status") or {}).get("sandbox") else None)
        made = SANDBOX.ref(ref.namespace, body["status"]["sandbox"]["name"])
        end = body["spec"]["lifecycle"]["shutdownTime"]
    else:
        body, made = kube.get(ref.path), POD.ref(ref.namespace, ref.name)
        end = body["spec"]["shutdownTime"]
    until = datetime.datetime.fromisoformat(end)
    sandbox = made.name if ref.kind is CLAIM else None
    return SandboxInfo(Lease(ref, body["metadata"]["uid"], 3600.0, until, sandbox), until, made, uid_of(kube, made))


def uid_of(kube, ref: ObjectRef) -> str:
    return str(kube.until(ref.path, lambda body: (body or {}).get("metadata", {}).get("uid")))


def renewed_at(client: Client, one: SandboxInfo, offset: float) -> str:
    """Renew at that many seconds from the end; ``renewed``, or why it was lost."""
    moment = one.end + datetime.timedelta(seconds=offset)
    threading.Event().wait(max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds()))
    ref = one.lease.ref
    try:
        ensure_left(
            client,
            lambda limit: find_lease(client, ref.namespace, ref.name, limit),
            3600.0,
            Deadline(30.0),
            uid=one.lease.uid,
        )
    except LeaseLostError as error:
        return error.reason
    return "renewed"


def test_around_its_end_a_lease_is_renewed_or_lost_and_never_a_new_sandbox(kube, client, sterile, long_play) -> None:
    refs = {kind.ref(sterile, f"{name}-{n}"): policy for kind, name, policy in FAMILIES for n in range(len(OFFSETS))}
    for ref, policy in refs.items():
        make(kube, ref, RACED, policy)
    raced = [existing(kube, ref) for ref in refs]
    offsets = OFFSETS * len(FAMILIES)
    with concurrent.futures.ThreadPoolExecutor(len(raced)) as threads:
        said = list(threads.map(renewed_at, [client] * len(raced), raced, offsets))
    for one, offset, word in zip(raced, offsets, said, strict=True):
        body, what = kube.get(one.lease.ref.path), f"{one.lease.ref} at {offset:+} s: {word}"
        if word == "renewed":
            assert body is not None, what
            assert body["metadata"]["uid"] == one.lease.uid, what
            assert uid_of(kube, one.made) == one.made_uid, what
        else:
            assert word in ("expired", "gone"), what
            # Nothing was sent: it is gone, or it has the end that it had.
            end = one.end.strftime("%Y-%m-%dT%H:%M:%SZ")
            assert body is None or end in (body["spec"].get("lifecycle") or body["spec"]).values(), what
    late = {word for offset, word in zip(offsets, said, strict=True) if offset >= 0}
    assert "renewed" not in late


def test_claim_that_was_extended_after_its_end_is_a_new_empty_sandbox_and_refused(kube, client, sterile) -> None:
    make(kube, CLAIM.ref(sterile, "extended"), 6, "Retain")
    before = existing(kube, CLAIM.ref(sterile, "extended"))
    kube.until(
        before.lease.ref.path,
        lambda body: any(one.get("reason") == "ClaimExpired" for one in body["status"].get("conditions") or []),
    )
    kube.until_gone(before.made.path)
    kube.request("PATCH", before.lease.ref.path, {"spec": {"lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z"}}})
    assert uid_of(kube, before.made) != before.made_uid
    with pytest.raises(LeaseLostError) as caught:
        renew(client, before.lease, Deadline(10.0))
    assert caught.value.reason == "expired"


def test_claim_that_was_deleted_and_made_again_is_refused_also_when_it_happens_in_between(
    kube, client, sterile
) -> None:
    make(kube, CLAIM.ref(sterile, "again"), 600, "Delete")
    before = existing(kube, CLAIM.ref(sterile, "again"))
    stale = client.get(before.lease.ref)["metadata"]["resourceVersion"]
    kube.delete(before.lease.ref.path)
    kube.until_gone(before.lease.ref.path)
    made = make(kube, CLAIM.ref(sterile, "again"), 600, "Delete")
    with pytest.raises(LeaseLostError) as caught:
        renew(client, before.lease, Deadline(10.0))
    assert caught.value.reason == "replaced"
    with pytest.raises(ConflictError):
        client.patch(before.lease.ref, {"metadata": {"resourceVersion": stale}, "spec": {"lifecycle": None}})
    assert kube.get(before.lease.ref.path)["spec"] == made["spec"]


def test_killed_play_gives_back_what_is_marked_within_two_seconds_and_the_rest_stays(
    kube, kubeconfig, pool, claimant, tmp_path
) -> None:
    access = {**pool.access, **claimant, "warm_pool": pool.name}
    tasks = [
        {"namzu.sandbox.sandbox": {**access, "name": "marked", "release_on_end": True}},
        {"namzu.sandbox.sandbox": {**access, "name": "unmarked", "ttl": "2m"}},
        {"ansible.builtin.wait_for": {"timeout": 120}},
    ]
    try:
        with started(kubeconfig, tmp_path, tasks) as process:
            claims = EXTENSIONS.format(pool.namespace, "sandboxclaims")
            kube.until(f"{claims}/unmarked", ready)
            process.kill()
            kube.until_gone(f"{claims}/marked", 2.0)
        assert kube.get(f"{claims}/unmarked") is not None
    finally:
        kube.delete(f"{EXTENSIONS.format(pool.namespace, 'sandboxclaims')}/unmarked")


def ready(body: Body | None) -> bool:
    conditions = ((body or {}).get("status") or {}).get("conditions") or []
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def test_play_longer_than_three_leases_keeps_its_pod(long_play, kube, pool) -> None:
    said, _nothing = long_play.communicate(timeout=LONG + 60)
    assert long_play.returncode == 0, said
    (summary,) = [line for line in said.splitlines() if line.startswith("lease_keeper:")]
    renewals = int(summary.split(" held, ")[1].split(" ")[0])
    assert 5 <= renewals <= 8
    assert summary.endswith("1 released at the end")
    assert kube.get(f"{EXTENSIONS.format(pool.namespace, 'sandboxclaims')}/long") is None
