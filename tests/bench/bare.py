# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of an acquire and a release from a bare script: nothing between them and the socket.

``python bare.py NAMESPACE POOL ITEMS`` makes and deletes claims one after the other, as the measured plays do. For each
it reads the policies too, as a play does that proves the boundary.
"""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import os
import ssl
import sys
import tempfile
import typing as t
import urllib.parse
import uuid

import yaml

GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1"
POLICY_GROUP = "/apis/policy.networking.k8s.io"

#: Seconds of a claim's lease.
TTL = 600


class Bare:
    """One kept connection for requests, and one a watch."""

    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig, encoding="utf-8") as stream:
            config = yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe loaders
        context = next(c for c in config["contexts"] if c["name"] == config["current-context"])["context"]
        cluster = next(c for c in config["clusters"] if c["name"] == context["cluster"])["cluster"]
        user = next(u for u in config["users"] if u["name"] == context["user"])["user"]
        address = urllib.parse.urlsplit(cluster["server"])
        self.host, self.port = str(address.hostname), address.port or 443
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.tls.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        self.headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        else:
            self._load_certificate(user)
        self.kept = self.connection()
        self.policies: list[str] = []

    def _load_certificate(self, user: dict[str, str]) -> None:
        with tempfile.NamedTemporaryFile() as stream:
            for field in ("client-certificate-data", "client-key-data"):
                stream.write(base64.b64decode(user[field]) + b"\n")
            stream.flush()
            self.tls.load_cert_chain(stream.name)

    def close(self) -> None:
        """Close the kept connection."""
        self.kept.close()

    def connection(self) -> http.client.HTTPSConnection:
        """A new connection."""
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls)

    def request(self, method: str, path: str, body: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """One request on the kept connection, which must succeed."""
        status, content = self.answer(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {content[:200]!r}")
        return t.cast("dict[str, t.Any]", json.loads(content))

    def answer(self, method: str, path: str, body: dict[str, t.Any] | None = None) -> tuple[int, bytes]:
        """One request on the kept connection; the answer's status and body."""
        self.kept.request(method, path, json.dumps(body) if body else None, self.headers)
        answer = self.kept.getresponse()
        return answer.status, answer.read()

    def read_policies(self, namespace: str) -> None:
        """What the proof of a boundary rests on, one after the other; which kinds there are is asked once."""
        if not self.policies:
            self.policies = [f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"]
            for path in ("v1beta1/clusternetworkpolicies", "v1alpha1/adminnetworkpolicies",
                         "v1alpha1/baselineadminnetworkpolicies"):  # fmt: skip
                if self.answer("GET", f"{POLICY_GROUP}/{path}")[0] == 200:
                    self.policies.append(f"{POLICY_GROUP}/{path}")
        for path in self.policies:
            self.request("GET", path)

    def acquire(self, namespace: str, pool: str, name: str) -> dict[str, t.Any]:
        """POST a claim, watch it until it is Ready, read its pod."""
        claims = f"{GROUP}/namespaces/{namespace}/sandboxclaims"
        claim = self.request("POST", claims, claim_body(namespace, pool, name))
        query = urllib.parse.urlencode(
            {
                "watch": "true",
                "fieldSelector": f"metadata.name={name}",
                "resourceVersion": claim["metadata"]["resourceVersion"],
                "timeoutSeconds": "60",
            }
        )
        watch = self.connection()
        watch.request("GET", f"{claims}?{query}", headers=self.headers)
        with watch.getresponse() as answer:
            while not _is_ready(claim):
                claim = json.loads(answer.readline())["object"]
        watch.close()
        return self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{claim['status']['sandbox']['name']}")

    def release(self, namespace: str, name: str) -> None:
        """DELETE a claim."""
        self.request("DELETE", f"{GROUP}/namespaces/{namespace}/sandboxclaims/{name}")


def claim_body(namespace: str, pool: str, name: str) -> dict[str, t.Any]:
    """The very claim that an acquire sends: the controller has more to do for one with a lease."""
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=TTL)
    return {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"sandbox.namzu.ai/acquire-id": str(uuid.uuid4())},
        },
        "spec": {
            "warmPoolRef": {"name": pool},
            "lifecycle": {"shutdownTime": f"{end:%Y-%m-%dT%H:%M:%SZ}", "shutdownPolicy": "Delete"},
        },
    }


def _is_ready(claim: dict[str, t.Any]) -> bool:
    conditions = claim.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def main(namespace: str, pool: str, items: int) -> None:
    """As many acquires, then as many releases."""
    bare = Bare(os.environ["KUBECONFIG"])
    for item in range(items):
        bare.read_policies(namespace)
        bare.acquire(namespace, pool, f"bench-bare-{item}")
    for item in range(items):
        bare.release(namespace, f"bench-bare-{item}")
    bare.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
