# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

import os

import pytest
import pytest_rerunfailures
from hypothesis import settings

# An unattended run tries the same examples each time, so that it fails because of a change and not of a draw; whoever
# runs the tests by hand draws new ones.
settings.register_profile("unattended", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is run again shares nothing with its first run, whose files and results would be in its way.

    pytest-rerunfailures, which counts the runs, keeps the fixtures of a file and of the session; it has no option.
    """
    if getattr(item, "execution_count", 1) > 1:
        pytest_rerunfailures._restore_suspended_finalizers(item)
        item.session._setupstate.teardown_exact(None)
