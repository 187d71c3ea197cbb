# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tests ``ready`` and ``expiring``: the phase and the lease of a sandbox, in conditions."""

from __future__ import annotations

import datetime
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.durations import seconds


def ready(sandbox: t.Any) -> bool:
    """Whether a sandbox was ready when it was read.

    Raises:
        AnsibleFilterError: the value has no phase.
    """
    return str(_value("ready", sandbox, "phase")) == "ready"


def expiring(sandbox: t.Any, within: t.Any = 300) -> bool:
    """Whether the lease of a sandbox ends within a time from now, or has ended.

    Raises:
        AnsibleFilterError: the value has no ``expires_at``, or the time is no duration.
    """
    expires_at = _value("expiring", sandbox, "expires_at")
    if expires_at is None:
        return False
    try:
        left = datetime.datetime.fromisoformat(str(expires_at)) - datetime.datetime.now(datetime.UTC)
        return left.total_seconds() < seconds("within", str(within))
    except (InputError, ValueError, TypeError) as error:
        raise AnsibleFilterError(f"namzu.sandbox.expiring: {error}") from None


def _value(test: str, sandbox: t.Any, key: str) -> t.Any:
    if not isinstance(sandbox, dict) or key not in sandbox:
        raise AnsibleFilterError(
            f"namzu.sandbox.{test}: the value has no {key}. "
            "Give one sandbox, as namzu.sandbox.sandbox_info or the lookup namzu.sandbox.sandbox returns it."
        )
    return sandbox[key]


class TestModule:
    """Ansible's way to find tests."""

    def tests(self) -> dict[str, t.Callable[..., bool]]:
        """The tests by name."""
        return {"ready": ready, "expiring": expiring}
