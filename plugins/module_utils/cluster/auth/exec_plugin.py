# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Login by a program that a kubeconfig names (``users[].user.exec``), bounded in time.

Source: client-go credential plugins, ``client.authentication.k8s.io/v1`` and ``v1beta1``. The Python library kubernetes
runs such a program without a bound, and cannot end it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import select
import signal
import subprocess
import threading
import typing as t

from ...deadline import Deadline
from ...errors import AccessError
from ...text import clean_text

#: Seconds for a login without a bound of its own.
LOGIN_SECONDS = 30.0

#: Bytes of an ExecCredential; a token and a chain of certificates are far smaller.
MAXIMUM_OUTPUT = 1024 * 1024

_CHUNK = 64 * 1024
_GROUP = "client.authentication.k8s.io/"
_CONFIG_EXTENSION = "client.authentication.k8s.io/exec"
_BY_HAND = "Run the program by hand, as kubectl does, and see what it prints and how long it takes."


class ExecPlugin:
    """A program that prints an ExecCredential; it is run again when the token has expired. Safe to share.

    Args:
        spec: ``exec`` of the user.
        cluster: the cluster's entry, for a plugin that asks for it (``provideClusterInfo``).
        folder: where the kubeconfig is; a relative command with a slash starts there.
        source: the kubeconfig and context, for errors.
    """

    def __init__(self, spec: dict[str, t.Any], cluster: dict[str, t.Any], folder: str, source: str) -> None:
        command = str(spec.get("command") or "")
        self._spec = spec
        self._cluster = cluster
        self._source = source
        self._version = str(spec.get("apiVersion") or "")
        if not command or not self._version.startswith(_GROUP):
            raise self._failed("its exec entry needs a command and an apiVersion of client.authentication.k8s.io")
        if spec.get("interactiveMode") == "Always":
            raise self._failed("its program wants a terminal (interactiveMode: Always), and there is none")
        self._argv = [os.path.join(folder, command) if os.sep in command else command]
        self._argv += [str(argument) for argument in self._entries("args", str, int, float)]
        self._variables = {str(one.get("name")): str(one.get("value")) for one in self._entries("env", dict)}
        if "\0" in "".join([*self._argv, *self._variables, *self._variables.values()]):
            raise self._failed("its exec entry has a NUL character")
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until: datetime.datetime | None = None

    def login(self, seconds: float) -> str | None:
        """Run the program; the client certificate and key that it gives, as PEM text, or None for a token.

        Raises:
            AccessError: it fails, prints no credential, or runs for longer than ``seconds`` (then its process group is
                ended).
        """
        status = self._run(seconds)
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        self._token = str(status["token"]) if status.get("token") else None
        self._until = _moment(status.get("expirationTimestamp"))
        if certificate and key:
            return f"{certificate}\n{key}"
        if self._token is None:
            raise self._failed("its program printed neither a token nor a certificate")
        return None

    @property
    def has_token(self) -> bool:
        """Whether the last login gave a token."""
        return self._token is not None

    def header(self, seconds: float = LOGIN_SECONDS) -> str:
        """The header's value; an expired token is renewed within ``seconds``."""
        with self._lock:
            if self._until is not None and self._until <= datetime.datetime.now(datetime.UTC):
                self.login(seconds)
            if self._token is None:
                raise self._failed("its program printed no token")
            return f"Bearer {self._token}"

    def _entries(self, key: str, *kinds: type) -> list[t.Any]:
        """The entries of a list of ``exec``."""
        found = self._spec.get(key) or []
        if not isinstance(found, list) or not all(isinstance(one, kinds) for one in found):
            what = "texts" if str in kinds else "mappings"
            raise self._failed(f"{key} of its exec entry is not a list of {what}")
        return found

    def _run(self, seconds: float) -> dict[str, t.Any]:
        environ = {**os.environ, **self._variables, "KUBERNETES_EXEC_INFO": json.dumps(self._info())}
        try:
            output = _output_of(self._argv, environ, seconds)
        except (OSError, ValueError) as error:
            # The interpreter refuses a variable whose name has a "=" with a ValueError.
            problem = getattr(error, "strerror", None) or str(error)
            raise self._failed(f"its program {self._argv[0]!r} could not be run: {problem}") from None
        except _OutputTooLarge:
            raise self._failed(
                f"its program {self._argv[0]!r} printed more than {MAXIMUM_OUTPUT} bytes and was stopped"
            ) from None
        except subprocess.TimeoutExpired:
            raise self._failed(
                f"its program {self._argv[0]!r} did not end within {seconds:g} s and was stopped"
            ) from None
        except subprocess.CalledProcessError as error:
            raise self._failed(f"its program {self._argv[0]!r} ended with exit code {error.returncode}") from None
        # What it printed may hold a token, so it is never quoted.
        try:
            document = json.loads(output)
        except (ValueError, RecursionError):
            document = None
        status = document.get("status") if isinstance(document, dict) else None
        if (
            not isinstance(document, dict)
            or document.get("apiVersion") != self._version
            or not isinstance(status, dict)
        ):
            raise self._failed(f"its program {self._argv[0]!r} printed no ExecCredential of {self._version}")
        return status

    def _info(self) -> dict[str, t.Any]:
        """What the program is given in ``KUBERNETES_EXEC_INFO``."""
        info: dict[str, t.Any] = {"apiVersion": self._version, "kind": "ExecCredential", "spec": {"interactive": False}}
        if self._spec.get("provideClusterInfo"):
            known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
            cluster = {key: self._cluster[key] for key in known if self._cluster.get(key)}
            for one in self._cluster.get("extensions") or []:
                if isinstance(one, dict) and one.get("name") == _CONFIG_EXTENSION:
                    cluster["config"] = one.get("extension")
            info["spec"]["cluster"] = cluster
        return info

    def _failed(self, problem: str) -> AccessError:
        text = f"The user of the {self._source} could not log in: {clean_text(problem)}."
        return AccessError(text, next_step=_BY_HAND)


class _OutputTooLarge(Exception):
    """A program printed more than MAXIMUM_OUTPUT."""


def _output_of(argv: list[str], environ: dict[str, str], seconds: float) -> bytes:
    """The output of a program; its process group is ended when it does not end in time or prints too much."""
    # A library has no AnsibleModule whose run_command it could call.
    with subprocess.Popen(  # pylint: disable=ansible-bad-function
        argv,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        try:
            output = _read(program, Deadline(max(0.001, seconds)))
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            raise
    if program.returncode != 0:
        raise subprocess.CalledProcessError(program.returncode, argv[0])
    return output


def _read(program: subprocess.Popen[bytes], deadline: Deadline) -> bytes:
    """Read until the program has closed its output and ended; raises TimeoutExpired at the deadline."""
    output = bytearray()
    stream = t.cast("t.IO[bytes]", program.stdout)
    ready = select.poll()
    ready.register(stream, select.POLLIN)
    while ready.poll(deadline.remaining() * 1000):
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            program.wait(deadline.remaining())
            return bytes(output)
        output += chunk
        if len(output) > MAXIMUM_OUTPUT:
            raise _OutputTooLarge
    raise subprocess.TimeoutExpired(program.args, deadline.seconds)


def _moment(text: t.Any) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=datetime.UTC) if moment is not None and moment.tzinfo is None else moment
