# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is selected of a tree, and what makes one tree like another."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.filesystem import Entry
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.compare import compare
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.selection import Selection


def tree(**entries: str) -> dict[str, Entry]:
    """Entries from words: ``d`` a folder, ``l:x`` a link, else the content of a file; ``__`` is a slash."""
    found = {}
    for name, word in entries.items():
        path = name.replace("__", "/")
        kind = {"d": "directory", "l": "link"}.get(word[:1], "file") if word == "d" or word[:2] == "l:" else "file"
        target = word[2:] if kind == "link" else None
        found[path] = Entry(path, kind, len(word), 0o755, 1.0, target, word if kind == "file" else None)
    return found


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ([], [], {"a.py", "d", "d/b.py", "d/c.txt", "d/e", "d/e/f.py"}),
        (["*.py"], [], {"a.py", "d/b.py", "d/e/f.py"}),
        (["d"], [], {"d", "d/b.py", "d/c.txt", "d/e", "d/e/f.py"}),
        (["d/*.py"], [], {"d/b.py", "d/e/f.py"}),
        (["/a.py"], [], {"a.py"}),
        ([], ["d/"], {"a.py"}),
        ([], ["e"], {"a.py", "d", "d/b.py", "d/c.txt"}),
        (["*.py"], ["d/e"], {"a.py", "d/b.py"}),
        ([], ["[ab].py"], {"d", "d/c.txt", "d/e", "d/e/f.py"}),
    ],
)
def test_patterns_select(include: list[str], exclude: list[str], taken: set[str]) -> None:
    selection = Selection(include, exclude)
    paths = ["a.py", "d", "d/b.py", "d/c.txt", "d/e", "d/e/f.py"]
    assert {path for path in paths if selection.takes(path)} == taken


def test_equal_trees_have_no_difference() -> None:
    one = tree(a="1", d="d", d__b="2", l="l:a")
    assert compare(one, dict(one), delete=True).empty


def test_what_differs_is_copied_and_the_surplus_deleted_only_when_asked() -> None:
    source = tree(a="1", b="new", l="l:b", d="d", d__x="1")
    target = tree(a="1", b="old", l="l:a", old="d", old__x="1", old__y__z="2", old__y="d", d="d", d__y="3")
    kept = compare(source, target, delete=False)
    assert (kept.copy, kept.delete, kept.conflicts) == (("b", "d/x", "l"), (), ())
    assert compare(source, target, delete=True).delete == ("d/y", "old")


def test_what_is_protected_stays_with_the_folders_above_it() -> None:
    target = tree(old="d", old__x="1", old__keep="2", gone="1")
    difference = compare({}, target, delete=True, takes=lambda path: path != "old/keep")
    assert difference.delete == ("gone", "old/x")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (tree(a="1"), tree(a="d", a__x="1")),
        (tree(a="d"), tree(a="1")),
        (tree(a__b="1"), tree(a="1")),
        (tree(a__b="1"), tree(a="l:x")),
    ],
)
def test_a_folder_and_a_file_are_a_conflict_unless_it_may_be_deleted(
    source: dict[str, Entry], target: dict[str, Entry]
) -> None:
    assert compare(source, target, delete=False).conflicts == ("a",)
    resolved = compare(source, target, delete=True)
    assert (resolved.delete, resolved.conflicts) == (("a",), ())
    assert compare(source, target, delete=True, takes=lambda _path: False).conflicts == ("a",)


PATHS = st.sampled_from(["a", "b", "a/b", "a/c", "a/b/c", "b/a"])


def closed(paths: t.Iterable[str]) -> dict[str, Entry]:
    """A tree in which every path has its folders."""
    found: dict[str, str] = {}
    for path in sorted(paths):
        parts = path.split("/")
        for count in range(1, len(parts)):
            found["__".join(parts[:count])] = "d"
        found.setdefault("__".join(parts), "1")
    return tree(**found)


@given(source=st.sets(PATHS), target=st.sets(PATHS))
def test_after_deleting_and_copying_both_are_equal(source: set[str], target: set[str]) -> None:
    wanted, there = closed(source), closed(target)
    difference = compare(wanted, there, delete=True)
    for path in difference.delete:
        there = {found: entry for found, entry in there.items() if found != path and not found.startswith(f"{path}/")}
    there |= {path: wanted[path] for path in difference.copy}
    assert there == wanted
    assert difference.conflicts == ()
