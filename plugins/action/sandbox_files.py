# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_files`` on the controller."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Result
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox_files
from ansible_collections.namzu.sandbox.plugins.plugin_utils.verb_action import VerbAction


class ActionModule(VerbAction):
    """The verb as this collection's action plugin; relative paths of the controller are those of ``copy``."""

    verb = sandbox_files.VERB

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """The task's result."""
        if self.runs_elsewhere() is None:
            self._task.args = {**self._task.args, **self._local_path()}
        return super().run(tmp, task_vars)

    def _local_path(self) -> dict[str, str]:
        """The path on the controller, absolute: beneath ``files`` of the role or of the play, or beside the play."""
        upload = self._task.args.get("direction", sandbox_files.UPLOAD) == sandbox_files.UPLOAD
        option = "src" if upload else "dest"
        path = self._task.args.get(option)
        if not isinstance(path, str) or os.path.isabs(os.path.expanduser(path)):
            return {}
        if not upload:
            return {option: self._loader.path_dwim(path)}
        try:
            return {option: self._find_needle("files", path)}
        except AnsibleError as error:
            raise AnsibleActionFail(f"src {path} does not exist on this machine. {error}") from None
