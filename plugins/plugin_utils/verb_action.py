# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verb as an action plugin: in the worker process on the controller, as a module everywhere else."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ..module_utils.front.backends.opening import load_backend
from ..module_utils.front.client_cache import KeptClient
from ..module_utils.front.options.specs import Params, expand_kinds
from ..module_utils.front.verb import Context, Result, Verb, perform, sensitive_values
from .lease_keeper import link as keeper_link

load_backend(os.environ)

#: Connections to the controller itself. A strategy of mitogen replaces ``local`` by ``mitogen_local``.
_LOCAL = ("local", "ansible.builtin.local", "mitogen_local")

#: A worker runs every item of a task's loop; the next task has another worker.
_KEPT = KeptClient()


class VerbAction(ActionBase):
    """Runs one verb; a plugin names it in ``verb`` and adds nothing.

    On the controller itself (a local connection without ``become`` and ``async``) nothing is packed, copied or started,
    which is where a module spends most of its time. Everywhere else the module of the same name runs.
    """

    verb: t.ClassVar[Verb]

    _supports_check_mode = True
    _supports_async = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """The task's result."""
        result: Result = super().run(tmp, task_vars)
        del tmp
        self._task.args = expand_kinds(self.verb.options, self._task.args)
        if self.runs_elsewhere() is not None:
            name = f"namzu.sandbox.{self.verb.name}"
            ran = self._execute_module(module_name=name, task_vars=task_vars, wrap_async=self._task.async_val)
            result.update(ran)
            return result
        params, secrets = self._validated(result)
        context = Context(self._task.check_mode, self._environ(), keeper=keeper_link.active(), kept=_KEPT)
        outcome = perform(self.verb, params, context)
        if not self._task.diff:
            outcome.pop("diff", None)
        result.update(remove_values(outcome, secrets))
        return result

    def runs_elsewhere(self) -> str | None:
        """Why the task runs as a module, as part of a sentence; None when it runs in this process."""
        name = self._connection.ansible_name
        if name not in _LOCAL:
            return f"over connection {name}"
        if self._task.async_val:
            return "with async"
        return "with become" if self._connection.become else None

    def _validated(self, result: Result) -> tuple[Params, set[str]]:
        """The parameters as the module would see them; what is wrong with them fails the task without their secrets."""
        validator = ArgumentSpecValidator(self.verb.options, **self.verb.constraints)
        validation = validator.validate(dict(self._task.args))
        params: Params = validation.validated_parameters
        secrets = set(validation._no_log_values) | sensitive_values(params)  # noqa: SLF001 - has no public name
        if validation.error_messages:
            message = remove_values(", ".join(validation.error_messages), secrets)
            if isinstance(validation.errors[0], UnsupportedError):
                # The message of a module.
                message = f"Unsupported parameters for (namzu.sandbox.{self.verb.name}) module: {message}"
            raise AnsibleActionFail(message, result=result)
        return params, secrets

    def _environ(self) -> dict[str, str]:
        """This process's environment with the task's ``environment:``, which Ansible hands to modules only."""
        environ = dict(os.environ)
        layers = self._task.environment or []
        for layer in layers if isinstance(layers, list) else [layers]:
            environ.update({str(key): str(value) for key, value in (layer or {}).items()})
        return environ
