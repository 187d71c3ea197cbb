# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What may name a sandbox and label it, as the API server will see it."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t
import uuid

from ..errors import InputError

#: A claim that a task did not name. The name is made here, not by the API server, so that it is known before the POST.
TASK_NAME_PREFIX = "namzu-task-"

#: DNS-1123 label, as the claim's name becomes the name of a Service and a host name (RFC 1123; 63 characters).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def fresh_name() -> str:
    """A name for a claim that nobody named."""
    return TASK_NAME_PREFIX + str(uuid.uuid4())


def check_name(option: str, value: str) -> None:
    """Refuse a value that cannot be an object's name, before anything is sent.

    Raises:
        InputError: it is not a DNS-1123 label.
    """
    given: object = value
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise InputError(
            f"{option} is {value!r}, which cannot name a Kubernetes object.",
            next_step="Use at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends.",
        )


def check_labels(option: str, labels: t.Mapping[str, str]) -> None:
    """Refuse labels that the API server would refuse, before anything is sent.

    Raises:
        InputError: a key or value is no valid label.
    """
    given: object = labels
    if not isinstance(given, c.Mapping):
        raise InputError(f"{option} is {given!r}; it must be a mapping of label keys to values.")
    for key, value in labels.items():
        if not (isinstance(t.cast("object", key), str) and isinstance(t.cast("object", value), str)):
            raise InputError(
                f"{option} has {key!r}: {value!r}; the key and the value of a label are strings.",
                next_step="Quote them.",
            )
        prefix, slash, name = key.rpartition("/")
        key_ok = _LABEL_NAME.fullmatch(name) and (not slash or _LABEL_PREFIX.fullmatch(prefix))
        if not key_ok or not _LABEL_VALUE.fullmatch(value):
            raise InputError(
                f"{option} has {key!r}: {value!r}, which is no valid label.",
                next_step="Keys are [prefix/]name and values are at most 63 letters, digits, '-', '_' and '.'.",
            )


def check_choice(option: str, value: str, choices: t.Sequence[str]) -> None:
    """Refuse a value that is not one of the choices of an option.

    Raises:
        InputError: with the valid values.
    """
    if value not in choices:
        raise InputError(f"{option} is {value!r}; it must be one of {', '.join(choices)}.")


def check_port(option: str, value: int) -> None:
    """Refuse a value that is not a TCP port.

    Raises:
        InputError: the value is not a whole number from 1 to 65535.
    """
    given: object = value
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= 65535:
        raise InputError(f"{option} is {value!r}; it must be between 1 and 65535.")
