# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Running a verb as a module, wherever the task's connection leads."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule

from .verb import Context, Verb, perform, sensitive_values


def run_module(verb: Verb) -> None:
    """Read the parameters, run the verb, and leave with its result."""
    module = AnsibleModule(argument_spec=verb.options, supports_check_mode=True, **verb.constraints)
    module.no_log_values.update(sensitive_values(module.params))
    result = perform(verb, module.params, Context(check_mode=module.check_mode, environ=os.environ))
    if not module._diff:  # noqa: SLF001 - the module's own flag has no public name
        result.pop("diff", None)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
