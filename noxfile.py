# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of `make test` and `make cluster-test`: each has a name, is timed, and can be run alone.

    .venv/py313/bin/nox --list
    .venv/py313/bin/nox -s ruff mypy
    .venv/py313/bin/nox -s 'unit(py311)' -- -k deadline

The environments come from requirements/install.py, so nox makes none. A failing step does not stop those after it.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess

import nox

ROOT = pathlib.Path(__file__).parent.resolve()
ENVIRONMENTS = ("py311", "py313")
COLLECTIONS = ROOT / ".venv" / "collections"
# A home for tools that leave things there.
HOME = ROOT / ".cache" / "home"
CORE = "ansible_collections.namzu.sandbox.plugins"

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "none"
nox.options.stop_on_first_error = False


def run(session: nox.Session, program: str, *arguments: str, environment: str = "py313", **variables: str) -> None:
    """Run a program of one of our environments with that environment first on the PATH."""
    programs = ROOT / ".venv" / environment / "bin"
    session.run(str(programs / program), *arguments, env=first_on_path(programs, variables), external=True)


def first_on_path(programs: pathlib.Path, variables: dict[str, str]) -> dict[str, str]:
    """The variables with a folder before all others on the PATH."""
    return {**variables, "PATH": f"{programs}{os.pathsep}{variables.get('PATH', os.environ['PATH'])}"}


@nox.session(tags=["lint", "test"])
def ruff(session: nox.Session) -> None:
    """Lint rules and formatting of all Python."""
    run(session, "ruff", "check", "--quiet")
    run(session, "ruff", "format", "--check", "--quiet")


@nox.session(tags=["lint", "test"])
def mypy(session: nox.Session) -> None:
    """Types of the core, of the glue, of the agent and of the test cluster, strictly."""
    config = (f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}")
    with session.chdir(COLLECTIONS):
        run(session, "mypy", *config, "-p", f"{CORE}.module_utils", "-p", f"{CORE}.plugin_utils")
    run(
        session,
        "mypy",
        *config,
        "noxfile.py",
        "requirements/install.py",
        "tools/cluster",
        "tools/engine",
        "tests/sanity",
    )
    beside = ("-p", "namzu_sandbox.cli", "-m", "namzu_sandbox.inspect_provider")
    run(session, "mypy", *config, *beside, MYPYPATH=str(wheel_source()))
    # In the pod the agent is a folder that Python starts, so its files import each other as top-level modules.
    with session.chdir(ROOT / "roles" / "template" / "files" / "agent"):
        run(session, "mypy", *config, ".")


def wheel_source() -> pathlib.Path:
    """A folder with the package ``namzu_sandbox`` as the wheel has it, of links to its sources."""
    folder = ROOT / ".cache" / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "namzu_sandbox"
    package.mkdir(parents=True)
    sources = [*(ROOT / "plugins" / "module_utils").iterdir(), *(ROOT / "wheel").iterdir()]
    for source in sorted(sources, key=lambda path: "wheel" in path.parts):
        # Of both folders, the wheel has its own __init__.py.
        (package / source.name).unlink(missing_ok=True)
        (package / source.name).symlink_to(source)
    return folder


@nox.session(tags=["lint", "test"])
def layers(session: nox.Session) -> None:
    """The contracts in pyproject.toml: who may import whom."""
    run(session, "lint-imports", "--no-logo", PYTHONPATH=str(COLLECTIONS))


@nox.session(tags=["lint", "test"])
def licences(session: nox.Session) -> None:
    """Every file says its licence, and every licence is here."""
    run(session, "reuse", "lint", "--quiet")


@nox.session(name="ansible-lint", tags=["lint", "test"])
def ansible_lint(session: nox.Session) -> None:
    """Roles and playbooks, profile production."""
    run(session, "ansible-lint", "--offline", "--strict", "--nocolor", "-q", HOME=str(HOME))


@nox.session(tags=["lint", "test"])
def changelog(session: nox.Session) -> None:
    """Changelog fragments."""
    run(session, "antsibull-changelog", "lint")


@nox.session(tags=["lint", "test"])
def docs(session: nox.Session) -> None:
    """The documentation of every module, plugin and role renders, and its links lead somewhere."""
    HOME.mkdir(parents=True, exist_ok=True)
    run(session, "antsibull-docs", "lint-collection-docs", "--plugin-docs", str(ROOT), HOME=str(HOME))


@nox.session(tags=["lint", "test"])
def importer(session: nox.Session) -> None:
    """What Galaxy says to the built collection: nothing. The lint and the docs are sessions of their own."""
    folder = ROOT / ".cache" / "importer"
    shutil.rmtree(folder, ignore_errors=True)
    run(session, "ansible-galaxy", "collection", "build", "--output-path", str(folder), HOME=str(HOME))
    (built,) = folder.glob("*.tar.gz")
    programs = ROOT / ".venv" / "importer" / "bin"
    left_out = {f"GALAXY_IMPORTER_RUN_{tool}": "false" for tool in ("ANSIBLE_DOC", "ANSIBLE_LINT")}
    program = (str(programs / "python"), "-m", "galaxy_importer.main", str(built))
    with session.chdir(folder):
        environ = first_on_path(programs, {"HOME": str(HOME), **left_out})
        said = str(session.run(*program, env=environ, external=True, silent=True))
    # It goes on after a warning, and ends well.
    if any(line.startswith(("WARNING", "ERROR")) for line in said.splitlines()):
        session.error(said)


