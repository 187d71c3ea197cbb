# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a name to an agent: asked once a run, the same pod for the whole run, and never another one in silence."""

from __future__ import annotations

import socket
import stat
import time

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import portforward
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import ObjectRef
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestTimeoutError, GuestUnreachableError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import ReplacedError
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.cache import Memory
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.link import HEARD_SECONDS

from ....faults.fake.agent import POD_UID
from ....faults.fake.clock import SkippingClock
from ...guest.running_agent import RunningAgent
from .conftest import NAME, NEXT_POD_UID, Lab


def say(agent: Agent, word: str) -> bytes:
    return agent.execute(["echo", word], deadline=Deadline(20.0)).stdout


def test_the_api_server_is_asked_once_for_all_processes_of_a_run(lab: Lab, agent: RunningAgent) -> None:
    assert lab.link().call(lambda one: say(one, "first")) == b"first\n"
    asked = lab.asked
    assert asked > 0
    for number in range(20):
        word = f"task {number}"
        assert lab.link().call(lambda one, word=word: say(one, word)) == f"{word}\n".encode()
    assert lab.asked == asked


def test_the_agent_has_the_heartbeat_of_the_target(lab: Lab, agent: RunningAgent) -> None:
    assert lab.link(heartbeat=0.5).call(lambda one: one.heartbeat) == 0.5


