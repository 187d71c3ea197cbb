# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the leases of a play, and gives back what the play holds when it ends."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lease_keeper
type: aggregate
short_description: Renew the leases of a play, and release its sandboxes at the end
version_added: 0.1.0
description:
  - Renews the lease of every sandbox that the play acquires with M(namzu.sandbox.sandbox) on the controller, each
    time when half of its O(namzu.sandbox.sandbox#module:ttl) has passed, for as long as ansible-playbook runs. The same
    for a workspace that M(namzu.sandbox.workspace) starts with a O(namzu.sandbox.workspace#module:ttl).
  - Deletes what was acquired with O(namzu.sandbox.sandbox#module:release_on_end) when ansible-playbook ends,
    also when it crashes or is killed. The rest stays until its lease ends.
  - A workspace that was started with O(namzu.sandbox.workspace#module:release_on_end) is suspended then, after a flush,
    and never deleted.
  - A small process of its own does it, which ansible-playbook starts and which ends after it. It writes no file,
    needs no terminal and no home, and learns credentials over a socket that it inherits.
  - Says on standard error when a renewal fails, when a sandbox is lost, and at the end what became of all.
  - What a task acquires in a module on another machine, with C(become) or with C(async), is not known to it.
author:
  - The namzu.sandbox authors (@namzu)
requirements:
  - enabled by C(callbacks_enabled = namzu.sandbox.lease_keeper) in C(ansible.cfg), or by E(ANSIBLE_CALLBACKS_ENABLED)
options:
  renew:
    description:
      - Whether leases are renewed. Without it the plugin only gives back what is marked.
    type: bool
    default: true
    ini:
      - section: namzu_lease_keeper
        key: renew
    env:
      - name: NAMZU_LEASE_KEEPER_RENEW
    vars:
      - name: namzu_lease_keeper_renew
  report:
    description:
      - What is shown. V(all), or only the V(problems), or V(nothing).
    type: str
    choices: [all, problems, nothing]
    default: all
    ini:
      - section: namzu_lease_keeper
        key: report
    env:
      - name: NAMZU_LEASE_KEEPER_REPORT
    vars:
      - name: namzu_lease_keeper_report
  end_timeout:
    description:
      - How many seconds the end of ansible-playbook waits at most until everything is released; from 0 to 5. What takes
        longer is named, and tried for another minute without anybody waiting.
    type: float
    default: 5
    ini:
      - section: namzu_lease_keeper
        key: end_timeout
    env:
      - name: NAMZU_LEASE_KEEPER_END_TIMEOUT
    vars:
      - name: namzu_lease_keeper_end_timeout
notes:
  - A variable counts from the play in which it stands, for what is acquired from then on, and until another play
    sets it.
seealso:
  - module: namzu.sandbox.sandbox
  - module: namzu.sandbox.sandbox_lease
  - module: namzu.sandbox.workspace
"""

import atexit
import os
import typing as t

from ansible import constants as C  # noqa: N812 - the name that it has everywhere in Ansible
from ansible.errors import AnsibleError
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar

from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper import link as keeper_link
from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.report import LeaseReport

#: The most seconds for which the end of a play may be held up.
LONGEST_END = 5.0


class CallbackModule(CallbackBase):
    """The callback plugin."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "namzu.sandbox.lease_keeper"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._link: keeper_link.KeeperLink | None = None
        self._report = LeaseReport()
        self._ending = False

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        """Start the keeper, before there is any thread or worker."""
        del playbook
        self._report, self._ending = LeaseReport(), False
        self._link = keeper_link.KeeperLink(self._receive)
        self._link.renew = self.get_option("renew")
        keeper_link.activate(self._link)
        # After Ctrl-C ansible-playbook calls no callback.
        atexit.register(self._end_of_process, os.getpid())

    def _end_of_process(self, pid: int) -> None:
        if os.getpid() == pid:
            self._end()

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        """Read the options again, with the variables of the play."""
        known = C.config.get_plugin_vars("callback", self._load_name)
        variables = play.get_variable_manager().get_vars(play=play)
        given = {name: variables[name] for name in known if name in variables}
        if not given:
            return
        try:
            self.set_options(var_options=Templar(play.get_loader(), variables=variables).template(given))
        except AnsibleError as error:
            self._display.warning(f"lease_keeper: the variables of this play are not used: {error}")
            return
        if self._link is not None:
            self._link.renew = self.get_option("renew")

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        """Let everything be released, and report it."""
        del stats
        self._end()

    def _end(self) -> None:
        if self._link is None:
            return
        self._ending = True
        keeper_link.activate(None)
        self._link.end(self._end_seconds())
        self._link = None
        if self._report.problems():
            self._show(self._report.summary(), C.COLOR_ERROR, problem=True)
        else:
            self._show(self._report.summary(), C.COLOR_OK, problem=False)

    def _end_seconds(self) -> float:
        wanted = float(self.get_option("end_timeout"))
        taken = min(max(wanted, 0.0), LONGEST_END)
        if taken != wanted:
            allowed = f"end_timeout is 0 to {LONGEST_END:g} s"
            self._display.warning(f"lease_keeper: {allowed}; {wanted:g} counts as {taken:g}.")
        return taken

    def _receive(self, message: dict[str, t.Any] | None) -> None:
        if message is None and self._ending:
            return
        line = self._report.interrupted() if message is None else self._report.add(message)
        if line is not None:
            self._show([line], C.COLOR_WARN, problem=True)

    def _show(self, lines: list[str], colour: str, *, problem: bool) -> None:
        """On standard error, as standard output may be what another program reads."""
        shown = self.get_option("report")
        if shown == "all" or (shown == "problems" and problem):
            for line in lines:
                self._display.display(f"lease_keeper: {line}", color=colour, stderr=True)
