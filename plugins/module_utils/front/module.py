# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Running a verb as a module, wherever the task's connection leads."""

from __future__ import annotations

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.parameters import remove_values

from .verb import Context, Verb, perform, sensitive_values


class _VerbModule(AnsibleModule):  # type: ignore[misc]  # Ansible has no types
    """An AnsibleModule that keeps the secrets inside of dictionaries to itself.

    ``no_log`` hides whole options. AnsibleModule logs its invocation, and fails on wrong options with all of them in
    the result, before anybody else has a chance to say what else is secret.
    """

    def log(self, msg: str, log_args: dict[str, t.Any] | None = None) -> None:
        secrets = self._secrets()
        super().log(remove_values(msg, secrets), remove_values(log_args, secrets))

    def exit_json(self, **result: t.Any) -> t.NoReturn:
        self.no_log_values.update(self._secrets())
        super().exit_json(**result)
        raise SystemExit

    def fail_json(self, msg: str, **result: t.Any) -> t.NoReturn:
        self.no_log_values.update(self._secrets())
        super().fail_json(msg, **result)
        raise SystemExit

    def _secrets(self) -> set[str]:
        return sensitive_values(self.params)


def run_module(verb: Verb) -> None:
    """Read the parameters, run the verb, and leave with its result."""
    module = _VerbModule(argument_spec=verb.options, supports_check_mode=True, **verb.constraints)
    result = perform(verb, module.params, Context(check_mode=module.check_mode, environ=os.environ))
    if not module._diff:  # noqa: SLF001 - the module's own flag has no public name
        result.pop("diff", None)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
