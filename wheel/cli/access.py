# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The options that every command has: where sandboxes are, and how their agents are reached."""

from __future__ import annotations

import functools
import inspect
import typing as t

import typer

#: Of one command: the options of the Python API.
Access = dict[str, t.Any]

_HELP = {
    "backend": "kubernetes or container; NAMZU_SANDBOX_BACKEND when not given, else kubernetes.",
    "namespace": "Namespace of the sandboxes; that of the kubeconfig's context when not given.",
    "kubeconfig": "Path of a kubeconfig; KUBECONFIG or ~/.kube/config when not given.",
    "context": "Context of the kubeconfig.",
    "docker_host": "Address of the container engine; DOCKER_HOST when not given.",
    "agent_address": "How agents are reached on Kubernetes: service, pod_ip or port_forward.",
}


def _option(name: str, kind: t.Any, *flags: str, text: str | None = None) -> inspect.Parameter:
    option = typer.Option(*flags, help=text or _HELP[name], rich_help_panel="Access", show_default=False)
    annotation = t.Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_OPTIONS = {
    one.name: one
    for one in (
        _option("backend", str, "--backend"),
        _option("namespace", str, "--namespace", "-n"),
        _option("kubeconfig", str, "--kubeconfig"),
        _option("context", str, "--context"),
        _option("docker_host", str, "--docker-host"),
        _option("agent_address", str, "--agent-address"),
        _option("agent_port", int, "--agent-port", text="Port of the agents on Kubernetes; 1024 when not given."),
    )
}


def with_access(command: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    """Give a command the options of access, and its argument ``access`` their values."""

    @functools.wraps(command)
    def wrapped(**given: t.Any) -> t.Any:
        return command(access=_access({name: given.pop(name) for name in _OPTIONS}), **given)

    signature = inspect.signature(command, eval_str=True)
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
    parameters = [one for one in own if one.name != "access"]
    wrapped.__signature__ = signature.replace(parameters=[*parameters, *_OPTIONS.values()])  # type: ignore[attr-defined]
    return wrapped


def _access(given: dict[str, t.Any]) -> Access:
    agent = {"address": given.pop("agent_address"), "port": given.pop("agent_port")}
    chosen = {name: value for name, value in agent.items() if value is not None}
    return {
        **{name: value for name, value in given.items() if value is not None},
        **({"agent": chosen} if chosen else {}),
    }
