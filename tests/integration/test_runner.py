# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project of docs/guides/awx.md as AWX runs it.

That is ansible-runner, a private data directory, and AWX's Kubernetes credential. No home, no terminal, no kubeconfig,
and the token of a claimant. Under ansible-navigator the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import re
import signal
import subprocess
import sys
import uuid

import pytest
import yaml

from .conftest import ADDRESS, Body, Kube, Play, Pool

PROGRAMS = pathlib.Path(sys.executable).parent
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "awx.md"
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"

JOB_SECONDS = 120.0
#: Seconds after a cancel: ansible-runner looks for it once a second here, and the keeper has two.
CANCEL_SECONDS = 10.0


@dataclasses.dataclass(frozen=True)
class Job:
    """How a job ended, and everything that ansible-runner would hand to AWX."""

    rc: int
    output: str
    events: list[Body]

    def __getitem__(self, task: str) -> Body:
        data = [event.get("event_data", {}) for event in self.events]
        found = [one["res"] for one in data if one.get("task") == task and "res" in one]
        assert found, self.output
        return dict(found[-1])


class Runner:
    """A private data directory, and what AWX does with it."""

    def __init__(self, folder: pathlib.Path, claimant: Body) -> None:
        self.folder = folder
        self.project = folder / "project"
        self._token = claimant["api_key"]
        env = folder / "env"
        for made in (self.project, env):
            made.mkdir()
        for name, content in files_of_the_page().items():
            (self.project / name).write_text(content)
        authority = env / "authority"
        authority.write_bytes(pathlib.Path(claimant["ca_cert"]).read_bytes())
        credential = {
            "K8S_AUTH_HOST": claimant["host"],
            "K8S_AUTH_API_KEY": claimant["api_key"],
            "K8S_AUTH_VERIFY_SSL": "True",
            "K8S_AUTH_SSL_CA_CERT": str(authority),
        }
        (env / "envvars").write_text(json.dumps(credential))
        (env / "settings").write_text(json.dumps({"pexpect_timeout": 1, "suppress_ansible_output": True}))

    @property
    def environment(self) -> dict[str, str]:
        """Of the process: a home that nobody can make, and where these programs may keep their temporary files."""
        temporary = str(self.folder / "tmp")
        homes = {"HOME": "/proc/nobody", "ANSIBLE_HOME": temporary, "XDG_CACHE_HOME": temporary}
        return {"PATH": f"{PROGRAMS}:/usr/bin:/bin", **homes}

    def command(self, playbook: str, job: str, variables: Body | None) -> list[str]:
        (self.folder / "env" / "extravars").write_text(json.dumps(variables or {}))
        return [str(PROGRAMS / "ansible-runner"), "run", str(self.folder), "-p", playbook, "-i", job]

    def __call__(self, playbook: str, variables: Body | None = None) -> Job:
        """Run a playbook of the project to its end."""
        job = uuid.uuid4().hex
        without_terminal(self.command(playbook, job, variables), self.environment, self.project)
        return self.read(job)

    def read(self, job: str) -> Job:
        """What ansible-runner has kept of a job. The token may not be in it."""
        artifacts = self.folder / "artifacts" / job
        output = (artifacts / "stdout").read_text()
        written = [path.read_text() for path in (artifacts / "job_events").glob("*.json")]
        assert self._token not in output + "".join(written)
        events = sorted((json.loads(text) for text in written), key=lambda event: event["counter"])
        return Job(int((artifacts / "rc").read_text()), output, events)