@nox.session(tags=["unit", "test"])
@nox.parametrize("environment", ENVIRONMENTS, ids=ENVIRONMENTS)
def unit(session: nox.Session, environment: str) -> None:
    """Unit and fault tests; on the older Python those that depend on it."""
    chosen = session.posargs or (("-m", "not one_python") if environment == "py311" else ())
    # One more than there usually are processors: many of these tests wait for a process to start.
    run(session, "pytest", "--numprocesses=3", *chosen, environment=environment)


@nox.session(tags=["sanity", "test"])
def sanity(session: nox.Session) -> None:
    """ansible-test sanity of both, nothing ignored; side by side, for most of its tests use one processor."""

    def run_with(environment: str) -> subprocess.CompletedProcess[str]:
        programs = ROOT / ".venv" / environment / "bin"
        command = [str(programs / "python"), "tests/sanity/run.py", *session.posargs]
        environ = first_on_path(programs, dict(os.environ))
        return subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
        )

    with concurrent.futures.ThreadPoolExecutor() as threads:
        ran = dict(zip(ENVIRONMENTS, threads.map(run_with, ENVIRONMENTS), strict=True))
    for environment, done in ran.items():
        session.log(f"ansible-test sanity, {environment}:\n{done.stdout}")
    failed = [environment for environment, done in ran.items() if done.returncode != 0]
    if failed:
        session.error(f"ansible-test sanity failed: {', '.join(failed)}")


@nox.session(tags=["container", "test"])
def container(session: nox.Session) -> None:
    """The container backend on a private Docker engine or that of DOCKER_HOST, and on Podman where it is installed."""
    if os.environ.get("DOCKER_HOST"):
        run(session, "pytest", "tests/container", *session.posargs)
        return
    # Each worker has an engine of its own. The first one installs docker.io and makes the image.
    engine = ("-m", "tools.engine")
    python = str(ROOT / ".venv" / "py313" / "bin" / "python")
    was_up = subprocess.run([python, *engine, "status"], cwd=ROOT, capture_output=True, check=False).returncode == 0
    run(session, "python", *engine, "up")
    try:
        chosen = session.posargs or ["tests/container", "--numprocesses=2", "--dist=loadfile"]
        run(session, "pytest", *chosen)
    finally:
        if not was_up:
            run(session, "python", *engine, "down")


@nox.session(tags=["lifecycle", "cluster-test"])
def lifecycle(session: nox.Session) -> None:
    """The local cluster comes up, survives crashes and leaves nothing behind; the product survives its outages."""
    if os.environ.get("NAMZU_CLUSTER") == "existing":
        session.skip("the cluster is not ours to start")
    run(session, "pytest", "tools/cluster/tests/lifecycle", "tests/outages", *session.posargs)


@nox.session(tags=["integration", "cluster-test"])
@nox.parametrize("environment", ENVIRONMENTS, ids=ENVIRONMENTS)
def integration(session: nox.Session, environment: str) -> None:
    """Every verb, plugin and role on a cluster; on the older Ansible what depends on Ansible alone.

    Most of the time is waiting for pods, so files go side by side.
    """
    marked = ["-m", "each_ansible"] if environment == "py311" else []
    chosen = session.posargs or ["tests/integration", *marked, "--numprocesses=3", "--dist=loadfile"]
    run(session, "pytest", *chosen, environment=environment, **cluster(session))


@nox.session(tags=["integration", "cluster-test"])
def molecule(session: nox.Session) -> None:
    """The whole life of a site, as a team's own pipeline would run it."""
    HOME.mkdir(parents=True, exist_ok=True)
    run(session, "molecule", "test", *session.posargs, HOME=str(HOME), **cluster(session))


@nox.session(tags=["integration", "cluster-test"])
def truth(session: nox.Session) -> None:
    """What the boundary library says, against what connections do on a cluster that enforces policies."""
    run(session, "pytest", "tests/truth", *session.posargs, **cluster(session))


@nox.session(tags=["bench", "cluster-test"])
def bench(session: nox.Session) -> None:
    """What the benchmarks promise, as tests."""
    run(session, "pytest", "tests/bench", *session.posargs, **cluster(session))


@nox.session(name="cluster-down", tags=["integration", "bench", "cluster-test"])
def cluster_down(session: nox.Session) -> None:
    """Take down the cluster that this run started; one that was there before stays."""
    if not started_here:
        session.skip("this run started no cluster")
    run(session, "python", "-m", "tools.cluster", "down")


started_here: list[bool] = []


def cluster(session: nox.Session) -> dict[str, str]:
    """The variables that lead to the cluster, which is started when none is running."""
    command = f"{shlex.quote(str(ROOT / '.venv' / 'py313' / 'bin' / 'python'))} -m tools.cluster"
    if subprocess.run(f"{command} status", shell=True, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        started_here.append(True)
        run(session, "python", "-m", "tools.cluster", "up")
    # The lines are meant for a shell, so a shell reads them.
    evaluate = f'set -e; exports="$({command} env)"; eval "$exports"; env --null'
    exported = subprocess.run(evaluate, shell=True, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    variables = dict(line.split("=", 1) for line in exported.split("\0") if line)
    return {name: value for name, value in variables.items() if os.environ.get(name) != value}