def test_an_agent_is_asked_before_work_is_sent_only_when_it_was_not_heard_from_for_a_while(
    lab: Lab, agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    greetings: list[Agent] = []
    ask = Agent.healthz
    monkeypatch.setattr(Agent, "healthz", lambda one, deadline: greetings.append(one) or ask(one, deadline))
    clock = SkippingClock()
    link = lab.link(clock)
    for word in ("one", "two"):
        link.call(lambda one, word=word: say(one, word))
    assert len(greetings) == 1
    clock.sleep(HEARD_SECONDS)
    link.call(lambda one: say(one, "three"))
    assert len(greetings) == 2


def test_an_address_that_gave_no_answer_is_not_asked_again_before_it_is_looked_for(
    lab: Lab, agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = lab.link()
    link.open()
    asked = lab.asked
    seen: list[int] = []
    ask = Agent.healthz
    monkeypatch.setattr(Agent, "healthz", lambda one, deadline: seen.append(lab.asked) or ask(one, deadline))
    answers = iter([GuestTimeoutError("no answer", stage="connect"), None])

    def work(one: Agent) -> bytes:
        failure = next(answers)
        if failure is not None:
            raise failure
        return say(one, "there")

    assert link.call(work) == b"there\n"
    assert seen != []
    assert seen[0] > asked, "the API server was asked first"


def test_what_the_processes_share_is_for_their_user_alone_and_shows_no_token_in_its_names(
    lab: Lab, agent: RunningAgent
) -> None:
    lab.link().open()
    assert stat.S_IMODE(lab.folder.stat().st_mode) == 0o700
    files = list(lab.folder.iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600]
    assert POD_UID not in files[0].name


def test_no_text_form_shows_a_token(lab: Lab, agent: RunningAgent) -> None:
    link = lab.link()
    link.open()
    target = lab.target()
    location = Memory(lab.folder, target.key).read()
    for shown in (link, target, location):
        assert POD_UID not in repr(shown)
        assert str(target.access["api_key"]) not in repr(shown)


def test_a_pod_that_took_the_place_of_the_first_is_refused(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link().open()
    lab.replace_pod()
    with lab.agent(NEXT_POD_UID), pytest.raises(ReplacedError, match="ansible_sandbox_follow") as caught:
        lab.link().open()
    assert caught.value.object == f"Pod team-a/{lab.pod}"
    assert POD_UID not in str(caught.value)
    assert NEXT_POD_UID not in str(caught.value)


def test_a_pod_that_is_replaced_within_one_process_is_refused_too(lab: Lab) -> None:
    link = lab.link()
    with lab.agent(POD_UID):
        link.open()
    lab.replace_pod()
    with lab.agent(NEXT_POD_UID), pytest.raises(ReplacedError):
        link.call(lambda one: say(one, "in vain"))


@pytest.mark.parametrize("said", [{}, {"status": "False", "reason": "PodSucceeded", "message": "ended"}])
def test_a_pod_that_is_being_deleted_is_told_at_once_and_as_that(lab: Lab, said: dict[str, str]) -> None:
    """Its agent ends with it, which the controller may tell as the container's own end, or not have told yet."""
    link = lab.link()
    with lab.agent(POD_UID):
        link.open()
    store, pod = lab.cluster.store, lab.cluster.key("pods", lab.pod)
    leaving = store.get(pod)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    store.replace(pod, leaving)
    if said:
        store.patch(lab.cluster.key("sandboxclaims", NAME), {"status": {"conditions": [{"type": "Ready", **said}]}})
    began = time.monotonic()
    with pytest.raises(ReplacedError, match="is being deleted") as caught:
        link.call(lambda one: say(one, "in vain"))
    assert time.monotonic() - began < 10.0, "not connect_timeout, in which no other pod would be taken either"
    assert caught.value.object == f"Pod team-a/{lab.pod}"


def test_another_pod_that_may_be_followed_is_waited_for(lab: Lab) -> None:
    """Until it stands there the controller says of the first that it has ended by itself."""

    def say_ready(status: str, reason: str) -> None:
        conditions = [{"type": "Ready", "status": status, "reason": reason, "message": "so it is"}]
        lab.cluster.store.patch(lab.cluster.key("sandboxclaims", NAME), {"status": {"conditions": conditions}})

    def replaced() -> None:
        lab.replace_pod()
        say_ready("True", "DependenciesReady")

    with lab.agent(POD_UID):
        lab.link(follow=True).open()
    store, pod = lab.cluster.store, lab.cluster.key("pods", lab.pod)
    leaving = store.get(pod)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    store.replace(pod, leaving)
    say_ready("False", "PodSucceeded")
    lab.cluster.server.later(1.0, replaced)
    with lab.agent(NEXT_POD_UID):
        assert lab.link(follow=True).call(lambda one: say(one, "there")) == b"there\n"


def test_a_refused_pod_is_refused_again(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link().open()
    lab.replace_pod()
    with lab.agent(NEXT_POD_UID):
        for _attempt in range(2):
            with pytest.raises(ReplacedError):
                lab.link().open()


def test_a_new_pod_is_followed_when_that_is_wanted_and_remembered_then(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link(follow=True).open()
    lab.replace_pod()
    with lab.agent(NEXT_POD_UID):
        assert lab.link(follow=True).call(lambda one: say(one, "there")) == b"there\n"
        asked = lab.asked
        lab.link(follow=True).open()
    assert lab.asked == asked


def test_a_port_forward_to_a_pod_that_is_gone_is_made_to_the_one_that_is_there(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_live_pods(_client: object, pod: ObjectRef, port: int, _deadline: Deadline) -> socket.socket:
        if pod.name != lab.pod:
            raise GoneError(f"CONNECT {pod}: 404", status=404, object=str(pod))
        return socket.create_connection(("127.0.0.1", port))

    monkeypatch.setattr(portforward, "open_port", to_live_pods)
    with lab.agent(POD_UID):
        link = lab.link(mode="port_forward", follow=True)
        assert link.call(lambda one: say(one, "here")) == b"here\n"
    lab.replace_pod("python-another")
    with lab.agent(NEXT_POD_UID):
        assert link.call(lambda one: say(one, "there")) == b"there\n"


def test_after_a_reset_whichever_pod_is_there_will_do(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link().open()
    lab.replace_pod()
    with lab.agent(NEXT_POD_UID):
        Memory(lab.folder, lab.target().key).forget()
        assert lab.link().call(lambda one: say(one, "there")) == b"there\n"


def test_of_two_processes_that_look_at_once_the_second_takes_what_the_first_found(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link().open()
    memory = Memory(lab.folder, lab.target().key)
    first = memory.read()
    assert first is not None
    other = type(first)(first.namespace, first.sandbox, first.pod, first.host, first.port, token=NEXT_POD_UID)
    assert memory.keep(other) == first


def test_an_agent_that_is_gone_while_its_pod_stays_is_unreachable(lab: Lab) -> None:
    with lab.agent(POD_UID):
        lab.link().open()
    with pytest.raises(GuestUnreachableError, match="sandbox box in team-a"):
        lab.link(connect_timeout=2.0).open()


def test_the_claim_that_stands_there_must_be_the_one_that_was_named(lab: Lab, agent: RunningAgent) -> None:
    lab.link(uid=lab.uid).open()
    with pytest.raises(ReplacedError, match="host_vars"):
        lab.link(uid="00000000-0000-4000-8000-000000000000").open()


def test_a_sandbox_that_is_not_there_is_named(lab: Lab) -> None:
    with pytest.raises(GoneError, match="team-a/nobody"):
        lab.link(name="nobody").open()


def test_a_workspace_that_does_not_exist_is_named_as_one(lab: Lab) -> None:
    with pytest.raises(SandboxError) as caught:
        lab.link(workspace="nope").open()
    assert caught.value.reason == "not-found"
    assert "workspace 'nope'" in str(caught.value)
    assert "SandboxClaim" not in str(caught.value)


def test_a_name_that_no_object_can_have_is_refused_before_anything_is_sent(lab: Lab) -> None:
    with pytest.raises(InputError, match="ansible_sandbox_name"):
        lab.link(name="no such_name").open()
    assert lab.asked == 0


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"namespace": "team-b"}, {"uid": "x"}, {"access": {"host": "h"}}]
)
def test_what_leads_elsewhere_is_remembered_elsewhere(lab: Lab, change: dict) -> None:
    assert lab.target(**change).key != lab.target().key