def files_of_the_page() -> dict[str, str]:
    """The files that the page shows, by the name in their first line."""
    blocks = re.findall(r"^```\w+\n# ([\w.-]+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {name: content for name, content in blocks if name != "execution-environment.yml"}


def without_terminal(
    command: list[str], environment: dict[str, str], folder: pathlib.Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        timeout=JOB_SECONDS,
        check=False,
    )


@pytest.fixture
def runner(tmp_path: pathlib.Path, claimant: Body) -> Runner:
    return Runner(tmp_path, claimant)


def test_job_that_waits_for_capacity_runs_in_a_sandbox_and_gives_it_back(runner, pool: Pool, kube: Kube) -> None:
    labelled = {"namespace": pool.namespace, "label_selector": "job=runner"}
    tasks = [
        {"name": "work", "ansible.builtin.raw": "echo $((6*7))"},
        {"name": "look", "namzu.sandbox.sandbox_info": labelled, "delegate_to": "localhost"},
    ]
    (runner.project / "work.yml").write_text(yaml.safe_dump(tasks))
    (runner.project / "both.yml").write_text("- import_playbook: capacity.yml\n- import_playbook: run.yml\n")
    gate = {"gate_namespace": pool.namespace, "gate_warm_pool": pool.name}
    run = {"run_namespace": pool.namespace, "run_warm_pool": pool.name, "run_agent_address": ADDRESS}
    work = {"run_tasks": str(runner.project / "work.yml"), "run_labels": {"job": "runner"}}
    job = runner("both.yml", {**gate, **run, **work})
    assert job.rc == 0, job.output
    assert job["work"]["stdout"].strip() == "42"
    (name,) = [sandbox["name"] for sandbox in job["look"]["sandboxes"]]
    assert name == job["Acquire a sandbox"]["sandbox"]["name"]
    kube.until_gone(f"{CLAIMS.format(pool.namespace)}/{name}")


def test_job_gives_back_what_another_one_has_left(runner, play: Play, pool: Pool, kube: Kube) -> None:
    left = {**pool.access, "warm_pool": pool.name, "ttl": "10m", "name": "left-behind", "labels": {"job": "crashed"}}
    play([{"namzu.sandbox.sandbox": left}])
    job = runner("recover.yml", {"recover_namespace": pool.namespace, "recover_selector": "job=crashed"})
    assert job.rc == 0, job.output
    assert job["Release them"]["released"] == ["left-behind"]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/left-behind") is None


def test_jobs_that_only_look(runner, pool: Pool) -> None:
    (runner.project / "both.yml").write_text("- import_playbook: retention.yml\n- import_playbook: audit.yml\n")
    audit = {"audit_namespace": pool.namespace, "audit_report": "report.html", "audit_egress": {"kind": "no_network"}}
    job = runner("both.yml", {"retention_namespace": pool.namespace, **audit})
    assert job.rc == 0, job.output
    assert job["List the workspaces"]["workspaces"] == []
    assert job["Compute what each pod may reach and what may reach it"]["holds"]
    assert f"<h1>{pool.namespace}</h1>" in (runner.project / "report.html").read_text()


def held(pool: Pool, name: str, then: list[Body]) -> str:
    """A play that takes a sandbox with the shortest lease, to be released at the end, and goes on."""
    options = {**pool.access, "warm_pool": pool.name, "name": name, "ttl": 10, "release_on_end": True}
    acquire = {"name": "acquire", "namzu.sandbox.sandbox": options, "register": "acquired"}
    return yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [acquire, *then]}])


def until_renewed(pool: Pool) -> Body:
    """Looks until the lease ends later than it did."""
    ends = "seen.sandboxes | selectattr('name', 'equalto', acquired.sandbox.name) | map(attribute='expires_at') | first"
    return {
        "name": "see it renewed",
        "namzu.sandbox.sandbox_info": {"namespace": pool.namespace},
        "register": "seen",
        "until": f"({ends}) > acquired.sandbox.expires_at",
        "delay": 1,
        "retries": 15,
    }


def test_leases_are_kept_under_runner_and_under_navigator_and_given_back_at_the_end(
    runner, pool: Pool, kube: Kube
) -> None:
    for name in ("by-runner", "by-navigator"):
        (runner.project / f"{name}.yml").write_text(held(pool, name, [until_renewed(pool)]))
    navigator = [str(PROGRAMS / "ansible-navigator"), "run", "by-navigator.yml", "--mode", "stdout"]
    bare = ["--execution-environment", "false", "--playbook-artifact-enable", "false"]
    credential = json.loads((runner.folder / "env" / "envvars").read_text())
    with subprocess.Popen(
        [*navigator, *bare, "--log-file", str(runner.folder / "navigator.log")],
        cwd=runner.project,
        env={**runner.environment, **credential},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as process:
        job = runner("by-runner.yml")
        said, _nothing = process.communicate(timeout=JOB_SECONDS)
    assert (job.rc, process.returncode) == (0, 0), job.output + said
    for output, name in ((job.output, "by-runner"), (said, "by-navigator")):
        assert re.search(r"lease_keeper: 1 sandbox held, [1-9] renewals?, 1 released at the end", output), output
        assert kube.get(f"{CLAIMS.format(pool.namespace)}/{name}") is None


def test_canceled_job_gives_back_what_it_holds(runner, pool: Pool, kube: Kube) -> None:
    name = "canceled"
    (runner.project / "long.yml").write_text(held(pool, name, [{"ansible.builtin.wait_for": {"timeout": 100}}]))
    claim = f"{CLAIMS.format(pool.namespace)}/{name}"
    with contextlib.ExitStack() as ends:
        process = subprocess.Popen(
            runner.command("long.yml", "canceled", None),
            cwd=runner.project,
            env=runner.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        ends.callback(process.wait)
        ends.callback(process.kill)
        kube.until(claim, ready)
        process.send_signal(signal.SIGTERM)
        kube.until_gone(claim, CANCEL_SECONDS)
        process.wait(JOB_SECONDS)
    assert (runner.folder / "artifacts" / "canceled" / "status").read_text() == "canceled"


def ready(body: Body | None) -> bool:
    conditions = ((body or {}).get("status") or {}).get("conditions") or []
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
