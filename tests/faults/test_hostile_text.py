# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a terminal and a result receive when everything outside sends control characters, line breaks and megabytes."""

from __future__ import annotations

import functools
import importlib
import json
import math
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.kubeconfig import login_from_kubeconfig
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front import verbs
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Result, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.text import DATA_FIELDS, MAXIMUM_MESSAGE

from ..unit.front.playing import access, play, present
from .fake.cluster import FakeCluster
from .fake.controller import NAMESPACE, POOL
from .fake.plan import Fault, How

MODULES = pathlib.Path(__file__).parents[2] / "plugins" / "modules"

TEXTS = {
    "escapes": "\x1b[2J\x1b[1;1Hfatal: [db1]: FAILED!\x07\x9b31m",
    "lines": "no\r\nTASK [forged] ****\nok: [db1]\u2028changed: [db2]\x85\x0b\x0c",
    "bidirectional": "\u202etxt.exe\u2066\u200f\u200b\ufeff",
    "megabytes": "quite long\n" * 300_000,
    "surrogates": "\udcff\ud800 name",
    "unassigned": "\ue000\U000e0041\uffff\x00",
}

#: The options with which each verb reaches the API server.
OPTIONS: dict[str, dict[str, t.Any]] = {
    "boundary_check": {"pod": "a"},
    "capacity_info": {"warm_pool": POOL},
    "sandbox": {"name": "a", "warm_pool": POOL},
    "sandbox_egress": {"name": "a", "egress": {"kind": "no_network"}},
    "sandbox_exec": {"name": "a", "argv": ["true"]},
    "sandbox_files": {"name": "a", "src": ".", "dest": "/tmp", "direction": "download"},
    "sandbox_info": {},
    "sandbox_lease": {"name": "a", "remaining": "1h"},
    "sandbox_session": {"name": "a", "session": "s", "argv": ["true"]},
    "sandbox_session_info": {"name": "a"},
    "workspace": {"workspace_id": "w", "template": POOL},
    "workspace_info": {},
}


