# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the fake API server: uids, resource versions, preconditions, and the log that watches read."""

from __future__ import annotations

import dataclasses
import threading
import typing as t
import uuid

Body = dict[str, t.Any]

#: Plural → the kind that its objects carry.
KINDS = {
    "sandboxclaims": "SandboxClaim",
    "sandboxtemplates": "SandboxTemplate",
    "sandboxwarmpools": "SandboxWarmPool",
    "sandboxes": "Sandbox",
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "networkpolicies": "NetworkPolicy",
    "clusternetworkpolicies": "ClusterNetworkPolicy",
    "ciliumnetworkpolicies": "CiliumNetworkPolicy",
    "ciliumclusterwidenetworkpolicies": "CiliumClusterwideNetworkPolicy",
    "namespaces": "Namespace",
    "runtimeclasses": "RuntimeClass",
    "nodes": "Node",
    "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
    "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
}


class Key(t.NamedTuple):
    """Where an object stands."""

    plural: str
    namespace: str
    name: str


@dataclasses.dataclass(frozen=True)
class Event:
    """One change, as a watch tells it."""

    version: int
    type: str
    key: Key
    body: Body


class Refusal(Exception):
    """What the API server answers instead of doing what was asked."""

    def __init__(self, status: int, reason: str, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: Body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"name": name} if name else {},
            "code": status,
        }


class Store:
    """Everything that the fake API server knows. Every public method may be called from any thread."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.events: list[Event] = []
        self._objects: dict[Key, Body] = {}
        self._version = 100
        self._before_read: dict[Key, t.Callable[[], object]] = {}
        self._after_read: dict[Key, t.Callable[[], object]] = {}
        self._closed = False

    def create(self, plural: str, namespace: str, body: Body, *, dry_run: bool = False) -> Body:
        """Make an object; its uid may be given, as nothing but tests do."""
        with self.changed:
            key = Key(plural, namespace, body["metadata"]["name"])
            if key in self._objects:
                raise Refusal(409, "AlreadyExists", f'{plural} "{key.name}" already exists', key.name)
            made = copied(body)
            made["kind"] = KINDS[plural]
            made["metadata"].setdefault("uid", str(uuid.uuid4()))
            made["metadata"]["namespace"] = namespace
            return copied(made) if dry_run else self._keep("ADDED", key, made)

    def after_read(self, key: Key, action: t.Callable[[], object]) -> None:
        """Do something right after the object has been read the next time, before anybody knows what was read."""
        self._after_read[key] = action

    def before_read(self, key: Key, action: t.Callable[[], object]) -> None:
        """Do something right before the object is read the next time."""
        self._before_read[key] = action

    def get(self, key: Key) -> Body:
        """Read an object."""
        with self.changed:
            self._before_read.pop(key, lambda: None)()
            body = self._read(key)
            self._after_read.pop(key, lambda: None)()
            return body

    def _read(self, key: Key) -> Body:
        with self.changed:
            if key not in self._objects:
                raise Refusal(404, "NotFound", f'{key.plural} "{key.name}" not found', key.name)
            return copied(self._objects[key])

    def list(self, plural: str, namespace: str, labels: t.Mapping[str, str]) -> Body:
        """Read the objects of a kind that carry all of these labels."""
        with self.changed:
            items = [
                copied(body)
                for key, body in sorted(self._objects.items())
                if (key.plural, key.namespace) == (plural, namespace)
                and labels.items() <= (body["metadata"].get("labels") or {}).items()
            ]
            return {"kind": f"{KINDS[plural]}List", "metadata": {"resourceVersion": str(self._version)}, "items": items}

    def delete(self, key: Key, uid: str | None = None, version: str | None = None) -> Body:
        """Delete an object, if it is the one of that uid, at that resourceVersion, when one is given."""
        with self.changed:
            body = self._read(key)
            have = body["metadata"]["resourceVersion"]
            if version not in (None, have):
                message = f"Precondition failed: ResourceVersion in precondition: {version}, in object meta: {have}"
                raise Refusal(409, "Conflict", message, key.name)
            if uid is not None and body["metadata"]["uid"] != uid:
                have = body["metadata"]["uid"]
                message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {have}"
                raise Refusal(409, "Conflict", message, key.name)
            self._keep("DELETED", key, body)
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def replace(self, key: Key, body: Body) -> Body:
        """Delete an object and make another under its name."""
        with self.changed:
            self.delete(key)
            metadata = {**body.get("metadata", {}), "name": key.name}
            return self.create(key.plural, key.namespace, {**body, "metadata": metadata})

    def renew(self, key: Key, uid: str) -> Body:
        """Let an equal object of another uid stand under the name."""
        with self.changed:
            body = self._read(key)
            return self.replace(key, {**body, "metadata": {**body["metadata"], "uid": uid}})

    def patch(self, key: Key, patch: Body, *, dry_run: bool = False) -> Body:
        """Change an object by a JSON merge patch; the uid and resourceVersion in it are preconditions."""
        with self.changed:
            body = self._read(key)
            for name in ("uid", "resourceVersion"):
                wanted = (patch.get("metadata") or {}).get(name)
                if wanted not in (None, body["metadata"][name]):
                    raise Refusal(409, "Conflict", f"Precondition failed: {name} is not {wanted}", key.name)
            changed = merged(body, patch)
            return copied(changed) if dry_run else self._keep("MODIFIED", key, changed)

    def json_patch(self, key: Key, operations: t.Sequence[Body], *, dry_run: bool = False) -> Body:
        """Change an object by a JSON patch: all of its operations, or none."""
        with self.changed:
            changed = self._read(key)
            try:
                for operation in operations:
                    apply_operation(changed, operation)
            except (KeyError, AssertionError):
                message = "the server rejected our request due to an error in our request"
                raise Refusal(422, "Invalid", message, key.name) from None
            return copied(changed) if dry_run else self._keep("MODIFIED", key, changed)

    def names(self, plural: str) -> list[str]:
        """The names of all objects of a kind, in every namespace."""
        with self.changed:
            return sorted(key.name for key in self._objects if key.plural == plural)

    def wait_for_event(self, after: int, timeout: float) -> list[Event]:
        """What the log has after its first ``after`` events: waits for something to come, at most ``timeout``."""
        with self.changed:
            self.changed.wait_for(lambda: self._closed or len(self.events) > after, timeout)
            return self.events[after:]

    def close(self) -> None:
        """Let nobody wait any more."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()

    def _keep(self, type_name: str, key: Key, body: Body) -> Body:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        if type_name == "DELETED":
            del self._objects[key]
        else:
            self._objects[key] = body
        self.events.append(Event(self._version, type_name, key, copied(body)))
        self.changed.notify_all()
        return copied(body)


def copied(value: t.Any) -> t.Any:
    """A copy of what JSON can say; a few times as fast as one that expects anything."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


def apply_operation(target: Body, operation: Body) -> None:
    """One operation of a JSON patch on members of objects (RFC 6902); raises when it cannot be done."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:]]
    for token in tokens[:-1]:
        target = target[token]
    last = tokens[-1]
    if operation["op"] == "test":
        assert target[last] == operation["value"]
    elif operation["op"] == "add":
        target[last] = copied(operation["value"])
    elif operation["op"] == "remove":
        del target[last]
    else:
        raise KeyError(operation["op"])


def merged(target: t.Any, patch: t.Any) -> t.Any:
    """A JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
