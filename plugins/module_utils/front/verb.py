# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a verb is, for the module and the action plugin that run it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import typing as t
import urllib.parse

from ..errors import InputError, SandboxError
from ..lifecycle.durations import seconds
from ..text import clean_value
from .client_cache import KeptClient
from .interrupts import interruptible
from .options.agent import heartbeat_of
from .options.backend import require_kubernetes
from .options.specs import ACCESS, ALL, Params, Spec

if t.TYPE_CHECKING:
    from ..cluster.client import Client

Result = dict[str, t.Any]


class KeeperConnection(t.Protocol):
    """What one task says to the lease keeper of its play. Every call raises SandboxError when that is gone."""

    def __enter__(self) -> t.Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def hold(self, leases: t.Sequence[dict[str, t.Any]]) -> t.Collection[str]:
        """Hand leases over; the uids of those that are released at the end."""

    def leave(self, namespace: str, names: t.Collection[str]) -> None:
        """These are about to be released."""

    def stay(self, namespace: str, names: t.Collection[str]) -> None:
        """These could not be released."""

    def forget(self, namespace: str, names: t.Collection[str]) -> None:
        """These are released."""


class Keeper(t.Protocol):
    """The lease keeper of a play."""

    def open(self, options: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> KeeperConnection:
        """A connection for a task with these access options."""


@dataclasses.dataclass(frozen=True)
class Context:
    """How a verb is run.

    Attributes:
        check_mode: say what would happen, change nothing.
        environ: the environment with the task's ``environment:``; an action plugin's process does not have that.
        keeper: the lease keeper of the play, or None; only an action plugin has one.
        kept: keeps the client for the next item of a loop, or None; only an action plugin has one.
    """

    check_mode: bool
    environ: t.Mapping[str, str] = dataclasses.field(repr=False)
    keeper: Keeper | None = dataclasses.field(default=None, repr=False)
    kept: KeptClient | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb: its options, and the function from options to result.

    Attributes:
        name: the module's name without the collection.
        options: AnsibleModule's ``argument_spec``.
        run: parameters and context to the task's result; raises SandboxError.
        constraints: AnsibleModule's other keywords (``required_if``, ``mutually_exclusive``, …).
    """

    name: str
    options: Spec
    run: t.Callable[[Params, Context], Result]
    constraints: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)


def perform(verb: Verb, params: Params, context: Context) -> Result:
    """Run a verb to a task result; what the core refuses becomes a failed result, never a traceback."""
    try:
        with interruptible():
            return t.cast("Result", clean_value(verb.run(params, context)))
    except SandboxError as error:
        step = applicable(error.next_step or "", verb.options)
        return {**failure(error), "msg": f"{error.message} {step}".rstrip()}


def failure(error: SandboxError) -> Result:
    """An error as the result of a failed task."""
    result = {"failed": True, "changed": False, "msg": str(error), **error.fields()}
    return t.cast("Result", clean_value(result))


_SENTENCE = re.compile(r"(?<=[.;]) +")
_OPTION = re.compile(r"(?<![\w.])[a-z]+_[a-z_]+(?![\w(])")


def applicable(next_step: str, options: Spec) -> str:
    """A next step without the sentences that name options of other verbs.

    The core serves all verbs, and a step such as a longer ``ready_timeout`` is wrong where there is no such option. A
    sentence that also names a module or a role is about the options of that one.
    """
    foreign = known_options() - options.keys()
    kept = [
        sentence
        for sentence in _SENTENCE.split(next_step)
        if "namzu.sandbox." in sentence or not foreign.intersection(_OPTION.findall(sentence))
    ]
    return re.sub(";$", ".", " ".join(kept))


@functools.cache
def known_options() -> frozenset[str]:
    """The options of all verbs."""
    return frozenset(name for table in ALL for name in table)


@contextlib.contextmanager
def connect(params: Params, context: Context) -> t.Iterator[Client]:
    """A client for the access options of a verb, while the block lasts; no request is sent yet.

    After a block that succeeds it is kept for the next item of a loop, where ``context`` can.

    Raises:
        AccessError, InputError: the options name no usable way to the API server, or the container backend.
    """
    # A play with the container backend needs none of them.
    from ..cluster.auth.access import resolve_access
    from ..cluster.client import MINIMUM_REQUEST_TIMEOUT, Client

    require_kubernetes(params, context.environ)
    heartbeat_of(params.get("agent"))
    timeout = seconds("request_timeout", params["request_timeout"])
    if timeout < MINIMUM_REQUEST_TIMEOUT:
        raise InputError(f"request_timeout is {timeout:g} s; it must be at least {MINIMUM_REQUEST_TIMEOUT:g} s.")

    def make() -> Client:
        return Client(resolve_access(params, context.environ, seconds=timeout), request_timeout=timeout)

    asked = ({name: params.get(name) for name in ACCESS}, dict(context.environ), timeout)
    with make() if context.kept is None else context.kept.lend(asked, make) as client:
        yield client


def namespace_of(params: Params, client: Client) -> str:
    """The namespace option, else the context's or the service account's, else ``default``."""
    return str(params.get("namespace") or client.access.namespace or "default")


def sensitive_values(params: Params) -> set[str]:
    """Values among the access options that must appear nowhere, beyond what ``no_log`` marks."""
    values = {str(params["api_key"])} if params.get("api_key") else set()
    if isinstance(params.get("kubeconfig"), dict):
        values |= _secrets_in(params["kubeconfig"])
    return (values | _passwords_in(str(params.get("proxy") or ""))) - {""}


_SECRET_KEYS = frozenset(
    {"token", "password", "client-key-data", "client-certificate-data", "access-token", "refresh-token", "id-token",
     "client-secret"}
)  # fmt: skip


#: Variables of an exec plugin by these names hold secrets; the others (a profile, a region) are words of every day.
_SECRET_VARIABLE = re.compile("TOKEN|SECRET|PASS|KEY", re.IGNORECASE)


def _passwords_in(url: str) -> set[str]:
    """The password in a URL, as it stands there and decoded."""
    password = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return {password, urllib.parse.unquote(password)}


def _secrets_in(node: t.Any) -> set[str]:
    if isinstance(node, dict):
        found: set[str] = set()
        for key, value in node.items():
            if key == "proxy-url":
                found |= _passwords_in(str(value or ""))
            else:
                found |= {str(value)} if key in _SECRET_KEYS and value else _secrets_in(value)
        if _SECRET_VARIABLE.search(str(node.get("name") or "")) and node.get("value"):
            found.add(str(node["value"]))
        return found
    if isinstance(node, list):
        return set().union(*(_secrets_in(item) for item in node))
    return set()
