# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake controller: binds claims to the sandboxes of one pool, and removes what belonged to a deleted claim."""

from __future__ import annotations

import threading
import typing as t

from .server import FakeServer
from .store import Body, Event, Key
from .workspaces import FakeWorkspaces

NAMESPACE = "team-a"
POOL = "python"


class FakeController:
    """Follows the store in a thread. Use it as a context manager inside the server's.

    Attributes:
        bind_delay: seconds from a claim to its binding.
        removal_delay: seconds from a claim's end to the end of its sandbox and pod.
        ready: the Ready condition that claims get; None leaves them without a status.
        workspaces: what it does with Sandboxes that have disks.
        member: what members of the pool are made of beyond a name and a status (``metadata``, ``spec``).
    """

    def __init__(self, server: FakeServer, pod_uid: str) -> None:
        self.server = server
        self.bind_delay = 0.0
        self.removal_delay = 0.0
        self.ready: Body | None = {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "ok"}
        self.member: Body = {}
        self.workspaces = FakeWorkspaces(server, pod_uid)
        self._pod_uid = pod_uid
        self._made = 0
        self._handled = 0
        self._thread = threading.Thread(target=self._run, name="fake-controller")

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stopping.set()
        self.server.store.close()
        self._thread.join()

    def _run(self) -> None:
        store = self.server.store
        while not self.server.stopping.is_set():
            for event in store.wait_for_event(self._handled, 60.0):
                self._handle(event)
                with store.changed:
                    self._handled += 1
                    store.changed.notify_all()

    def settle(self) -> None:
        """Wait until it has handled all that has happened so far."""
        with self.server.store.changed:
            done = self.server.store.changed.wait_for(lambda: self._handled == len(self.server.store.events), 10.0)
            assert done, "the controller does not keep up"

    def _handle(self, event: Event) -> None:
        if self.workspaces.owns(event):
            self.workspaces.handle(event)
            return
        owned = "ownerReferences" in event.body["metadata"]
        if event.key.plural == "sandboxes" and "podTemplate" in (event.body.get("spec") or {}) and not owned:
            self._handle_direct(event)
        if event.key.plural != "sandboxclaims":
            return
        if event.type == "ADDED":
            self._soon(self.bind_delay, lambda: self._bind(event))
        elif event.type == "DELETED":
            sandbox = (event.body.get("status") or {}).get("sandbox") or {}
            if sandbox:
                gone = [Key(plural, event.key.namespace, sandbox["name"]) for plural in ("pods", "sandboxes")]
                self._soon(self.removal_delay, lambda: self._remove(*gone))

    def _handle_direct(self, event: Event) -> None:
        """A Sandbox that nobody claims: its pod has its name, and the labels of its template."""
        if event.type == "ADDED":
            self._soon(self.bind_delay, lambda: self._start_pod(event))
        elif event.type == "DELETED":
            pod = Key("pods", event.key.namespace, event.key.name)
            self._soon(self.removal_delay, lambda: self._remove(pod))

    def _start_pod(self, event: Event) -> None:
        store, name = self.server.store, event.key.name
        with store.changed:
            if name not in store.names("sandboxes") or self.ready is None:
                return
            template = event.body["spec"]["podTemplate"]
            pod = {
                "metadata": {"name": name, "uid": self._pod_uid, "labels": template["metadata"]["labels"]},
                "spec": template["spec"],
                "status": {"phase": "Running", "podIP": "127.0.0.1"},
            }
            store.create("pods", event.key.namespace, pod)
            store.patch(event.key, {"status": {"conditions": [self.ready], "serviceFQDN": "127.0.0.1"}})

    def _remove(self, *keys: Key) -> None:
        for key in keys:
            if key.name in self.server.store.names(key.plural):
                self.server.store.delete(key)

    def _soon(self, seconds: float, action: t.Callable[[], None]) -> None:
        if seconds > 0:
            self.server.later(seconds, action)
        else:
            action()

    def _bind(self, event: Event) -> None:
        store = self.server.store
        with store.changed:
            if event.key.name not in store.names("sandboxclaims") or self.ready is None:
                return
            status: Body = {"conditions": [self.ready]}
            if self.ready["status"] == "True":
                status["sandbox"] = {"name": self._start_sandbox(event)}
            store.patch(event.key, {"status": status})

    def _start_sandbox(self, event: Event) -> str:
        store, namespace = self.server.store, event.key.namespace
        self._made += 1
        name = f"{POOL}-{self._made:05d}"
        labels = (event.body["spec"].get("additionalPodMetadata") or {}).get("labels") or {}
        own = {"agents.x-k8s.io/sandbox-name-hash": f"{self._made:08x}"}
        status = {"serviceFQDN": "127.0.0.1", "selector": f"agents.x-k8s.io/sandbox-name-hash={self._made:08x}"}
        owner = {"kind": "SandboxClaim", "name": event.key.name, "uid": event.body["metadata"]["uid"]}
        metadata = {**self.member.get("metadata", {}), "name": name, "ownerReferences": [owner]}
        store.create("sandboxes", namespace, {**self.member, "metadata": metadata, "status": status})
        pod = {
            "metadata": {"name": name, "uid": self._pod_uid, "labels": {**own, **labels}},
            "status": {"phase": "Running", "podIP": "127.0.0.1"},
        }
        store.create("pods", namespace, pod)
        return name
