# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pages: their links lead to files, their first sentence names the reader, and the files that they name exist."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
LINKING = [*PAGES, "README.md", *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("roles/*/README.md"))]
WHERE = DOCS / "internals" / "where-things-are.md"
ROW = re.compile(r"^\| (?P<feature>[^|]+) \| `(?P<file>[^`|]+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_to_files(page: str) -> None:
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_who_it_is_for(page: str) -> None:
    _licence, _title, first, *_rest = re.split(r"\n{2,}", (ROOT / page).read_text())
    assert first.startswith("For "), first


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([a-z/-]+\.md)\)", (DOCS / "README.md").read_text()))
    assert linked == {page.removeprefix("docs/") for page in PAGES} - {"README.md"}


def test_each_feature_is_in_one_file_that_exists() -> None:
    rows = ROW.findall(WHERE.read_text())
    assert len(rows) >= 40
    assert len({feature for feature, _file in rows}) == len(rows)
    for feature, file in rows:
        assert (ROOT / file.replace("core/", "plugins/module_utils/", 1)).is_file(), (feature, file)


def test_the_glossary_is_in_order_and_has_each_word_once() -> None:
    words = re.findall(r"^\| ([a-zA-Z ]+) \|", (DOCS / "reference" / "glossary.md").read_text(), re.MULTILINE)[1:]
    assert words == sorted(set(words), key=str.lower)
