# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig, read: which cluster, which user, which namespace.

Tokens, certificates, and passwords that are in the file, or in files that it names, are read here, and a login program
(``exec``) is run by ``exec_plugin``. An ``auth-provider`` is left to ``kubernetes.config``, imported only then because
its import costs about five times what all other imports cost together.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import typing as t

from ...errors import AccessError, MissingDependencyError
from ...text import clean_text
from .credentials import Credential, FileToken, LibraryCredential, StaticHeader, StaticToken, within
from .exec_plugin import LOGIN_SECONDS, ExecPlugin

try:
    import yaml
except ImportError:  # reported when a kubeconfig is read: sanity imports this file without libraries
    HAS_YAML = False
else:
    HAS_YAML = True

DEFAULT_PATH = "~/.kube/config"

Value = t.TypeVar("Value", str, bool, "list[t.Any]", "dict[str, t.Any]")

_TYPE_NAMES: dict[type, str] = {str: "text", bool: "boolean", list: "list", dict: "mapping"}


@dataclasses.dataclass(frozen=True)
class Login:
    """What one source says about the API server; its text form shows no secret.

    Attributes:
        server: ``https://host:port`` with an optional path, without a trailing slash; empty for none.
        credential: gives the ``Authorization`` header's value, read anew when it may have changed; None with
            client certificates or anonymous access.
        ca_pem: certificates that sign the server's, as PEM text; None for the system's.
        client_pem: client certificate and key, as PEM text; None for none.
        verify: whether the server's certificate is checked.
        server_name: the name to check it against, when it is not the host's.
        proxy: the HTTP proxy's URL, or None to go there directly.
        impersonate_user, impersonate_groups: on whose behalf requests are made.
        namespace: the namespace that the context or the service account names, or None.
        source: where this came from, for error messages.
    """

    server: str = ""
    credential: Credential | None = dataclasses.field(default=None, repr=False)
    ca_pem: str | None = dataclasses.field(default=None, repr=False)
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = dataclasses.field(default=None, repr=False)
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    namespace: str | None = None
    source: str = "options"


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A named entry of a kubeconfig, with the folder that its relative paths start from."""

    name: str
    data: dict[str, t.Any] = dataclasses.field(repr=False)
    folder: str = ""


class _Merged:
    """Several kubeconfigs as one: the first to name an entry or the current context wins (kubectl's rule)."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], _Entry] = {}
        self.current_context = ""

    def add(self, config: t.Any, folder: str, source: str) -> None:
        if not isinstance(config, dict):
            raise AccessError(f"The {source} is not a kubeconfig: it is not a mapping.")
        for section, key in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            items = config.get(section) or []
            for item in items if isinstance(items, list) else [items]:
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise AccessError(f"The {source} is not a kubeconfig: an entry of {section} has no name.")
                data = item.get(key) or {}
                if not isinstance(data, dict):
                    entry = f"{section} {_shown(item['name'])}"
                    raise AccessError(f"The {source} is not a kubeconfig: {entry} is not a mapping.")
                self.entries.setdefault((section, item["name"]), _Entry(item["name"], data, folder))
        self.current_context = self.current_context or str(config.get("current-context") or "")

    def find(self, section: str, name: str, source: str) -> _Entry:
        if (section, name) in self.entries:
            return self.entries[(section, name)]
        known = clean_text(", ".join(sorted(key[1] for key in self.entries if key[0] == section))) or "none"
        raise AccessError(
            f"The {source} has no entry {_shown(name)!r} under {section}; it has: {known}.",
            next_step="Name one of these, or use another kubeconfig.",
        )


def login_from_kubeconfig(
    kubeconfig: str | dict[str, t.Any], context: str | None = None, seconds: float = LOGIN_SECONDS
) -> Login:
    """Read one context of a kubeconfig.

    Args:
        kubeconfig: paths separated as in ``KUBECONFIG``, or the content as a dict.
        context: the context's name, or None for the current one.
        seconds: bounds a login by a program or a provider; a program that runs longer is ended.

    Raises:
        AccessError: the file is missing or no kubeconfig, or it has no such context, cluster or user.
        MissingDependencyError: PyYAML, or for ``auth-provider`` the kubernetes client, is not installed.
    """
    source = "kubeconfig given as data" if isinstance(kubeconfig, dict) else f"kubeconfig {_shown(kubeconfig)}"
    merged = _load(kubeconfig, source)
    name = context or merged.current_context
    if not name:
        raise AccessError(f"The {source} has no current context.", next_step="Set context.")
    context_entry = merged.find("contexts", name, source)
    chosen = context_entry.data
    cluster = merged.find("clusters", str(chosen.get("cluster", "")), source)
    user = merged.find("users", str(chosen["user"]), source) if chosen.get("user") else _Entry("", {})
    login = Login(
        source=f"{source}, context {_shown(name)}",
        server=_typed(cluster, "server", str) or "",
        ca_pem=_pem(cluster, "certificate-authority"),
        verify=not _typed(cluster, "insecure-skip-tls-verify", bool),
        server_name=_typed(cluster, "tls-server-name", str),
        proxy=_typed(cluster, "proxy-url", str),
        impersonate_user=_typed(user, "as", str),
        impersonate_groups=tuple(str(group) for group in _typed(user, "as-groups", list) or ()),
        namespace=_typed(context_entry, "namespace", str),
    )
    if user.data.get("auth-provider"):
        return _with_library_credential(login, kubeconfig, name, seconds)
    if user.data.get("exec"):
        plugin = ExecPlugin(_typed(user, "exec", dict) or {}, cluster.data, user.folder, login.source)
        client_pem = plugin.login(seconds)
        return dataclasses.replace(login, credential=plugin if plugin.has_token else None, client_pem=client_pem)
    return dataclasses.replace(login, credential=_static_credential(user), client_pem=_client_pem(user))


def _typed(entry: _Entry, field: str, kind: type[Value]) -> Value | None:
    """A field that must be of its type: ``insecure-skip-tls-verify: "false"`` is true to a careless reader."""
    value = entry.data.get(field)
    if value is None or value == "" or isinstance(value, kind):
        return value or None
    raise AccessError(f"The kubeconfig's entry {_shown(entry.name)} has a {field} that is no {_TYPE_NAMES[kind]}.")


def _load(kubeconfig: str | dict[str, t.Any], source: str) -> _Merged:
    merged = _Merged()
    if isinstance(kubeconfig, dict):
        merged.add(kubeconfig, "", source)
        return merged
    if not HAS_YAML:
        raise MissingDependencyError("PyYAML is needed to read a kubeconfig.", next_step="Install PyYAML here.")
    paths = [os.path.expanduser(path) for path in kubeconfig.split(os.pathsep) if path]
    found = [path for path in paths if os.path.exists(path)]
    if not found:
        raise AccessError(f"The {source} does not exist.", next_step="Check the path on the machine where this runs.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in found:
        try:
            with open(path, encoding="utf-8") as stream:
                config = yaml.load(stream, Loader=loader)  # noqa: S506 - a safe loader, in C where there is one
        except OSError as error:
            raise AccessError(f"The kubeconfig {_shown(path)} cannot be read: {error.strerror}.") from None
        except (yaml.YAMLError, ValueError, RecursionError):
            # The parser's own text quotes the lines around the fault, which may hold a token. Dates that are none, and
            # bytes that are no UTF-8, are a ValueError to it.
            raise AccessError(
                f"The kubeconfig {_shown(path)} is not YAML.", next_step="Check it with kubectl."
            ) from None
        merged.add(config, os.path.dirname(os.path.abspath(path)), f"kubeconfig {_shown(path)}")
    return merged


def _static_credential(user: _Entry) -> Credential | None:
    data = user.data
    if data.get("token"):
        return StaticToken(str(data["token"]))
    if data.get("tokenFile"):
        return FileToken(os.path.join(user.folder, str(data["tokenFile"])))
    if data.get("username") and data.get("password"):
        pair = f"{data['username']}:{data['password']}".encode()
        return StaticHeader("Basic " + base64.b64encode(pair).decode())
    return None


def _client_pem(user: _Entry) -> str | None:
    certificate, key = _pem(user, "client-certificate"), _pem(user, "client-key")
    return f"{certificate}\n{key}" if certificate and key else None


def _pem(entry: _Entry, field: str) -> str | None:
    """``<field>-data`` in base64, else the file that ``<field>`` names (kubectl's precedence)."""
    data = entry.data.get(f"{field}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=False).decode("utf-8")
        except ValueError:
            raise AccessError(f"The {field}-data of {_shown(entry.name)} is not base64 of a PEM text.") from None
    if not entry.data.get(field):
        return None
    path = os.path.join(entry.folder, str(entry.data[field]))
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "not a PEM text"
        raise AccessError(f"The {field} file {_shown(path)} of {_shown(entry.name)} cannot be read: {cause}.") from None


def _with_library_credential(login: Login, kubeconfig: str | dict[str, t.Any], context: str, seconds: float) -> Login:
    try:
        import kubernetes.client  # pylint: disable=import-outside-toplevel
        import kubernetes.config  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise MissingDependencyError(
            f"The user of the {login.source} logs in by an auth-provider, which needs the Python library kubernetes.",
            next_step="Install kubernetes here, or use a token.",
        ) from None
    configuration = kubernetes.client.Configuration()
    config: t.Any = kubernetes.config
    load = config.load_kube_config_from_dict if isinstance(kubeconfig, dict) else config.load_kube_config
    try:
        within(
            seconds,
            lambda: load(kubeconfig, context=context, client_configuration=configuration, persist_config=False),
        )
    except TimeoutError:
        raise AccessError(
            f"The user of the {login.source} could not log in: its auth-provider took longer than {seconds:g} s.",
            next_step="Log in by kubectl, and see what it prints.",
        ) from None
    except Exception as error:  # noqa: BLE001 - the library raises whatever the provider raised
        raise AccessError(
            f"The user of the {login.source} could not log in: {type(error).__name__}.",
            next_step="Log in by kubectl, and see what it prints.",
        ) from None
    client_pem = None
    if configuration.cert_file and configuration.key_file:
        client_pem = _text(configuration.cert_file) + "\n" + _text(configuration.key_file)
    credential = LibraryCredential(configuration) if configuration.api_key else None
    if credential is None and client_pem is None:
        # The library writes a failure of the provider to the log and continues without a credential.
        raise AccessError(
            f"The user of the {login.source} could not log in: its auth-provider gave no token and no certificate.",
            next_step="Log in by kubectl, and see what it prints.",
        )
    return dataclasses.replace(login, credential=credential, client_pem=client_pem)


def _shown(name: str) -> str:
    """A name or a path of the kubeconfig, or of its files, for an error."""
    return clean_text(name, 300)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()