def every_text(value: t.Any) -> t.Iterator[str]:
    """Every text of a result that is not the user's own data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield str(key)
            if key not in DATA_FIELDS:
                yield from every_text(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from every_text(one)


def assert_clean(result: t.Any) -> None:
    for text in every_text(result):
        assert text.isprintable(), text[:300]
        assert len(text) <= MAXIMUM_MESSAGE


def verb_named(name: str) -> Verb:
    return t.cast("Verb", importlib.import_module(f"{verbs.__name__}.{name}").VERB)


def run(cluster: FakeCluster, verb_name: str, /, **options: t.Any) -> Result:
    verb = verb_named(verb_name)
    validated = ArgumentSpecValidator(verb.options, **verb.constraints).validate({**access(cluster), **options})
    assert not validated.error_messages
    return perform(verb, validated.validated_parameters, Context(check_mode=False, environ={}))


def test_every_verb_is_tried() -> None:
    assert sorted(OPTIONS) == sorted(path.stem for path in MODULES.glob("*.py") if path.stem != "__init__")


NOT_FROM_KUBERNETES = [b"\xff\xfe\x1b[2J<html>\n" * 1000, b'{"kind": "Status", "message": "\xff\x1b"}']


@pytest.mark.parametrize("verb", OPTIONS)
def test_refusal_of_the_api_server(cluster: FakeCluster, verb: str) -> None:
    faults = [Fault(How.STATUS, 403, message=text) for text in TEXTS.values()]
    for fault in [*faults, *(Fault(How.STATUS, 403, body=body) for body in NOT_FROM_KUBERNETES)]:
        cluster.plan.clear()
        cluster.plan.add(fault, times=math.inf)
        result = run(cluster, verb, **OPTIONS[verb])
        assert result["failed"]
        assert_clean(result)


def ended(text: str) -> dict[str, t.Any]:
    """The status of a pod whose container and scheduler have that to say."""
    terminated = {"exitCode": 137, "reason": text, "message": text}
    return {
        "phase": "Running",
        "containerStatuses": [
            {"name": text, "image": text, "ready": False, "restartCount": 3, "lastState": {"terminated": terminated}}
        ],
    }


def blocked(reason: str, text: str) -> dict[str, t.Any]:
    waiting = {"reason": reason, "message": text}
    return {"phase": "Pending", "containerStatuses": [{"name": text, "image": text, "state": {"waiting": waiting}}]}


def unscheduled(text: str) -> dict[str, t.Any]:
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    return {"phase": "Pending", "conditions": [refusal]}


PODS: dict[str, t.Callable[[str], dict[str, t.Any]]] = {
    "ended": ended,
    "image": functools.partial(blocked, "ImagePullBackOff"),
    "unscheduled": unscheduled,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_controller_and_pod(cluster: FakeCluster, pod: t.Callable[[str], dict[str, t.Any]], text: str) -> None:
    cluster.controller.ready = {"type": "Ready", "status": "False", "reason": text, "message": text}
    cluster.store.create("pods", NAMESPACE, {"metadata": {"name": "member"}, "status": pod(text)})
    cluster.store.create(
        "sandboxclaims",
        NAMESPACE,
        {
            "metadata": {"name": "a", "annotations": {"note": text}},
            "spec": {"warmPoolRef": {"name": POOL}},
            "status": {"sandbox": {"name": "member"}, "conditions": [cluster.controller.ready]},
        },
    )
    cluster.controller.settle()
    listed = run(cluster, "sandbox_info")
    assert [one["name"] for one in listed["sandboxes"]] == ["a"]
    assert_clean(listed)
    for verb in ("sandbox_exec", "sandbox_session_info", "sandbox_lease"):
        assert_clean(run(cluster, verb, **OPTIONS[verb]))
    refused = run(cluster, "sandbox", name="b", warm_pool=POOL, ready_timeout="1s")
    assert refused["failed"]
    assert_clean(refused)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_kubeconfig_and_its_file_name(tmp_path: pathlib.Path, text: str) -> None:
    name = text[:60].replace("\x00", "").replace("/", "").replace("\ud800", "")
    path = tmp_path / name
    for given in ({"contexts": [], "current-context": text}, {"clusters": [{"name": text, "cluster": 3}]}):
        path.write_text(json.dumps(given))
        for config in (given, str(path)):
            with pytest.raises(SandboxError) as caught:
                login_from_kubeconfig(t.cast("t.Any", config))
            assert str(caught.value).isprintable()
            assert len(str(caught.value)) <= MAXIMUM_MESSAGE


@pytest.mark.parametrize("text", ["escapes", "lines", "bidirectional", "megabytes"])
def test_terminal_of_a_play(cluster: FakeCluster, tmp_path: pathlib.Path, text: str) -> None:
    cluster.plan.add(Fault(How.STATUS, 403, message=TEXTS[text]), times=math.inf)
    tasks = [{"namzu.sandbox.sandbox": present(cluster, name="a")}]
    for connection in ("local", "elsewhere"):
        played = play(tmp_path / connection, tasks, connection=connection)
        assert played.results[0]["failed"]
        assert_clean(played.results[0]["msg"])
        assert_terminal_is_left_alone(played.output)


@pytest.mark.parametrize("text", ["escapes", "lines", "bidirectional", "megabytes"])
def test_terminal_of_an_inventory(cluster: FakeCluster, tmp_path: pathlib.Path, text: str) -> None:
    cluster.plan.add(Fault(How.STATUS, 403, message=TEXTS[text]), times=math.inf)
    config = {"plugin": "namzu.sandbox.sandboxes", **access(cluster)}
    (tmp_path / "a.sandboxes.yml").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "inventory", "-i", "a.sandboxes.yml", "--list"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "true", "LANG": "C.UTF-8"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    output = (done.stdout + done.stderr).decode()
    assert "403" in output
    assert_terminal_is_left_alone(output)


def assert_terminal_is_left_alone(output: str) -> None:
    """Nothing but printable lines, none of which begins as the text wanted, and not many of them."""
    for line in output.split("\n"):
        assert line.isprintable(), line[:300]
        assert not line.startswith(("TASK [forged]", "ok: [db1]", "changed: [db2]", "fatal: [db1]", "quite long"))
    assert len(output) < 8 * MAXIMUM_MESSAGE
