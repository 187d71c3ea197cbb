# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Text from outside, made safe for an error, a result and a terminal.

A guest, a container's termination log, a controller, an API server, an engine, a kubeconfig and a file name may hold
anything: escape sequences that move the cursor, line breaks that forge the next line of the output, characters that
reverse the reading order, megabytes, and bytes that are not UTF-8. Output of the user's own commands is data and is not
changed here.
"""

from __future__ import annotations

import typing as t

#: Characters of one text from outside that are shown: a scheduler's message about many nodes fits.
MAXIMUM_TEXT = 1000

#: Characters of one message, and of one text in a result; they may quote several texts from outside.
MAXIMUM_MESSAGE = 8000

#: How much is looked at, as a multiple of what is shown: blanks that become one take more room before.
_LOOKED_AT = 4

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

#: Fields of a result that are the user's own data: the command, and what it wrote.
DATA_FIELDS = frozenset({"cmd", "stdout", "stderr", "stdout_lines", "stderr_lines"})

#: Fields of a result that are reports of several lines; each line is cleaned.
REPORT_FIELDS = frozenset({"text"})


def clean_text(value: object, limit: int = MAXIMUM_TEXT) -> str:
    """One printable line of at most ``limit`` characters.

    Args:
        value: text, bytes (read as UTF-8), or anything else, which is shown as ``str`` shows it.
        limit: characters of the result (1 or more); a longer text ends with ``…``.

    Returns:
        The text in which every run of blanks, line breaks included, is one space, and every character that is not
        printable (controls, format and bidirectional characters, surrogates, private use, unassigned) is U+FFFD.

    Source: ``str.isprintable``, by the general category of the Unicode Character Database.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        text = bytes(value[: 4 * _LOOKED_AT * limit]).decode("utf-8", "replace")
    else:
        text = value if isinstance(value, str) else str(value)
    text = text.strip()
    looked_at = text[: _LOOKED_AT * limit]
    if not looked_at.isprintable() or "  " in looked_at:
        line = " ".join(looked_at.split())
        looked_at = "".join(one if one.isprintable() else _REPLACEMENT for one in line)
    if len(looked_at) > limit or len(text) > _LOOKED_AT * limit:
        return looked_at[: limit - 1].rstrip() + "…"
    return looked_at


def clean_value(value: t.Any) -> t.Any:
    """A result in which every text is clean, keys included; the user's own data (``DATA_FIELDS``) is not changed.

    Args:
        value: plain data: texts, numbers, booleans, None, and mappings, lists and tuples of them.
    """
    if isinstance(value, str):
        return value if value.isprintable() and len(value) <= MAXIMUM_MESSAGE else clean_text(value, MAXIMUM_MESSAGE)
    if isinstance(value, dict):
        return {clean_value(key): _clean_field(key, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_value(one) for one in value]
    return value


def _clean_field(key: t.Any, value: t.Any) -> t.Any:
    if key in DATA_FIELDS:
        return value
    if key in REPORT_FIELDS and isinstance(value, str):
        return "\n".join(clean_value(line) for line in value.split("\n"))
    return clean_value(value)
