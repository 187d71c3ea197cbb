# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Which entries of a tree are copied, by patterns of their paths."""

from __future__ import annotations

import fnmatch
import re
import typing as t


class Selection:
    """Patterns of what is included and excluded.

    A pattern is one of a shell (``*``, ``?``, ``[…]``). With a slash in it, it is for the whole path below the folder,
    and ``*`` matches slashes as well; without one it is for a name at any depth. What is included or excluded is so
    with everything in it. What is excluded is neither copied nor deleted.
    """

    def __init__(self, include: t.Sequence[str] = (), exclude: t.Sequence[str] = ()) -> None:
        """``include``: everything when empty."""
        self._include = [_Pattern(pattern) for pattern in include]
        self._exclude = [_Pattern(pattern) for pattern in exclude]

    def enters(self, path: str) -> bool:
        """Whether a folder is read; ``path`` is below a folder that is."""
        return not any(pattern.matches(path) for pattern in self._exclude)

    def takes(self, path: str) -> bool:
        """Whether an entry is selected."""
        parts = path.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if not all(map(self.enters, above)):
            return False
        return not self._include or any(pattern.matches(part) for pattern in self._include for part in above)


class _Pattern:
    """One pattern."""

    def __init__(self, pattern: str) -> None:
        self._whole = "/" in pattern
        self._match = re.compile(fnmatch.translate(pattern.strip("/"))).match

    def matches(self, path: str) -> bool:
        """Whether it is for this path itself."""
        return self._match(path if self._whole else path.rpartition("/")[2]) is not None
