# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods between which connections are tried: made once, and asked again for every set of policies.

Five pods in two namespaces and one on the node's network all listen on the same ports and all try to reach each other.
A seventh, the canary, tells when the firewall has read a change: its own policy is changed last, and its two ports
to the node swap.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import typing as t
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import kubernetes
from kubernetes.stream import stream

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Clock, Deadline

Body = dict[str, t.Any]

#: Below the ephemeral ports and the node ports, for one of the listeners is on the node's own network.
PORTS = (("TCP", 24700), ("TCP", 24701), ("TCP", 24705), ("UDP", 24700), ("UDP", 24703))
CANARY_PORTS = (24700, 24701)

#: Seconds for one connection; on one node an open port answers within milliseconds.
ANSWER_SECONDS = 0.5
#: Seconds from a change to its enforcement.
CONVERGE_SECONDS = 20.0
READY_SECONDS = 180.0

SERVE = """
import asyncio, json, os
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, address):
        self.transport.sendto(data, address)
async def main():
    loop, host = asyncio.get_running_loop(), os.environ["ADDRESS"]
    kept = []
    for protocol, port in json.loads(os.environ["PORTS"]):
        if protocol == "TCP":
            kept.append(await asyncio.start_server(lambda reader, writer: writer.close(), host, port))
        else:
            kept.append(await loop.create_datagram_endpoint(Echo, local_addr=(host, port)))
    await asyncio.Event().wait()
asyncio.run(main())
"""

#: Reads a list of targets a line, tries all of them at once, and answers with a list of true and false a line.
TRY = """
import asyncio, json, sys
class Answer(asyncio.DatagramProtocol):
    def __init__(self):
        self.heard = asyncio.get_running_loop().create_future()
    def connection_made(self, transport):
        transport.sendto(b"?")
    def datagram_received(self, data, address):
        self.heard.done() or self.heard.set_result(True)
    def error_received(self, error):
        self.heard.done() or self.heard.set_result(False)
async def reaches(host, port, protocol):
    if protocol == "TCP":
        reader, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    transport, answer = await asyncio.get_running_loop().create_datagram_endpoint(Answer, remote_addr=(host, port))
    try:
        return await answer.heard
    finally:
        transport.close()
async def tried(seconds, target):
    try:
        return await asyncio.wait_for(reaches(*target), seconds)
    except (OSError, asyncio.TimeoutError):
        return False
async def all_of(seconds, targets):
    return await asyncio.gather(*(tried(seconds, target) for target in targets))
for line in sys.stdin:
    print(json.dumps(asyncio.run(all_of(*json.loads(line)))), flush=True)
"""


@dataclasses.dataclass(frozen=True)
class Role:
    """A pod of the stage: in which namespace, with which labels and port names."""

    name: str
    namespace: str
    labels: dict[str, str]
    port_names: dict[str, tuple[str, int]] = dataclasses.field(default_factory=dict)
    host_network: bool = False


NAMESPACES: dict[str, dict[str, str]] = {"red": {"team": "red"}, "blue": {"team": "blue"}, "other": {}}
HOST, CANARY = "host", "canary"
ROLES = (
    Role("front", "red", {"app": "web", "tier": "front"}, {"web": ("TCP", 24700)}),
    Role("back", "red", {"app": "db", "tier": "back"}, {"web": ("TCP", 24701)}),
    Role("plain", "red", {"app": "web"}),
    Role("shop", "blue", {"app": "web", "tier": "back"}, {"web": ("TCP", 24700)}),
    Role("store", "blue", {"app": "db"}, {"data": ("UDP", 24703)}),
    Role(HOST, "other", {"app": "web"}, host_network=True),
    Role(CANARY, "other", {"app": "canary"}),
)
PEERS = tuple(role.name for role in ROLES if role.name != CANARY)
#: The pods that policies select.
SUBJECTS = tuple(name for name in PEERS if name != HOST)


class Cell(t.NamedTuple):
    """One connection that is tried."""

    source: str
    destination: str
    protocol: str
    port: int

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} {self.protocol} {self.port}"


