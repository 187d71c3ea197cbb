# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every integration test stands on: a cluster, namespaces that go away, plays, and a pool to take sandboxes from.

A test takes the fixtures as arguments; there is nothing to import from here:

    def test_acquire(play, pool):
        result = play([{"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": pool.name, **pool.access}}])
        assert result["acquire"]["sandbox"]["warm"]

- ``play(tasks, ...)`` runs tasks on localhost; ``play.playbook(name, ...)`` runs a playbook of the collection.
- ``pool``: a hardened template and a warm pool, made once a session by the roles. Release what you take from it.
- ``namespace``: a fresh one for this test. ``kube``: reads and writes that do not go through the code under test.
- ``ground``: workspaces, with the rights of a claimant and disks of the cluster's default StorageClass.
- ``claimant``: options of a service account that holds the rules of role ``claimant`` in the pool's namespace.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t
import uuid

import kubernetes
import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from .workspace_ground import ground  # noqa: F401 - a fixture  # pylint: disable=unused-import

Body = dict[str, t.Any]

#: The image of tools/cluster, whatever Python it has; any image with python3 serves.
IMAGE = os.environ.get("NAMZU_TEST_IMAGE") or "localhost/namzu/python:3"
#: How the tests reach the agent: a machine of the cluster has a route to its pods.
ADDRESS = os.environ.get("NAMZU_TEST_AGENT_ADDRESS") or "pod_ip"

PLAY_SECONDS = 300.0
GONE_SECONDS = 120.0
POLL = 0.1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need a cluster."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


class Kube:
    """Plain requests to the API server, as the administrator of the kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        self._api = kubernetes.config.new_client_from_config(config_file=kubeconfig)
        self._dynamic = DynamicClient(self._api)

    @property
    def server(self) -> str:
        return str(self._api.configuration.host)

    @property
    def ca_cert(self) -> str:
        """Path of the certificate authority's file."""
        return str(self._api.configuration.ssl_ca_cert)

    def request(self, method: str, path: str, body: Body | None = None) -> Body | None:
        """The answer as a dict; None for 404. PATCH is a merge patch."""
        options = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
        try:
            answer = self._dynamic.request(method, path, body=body, serialize=False, **options)
        except NotFoundError:
            return None
        return dict(json.loads(answer.data))

    def get(self, path: str) -> Body | None:
        """One object or list, None when it is not there."""
        return self.request("GET", path)

    def items(self, path: str) -> list[Body]:
        """The objects of a list."""
        return list((self.get(path) or {}).get("items") or [])

    def delete(self, path: str) -> None:
        """Delete, also what is gone already."""
        self.request("DELETE", path)

    def until(self, path: str, condition: t.Callable[[Body | None], t.Any], seconds: float = GONE_SECONDS) -> t.Any:
        """Read again and again until the condition says something true; that is returned."""
        deadline = time.monotonic() + seconds
        while True:
            body = self.get(path)
            said = condition(body)
            if said:
                return said
            if time.monotonic() >= deadline:
                pytest.fail(f"{path} did not become what the test waits for within {seconds:g} s. Last seen:\n{body}")
            time.sleep(POLL)

    def until_gone(self, path: str, seconds: float = GONE_SECONDS) -> None:
        """Wait until the object is not there."""
        self.until(path, lambda body: body is None, seconds)

    def close(self) -> None:
        """Close all connections."""
        self._api.rest_client.pool_manager.clear()
        with contextlib.suppress(AttributeError):
            self._api.close()


@dataclasses.dataclass(frozen=True)
class Played:
    """How a play ended.

    ``played["task name"]`` is the result of the last task of that name, with or without the name of its role.
    """

    rc: int
    tasks: list[tuple[str, Body]]
    changed: int
    output: str

    def __getitem__(self, name: str) -> Body:
        found = [result for task, result in self.tasks if name in (task, task.partition(" : ")[2])]
        assert found, f"no task {name!r} ran; there were: {[task for task, _result in self.tasks]}"
        return found[-1]

    @property
    def failures(self) -> list[Body]:
        """The results of the tasks that failed."""
        return [result for _task, result in self.tasks if result.get("failed")]

    @property
    def changes(self) -> list[str]:
        """The names of the tasks that changed something."""
        return [task for task, result in self.tasks if result.get("changed")]


