# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Credentials: small objects that give the value of the ``Authorization`` header, and never show it."""

from __future__ import annotations

import threading
import time
import typing as t

from ...errors import AccessError
from .exec_plugin import LOGIN_SECONDS

#: Seconds for which a token read from a file is used before it is read again. Kubelets refresh a projected token when
#: 80 % of its life has passed, at least 2 minutes before its end (Kubernetes, "Projected Volumes").
FILE_TOKEN_SECONDS = 60.0


class Credential(t.Protocol):
    """Gives the ``Authorization`` header."""

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        """The header's value, current now; renewing it takes at most ``seconds``."""


class StaticToken:
    """A bearer token that was given as text."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        del seconds
        return f"Bearer {self._token}"


class StaticHeader:
    """A complete header value that a library or a user name and password produced."""

    def __init__(self, value: str) -> None:
        self._value = value

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        del seconds
        return self._value


class FileToken:
    """A bearer token in a file that somebody renews (a projected service account token, a kubeconfig's tokenFile)."""

    def __init__(self, path: str, monotonic: t.Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._token = ""
        self._read_at: float | None = None

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        del seconds
        now = self._monotonic()
        if self._read_at is None or now - self._read_at >= FILE_TOKEN_SECONDS:
            self._token = self._read()
            self._read_at = now
        return f"Bearer {self._token}"

    def _read(self) -> str:
        try:
            with open(self._path, encoding="utf-8") as stream:
                token = stream.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AccessError(
                f"The token file {self._path} cannot be read: {getattr(error, 'strerror', None) or 'not a text file'}.",
                next_step="Check the path and its permissions on the machine where this runs.",
            ) from None
        if not token:
            raise AccessError(f"The token file {self._path} is empty.", next_step="Check what writes it.")
        return token


class LibraryCredential:
    """A credential that kubernetes.config produces and renews (``auth-provider``)."""

    def __init__(self, configuration: t.Any) -> None:
        self._configuration = configuration

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        hook = getattr(self._configuration, "refresh_api_key_hook", None)
        if hook is not None:
            try:
                within(seconds, lambda: hook(self._configuration))
            except Exception as error:  # noqa: BLE001 - the library raises whatever the provider raised
                raise AccessError(
                    f"The kubeconfig's auth provider could not renew the token: {type(error).__name__}.",
                    next_step="Log in by kubectl, and see what it prints.",
                ) from None
        keys: dict[str, str] = self._configuration.api_key
        # Older clients store it under "authorization", newer ones under "BearerToken"; both carry the prefix already.
        value = keys.get("BearerToken") or keys.get("authorization")
        if not value:
            raise AccessError(
                "The kubeconfig's auth provider gave no token.",
                next_step="Log in by kubectl, and see what it prints.",
            )
        return value


def within(seconds: float, call: t.Callable[[], object]) -> None:
    """Make a call that has no bound of its own, in a thread.

    Raises:
        TimeoutError: it has not ended after ``seconds``; the thread is left to end with the process.
        Exception: what the call raised.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # pylint: disable=broad-exception-caught
            raised.append(error)

    thread = threading.Thread(target=run, name="namzu-login", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if raised:
        raise raised[0]
