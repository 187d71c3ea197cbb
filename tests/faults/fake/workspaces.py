# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fake controller does with Sandboxes that have disks: claims, and a pod for as long as they run."""

from __future__ import annotations

import typing as t

from .server import FakeServer
from .store import Body, Event, Key

RUNS: Body = {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "Pod is Ready"}
SLEEPS: Body = {"type": "Ready", "status": "False", "reason": "SandboxSuspended", "message": "Sandbox is suspended"}
FAILED: Body = {"type": "Ready", "status": "False", "reason": "PodFailed", "message": "Pod failed"}
STOPPED: Body = {"type": "Suspended", "status": "True", "reason": "PodTerminated", "message": "Sandbox is suspended"}


class FakeWorkspaces:
    """Reconciles them as agent-sandbox v0.5.6 does, as far as tests look.

    Attributes:
        stops: whether pods stop when they are told to.
        starts: whether pods become ready.
        away: whether the controller is not there; ``back`` is its return.
        phase: of the claims that it makes; ``Bound`` ones count as disks.
    """

    def __init__(self, server: FakeServer, pod_uid: str) -> None:
        self.stops = True
        self.starts = True
        self.away = False
        self.phase = "Bound"
        self._store = server.store
        self._pod_uid = pod_uid

    @staticmethod
    def owns(event: Event) -> bool:
        """Whether an event is about such a Sandbox; what an acquire made from a template is none."""
        if event.key.plural != "sandboxes":
            return False
        acquired = "sandbox.namzu.ai/acquire-id" in (event.body["metadata"].get("annotations") or {})
        return bool((event.body.get("spec") or {}).get("volumeClaimTemplates")) and not acquired

    def handle(self, event: Event) -> None:
        """Bring about what the Sandbox says now."""
        key = event.key
        if self.away:
            return
        with self._store.changed:
            if key.name not in self._store.names("sandboxes"):
                for gone in (Key("pods", key.namespace, key.name), *self._claims(event.body)):
                    self._remove(gone)
                return
            body = self._store.get(key)
            for claim in self._claims(body):
                if claim.name not in self._store.names(claim.plural):
                    self._claim(claim)
            if body["spec"].get("operatingMode") == "Suspended":
                if self.stops:
                    self._remove(Key("pods", key.namespace, key.name))
                self._say(key, body, [SLEEPS, *([STOPPED] if self.stops else [])])
            elif self.starts:
                self._say(key, body, [self._start(key, body)])

    def back(self) -> None:
        """The controller is there again, and looks at everything as it does when it has been restarted."""
        self.away = False
        with self._store.changed:
            latest = {event.key: event for event in self._store.events if self.owns(event)}
        for event in latest.values():
            self.handle(event)

    def _claims(self, body: Body) -> list[Key]:
        metadata = body["metadata"]
        names = [entry["metadata"]["name"] for entry in body["spec"]["volumeClaimTemplates"]]
        return [Key("persistentvolumeclaims", metadata["namespace"], f"{name}-{metadata['name']}") for name in names]

    def _claim(self, key: Key) -> None:
        spec = {"storageClassName": "fast", "volumeName": "volume", "resources": {"requests": {"storage": "1Gi"}}}
        body = {"metadata": {"name": key.name}, "spec": spec, "status": {"phase": self.phase}}
        self._store.create(key.plural, key.namespace, body)

    def _start(self, key: Key, body: Body) -> Body:
        """Have a pod, and say what it is; one that has failed stays, as long as the mode does."""
        if key.name in self._store.names("pods"):
            pod = self._store.get(Key("pods", key.namespace, key.name))
            return FAILED if pod["status"]["phase"] == "Failed" else RUNS
        labels = body["spec"]["podTemplate"]["metadata"]["labels"]
        pod = {
            "metadata": {"name": key.name, "uid": self._pod_uid, "labels": labels},
            "status": {"phase": "Running", "podIP": "127.0.0.1"},
        }
        self._store.create("pods", key.namespace, pod)
        return RUNS

    def _say(self, key: Key, body: Body, conditions: list[Body]) -> None:
        if (body.get("status") or {}).get("conditions") != conditions:
            self._store.patch(key, {"status": {"conditions": conditions, "serviceFQDN": "127.0.0.1"}})

    def _remove(self, key: Key) -> None:
        if key.name in self._store.names(key.plural):
            self._store.delete(key)


def template(name: str, **pod: t.Any) -> Body:
    """A SandboxTemplate with a disk."""
    container = {"name": "agent", "image": "python", "volumeMounts": [{"name": "workspace", "mountPath": "/workspace"}]}
    entry = {"metadata": {"name": "workspace"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = {"podTemplate": {"spec": {"containers": [container], **pod}}, "volumeClaimTemplates": [entry]}
    return {"metadata": {"name": name}, "spec": spec}