class Play:
    """Runs ansible-playbook of this very Python environment."""

    def __init__(self, kubeconfig: str, folder: pathlib.Path) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        # An empty one, so that neither this clone's nor the machine's has a say.
        self._config = folder / "ansible.cfg"
        self._config.touch()

    def __call__(
        self,
        tasks: list[Body],
        *,
        variables: Body | None = None,
        check: bool = False,
        diff: bool = False,
        environment: dict[str, str] | None = None,
        may_fail: bool = False,
        **play: t.Any,
    ) -> Played:
        """Run tasks on localhost.

        Args:
            tasks: as they stand in a play.
            variables: the play's variables.
            environment: environment variables of ansible-playbook; an empty value takes one away.
            may_fail: whether the caller looks at failures itself.
            play: further keywords of the play (``module_defaults``, ``collections``, …).
        """
        header = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables or {}}
        file = self._folder / f"play-{uuid.uuid4().hex}.yml"
        file.write_text(yaml.safe_dump([{**header, **play, "tasks": tasks}], sort_keys=False))
        return self.playbook(str(file), check=check, diff=diff, environment=environment, may_fail=may_fail)

    def role(self, name: str, *, check: bool = False, may_fail: bool = False, **variables: t.Any) -> Played:
        """Run one role of the collection."""
        task = {"name": name, "ansible.builtin.include_role": {"name": f"namzu.sandbox.{name}"}}
        return self([task], variables=variables, check=check, may_fail=may_fail)

    def playbook(
        self,
        name: str,
        *,
        variables: Body | None = None,
        check: bool = False,
        diff: bool = False,
        environment: dict[str, str] | None = None,
        may_fail: bool = False,
    ) -> Played:
        """Run a playbook: a path, or ``namzu.sandbox.<name>`` for one of the collection."""
        finished = self.command(
            name,
            *(["--check"] if check else []),
            *(["--diff"] if diff else []),
            *(["--extra-vars", json.dumps(variables)] if variables else []),
            environment={"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", **(environment or {})},
        )
        played = read_played(finished)
        if not may_fail:
            assert played.rc == 0, (
                f"{name} ended with {played.rc}:\n{json.dumps(played.failures, indent=1)}\n{played.output}"
            )
        return played

    def command(self, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook as a person does, without a parser for what it prints."""
        program = pathlib.Path(sys.executable).parent / "ansible-playbook"
        ours = {
            "ANSIBLE_CONFIG": str(self._config),
            "ANSIBLE_HOME": str(self._folder / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "KUBECONFIG": self._kubeconfig,
            **(environment or {}),
        }
        variables = {key: value for key, value in {**os.environ, **ours}.items() if value}
        return subprocess.run(
            [str(program), *arguments],
            cwd=self._folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PLAY_SECONDS,
            check=False,
        )


def read_played(finished: subprocess.CompletedProcess[str]) -> Played:
    """The JSON callback's words; whatever stands before and after them is kept as output."""
    begin = finished.stdout.find("{")
    try:
        said, _end = json.JSONDecoder().raw_decode(finished.stdout[max(begin, 0) :])
    except ValueError:
        said = {"plays": [], "stats": {}}
    tasks = [
        (task["task"]["name"], result)
        for play in said["plays"]
        for task in play["tasks"]
        for result in task["hosts"].values()
    ]
    changed = sum(host["changed"] for host in said["stats"].values())
    output = finished.stderr if said["plays"] else finished.stdout + finished.stderr
    return Played(finished.returncode, tasks, changed, output)


@dataclasses.dataclass(frozen=True)
class Pool:
    """A warm pool with its template, and the options with which a task uses it."""

    namespace: str
    name: str
    template: str
    access: Body = dataclasses.field(repr=False)


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    """The kubeconfig of the cluster under test."""
    named = os.environ.get("KUBECONFIG", "")
    if not pathlib.Path(named).is_file():
        pytest.fail('KUBECONFIG names no file. Start a cluster first: make up && eval "$(make -s env)"')
    return named


@pytest.fixture(scope="session")
def kube(kubeconfig: str) -> t.Iterator[Kube]:
    """Requests beside the code under test."""
    made = Kube(kubeconfig)
    yield made
    made.close()


@pytest.fixture(scope="session")
def play(kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """The runner of plays."""
    return Play(kubeconfig, tmp_path_factory.mktemp("plays"))


@pytest.fixture(scope="session")
def new_namespace(kube: Kube) -> t.Iterator[t.Callable[[], str]]:
    """Makes names for namespaces; whatever was made under them is deleted when the session ends."""
    names: list[str] = []

    def make() -> str:
        names.append(f"namzu-test-{uuid.uuid4().hex[:8]}")
        return names[-1]

    yield make
    for name in names:
        kube.delete(f"/api/v1/namespaces/{name}")
    for name in names:
        kube.until_gone(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace_name(kube: Kube, new_namespace: t.Callable[[], str]) -> t.Iterator[str]:
    """A name that no namespace has yet; what the test makes of it begins to go when the test ends."""
    name = new_namespace()
    yield name
    kube.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(kube: Kube, namespace_name: str) -> str:
    """A fresh, empty namespace."""
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace_name}})
    return namespace_name


@pytest.fixture(scope="session")
def image() -> str:
    """An image with python3 that the cluster can start."""
    return IMAGE


@pytest.fixture(scope="session")
def pool(play: Play, new_namespace: t.Callable[[], str]) -> Pool:
    """A warm pool of two ready members with a hardened template, made by the collection's own roles."""
    namespace = new_namespace()
    names = {
        "namespace_name": namespace,
        "template_namespace": namespace,
        "template_name": "python",
        "template_image": IMAGE,
        "boundary_namespace": namespace,
        "boundary_template": "python",
        "warm_pool_namespace": namespace,
        "warm_pool_name": "python",
        "warm_pool_template": "python",
        "warm_pool_replicas": 2,
        "warm_pool_wait_for": 2,
    }
    roles = ("namespace", "template", "boundary", "warm_pool")
    play([{"ansible.builtin.include_role": {"name": f"namzu.sandbox.{role}"}} for role in roles], variables=names)
    return Pool(namespace, "python", "python", access={"namespace": namespace, "agent": {"address": ADDRESS}})


@pytest.fixture(scope="session")
def claimant(play: Play, kube: Kube, pool: Pool) -> Body:
    """Access options of a service account that may do what role ``claimant`` grants, and nothing else."""
    play.role("claimant", claimant_namespace=pool.namespace, claimant_name="tester")
    path = f"/api/v1/namespaces/{pool.namespace}/serviceaccounts/tester/token"
    token = kube.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    assert token is not None
    return {"host": kube.server, "api_key": token["status"]["token"], "ca_cert": kube.ca_cert}