#: The node to itself is no pod's traffic.
CELLS = tuple(
    Cell(source, destination, protocol, port)
    for source in PEERS
    for destination in PEERS
    if not source == destination == HOST
    for protocol, port in PORTS
)


class Prober:
    """A program in a pod that stays and tries connections; one exec for the whole session, whatever policies say."""

    def __init__(self, core: t.Any, namespace: str, pod: str) -> None:
        self._pod = pod
        self._channel = stream(
            core.connect_get_namespaced_pod_exec,
            pod,
            namespace,
            command=["python3", "-c", TRY],
            stdin=True,
            stdout=True,
            stderr=True,
            tty=False,
            _preload_content=False,
        )

    def reaches(self, targets: Sequence[tuple[str, int, str]]) -> list[bool]:
        """Which of the targets (address, port, protocol) answer."""
        self._channel.write_stdin(json.dumps([ANSWER_SECONDS, list(targets)]) + "\n")
        line = self._channel.readline_stdout(timeout=30)
        if not line:
            raise AssertionError(f"the prober in {self._pod} says nothing: {self._channel.read_stderr(timeout=1)}")
        found: list[bool] = json.loads(line)
        return found

    def close(self) -> None:
        """End the program."""
        self._channel.close()


class Stage:
    """The pods, what Kubernetes says of them, and the connections between them.

    Args:
        kubeconfig: path of the cluster's kubeconfig.
        run: what makes the names of this run's namespaces its own.
        image: an image with python3.
        clock: what time is.
    """

    def __init__(self, kubeconfig: str, run: str, image: str, clock: Clock) -> None:
        self._api = kubernetes.config.new_client_from_config(config_file=kubeconfig)
        self._core = kubernetes.client.CoreV1Api(self._api)
        self._networking = kubernetes.client.NetworkingV1Api(self._api)
        self._run, self._image, self._clock = run, image, clock
        self._probers: dict[str, Prober] = {}
        self._swapped = False
        self.objects: list[Body] = []
        self.addresses: dict[str, str] = {}

    def namespace(self, name: str) -> str:
        """The cluster's name of one of ``NAMESPACES``."""
        return f"namzu-truth-{name}-{self._run}"

    def pod(self, name: str) -> str:
        """``namespace/name`` of a pod."""
        return f"{self.namespace(_role(name).namespace)}/{name}"

    def open(self) -> None:
        """Make namespaces and pods and wait until each of them listens."""
        for name, labels in NAMESPACES.items():
            self._core.create_namespace({"metadata": {"name": self.namespace(name), "labels": labels}})
        for name in NAMESPACES:
            self._until(lambda name=name: self._has_account(name), f"no service account in {self.namespace(name)}")
        for role in ROLES:
            self._core.create_namespaced_pod(self.namespace(role.namespace), self._manifest(role))
        for role in ROLES:
            self._until(lambda role=role: self._is_ready(role), f"pod {self.pod(role.name)} is not ready")
        self.objects = [self._plain("Node", item) for item in self._core.list_node().items]
        for name in map(self.namespace, NAMESPACES):
            self.objects.append(self._plain("Namespace", self._core.read_namespace(name)))
            self.objects += [self._plain("Pod", item) for item in self._core.list_namespaced_pod(name).items]
        for role in ROLES:
            self.addresses[role.name] = self._read(role).status.pod_ip
            self._probers[role.name] = Prober(self._core, self.namespace(role.namespace), role.name)

    def close(self) -> None:
        """Delete everything; waits for nothing."""
        for prober in self._probers.values():
            with contextlib.suppress(Exception):
                prober.close()
        for name in NAMESPACES:
            with contextlib.suppress(kubernetes.client.ApiException):
                self._core.delete_namespace(self.namespace(name))
        self._api.rest_client.pool_manager.clear()

    def apply(self, policies: Sequence[Body]) -> float:
        """Make these the only policies, and return after how many seconds the firewall had read them."""
        for name in ("red", "blue"):
            self._networking.delete_collection_namespaced_network_policy(self.namespace(name))
        for policy in policies:
            self._networking.create_namespaced_network_policy(policy["metadata"]["namespace"], policy)
        return self._swap_canary()

    def connections(self) -> dict[Cell, bool]:
        """Try every cell once, all at the same time."""
        with ThreadPoolExecutor(max_workers=len(PEERS)) as workers:
            found = workers.map(self._from, PEERS)
        return {cell: answer for answers in found for cell, answer in answers}

    def _from(self, source: str) -> Iterator[tuple[Cell, bool]]:
        cells = [cell for cell in CELLS if cell.source == source]
        targets = [(self.addresses[cell.destination], cell.port, cell.protocol) for cell in cells]
        return zip(cells, self._probers[source].reaches(targets), strict=True)

    def _swap_canary(self) -> float:
        self._swapped = not self._swapped
        policy = self._canary_policy(CANARY_PORTS[self._swapped])
        namespace = self.namespace("other")
        try:
            self._networking.replace_namespaced_network_policy(CANARY, namespace, policy)
        except kubernetes.client.ApiException as error:
            if error.status != 404:
                raise
            self._networking.create_namespaced_network_policy(namespace, policy)
        began = self._clock.monotonic()
        targets = [(self.addresses[HOST], port, "TCP") for port in CANARY_PORTS]
        wanted = [port == CANARY_PORTS[self._swapped] for port in CANARY_PORTS]
        self._until(
            lambda: self._probers[CANARY].reaches(targets) == wanted,
            "the canary's policy is not enforced. Does this cluster enforce NetworkPolicy? (`up --no-enforcement` "
            "does not.)",
            CONVERGE_SECONDS,
        )
        return self._clock.monotonic() - began

    def _canary_policy(self, port: int) -> Body:
        node = {"ipBlock": {"cidr": f"{self.addresses[HOST]}/32"}}
        return {
            "metadata": {"name": CANARY},
            "spec": {
                "podSelector": {"matchLabels": {"app": CANARY}},
                "policyTypes": ["Egress"],
                "egress": [{"to": [node], "ports": [{"port": port}]}],
            },
        }

    def _manifest(self, role: Role) -> Body:
        ports = [
            {"name": name, "protocol": protocol, "containerPort": port}
            for name, (protocol, port) in role.port_names.items()
        ]
        container = {
            "name": "python",
            "image": self._image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", SERVE],
            "env": [
                {"name": "PORTS", "value": json.dumps(PORTS)},
                {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "ports": ports,
            "readinessProbe": {"tcpSocket": {"port": PORTS[-3][1]}, "periodSeconds": 1},
        }
        return {
            "metadata": {"name": role.name, "labels": role.labels},
            "spec": {
                "containers": [container],
                "hostNetwork": role.host_network,
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
            },
        }

    def _has_account(self, name: str) -> bool:
        return any(
            item.metadata.name == "default"
            for item in self._core.list_namespaced_service_account(self.namespace(name)).items
        )

    def _is_ready(self, role: Role) -> bool:
        conditions = self._read(role).status.conditions or []
        return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)

    def _read(self, role: Role) -> t.Any:
        return self._core.read_namespaced_pod(role.name, self.namespace(role.namespace))

    def _plain(self, kind: str, item: t.Any) -> Body:
        return {"apiVersion": "v1", "kind": kind, **_named(self._api.sanitize_for_serialization(item))}

    def _until(self, condition: t.Callable[[], bool], otherwise: str, seconds: float = READY_SECONDS) -> None:
        deadline = Deadline(seconds, self._clock)
        while not condition():
            if deadline.expired:
                raise AssertionError(f"{otherwise} ({seconds:g} s)")
            deadline.sleep(0.05)


def _role(name: str) -> Role:
    return next(role for role in ROLES if role.name == name)


def _named(body: Body) -> Body:
    # Items of a list come without the two.
    return {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}
