# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Who we are and where the API server is: options, environment, kubeconfig, mounted service account.

Precedence, highest first:

1. the task's options; then the ``K8S_AUTH_*`` variables of the same names, as kubernetes.core reads them;
2. with a ``host`` and a credential among these, no file is read at all;
3. else a kubeconfig: the ``kubeconfig`` option or variable, else ``KUBECONFIG``, else, when a context is named or no
   service account is mounted, ``~/.kube/config``; single options then override what the file says;
4. else the service account that is mounted into the pod we run in.
"""

from __future__ import annotations

import dataclasses
import os
import typing as t
import urllib.parse

from ...errors import AccessError
from .credentials import FileToken, StaticToken
from .exec_plugin import LOGIN_SECONDS
from .kubeconfig import DEFAULT_PATH, Login, login_from_kubeconfig
from .proxies import proxy_from_environment

#: Where the kubelet mounts a pod's service account (Kubernetes documentation, "Configure Service Accounts for Pods").
SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"

#: Option → the variables that may hold it, first found wins (kubernetes.core, ``AUTH_ARG_MAP``).
ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "kubeconfig": ("K8S_AUTH_KUBECONFIG",),
    "context": ("K8S_AUTH_CONTEXT",),
    "host": ("K8S_AUTH_HOST",),
    "api_key": ("K8S_AUTH_API_KEY",),
    "ca_cert": ("K8S_AUTH_CA_CERT", "K8S_AUTH_SSL_CA_CERT"),
    "client_cert": ("K8S_AUTH_CLIENT_CERT", "K8S_AUTH_CERT_FILE"),
    "client_key": ("K8S_AUTH_CLIENT_KEY", "K8S_AUTH_KEY_FILE"),
    "validate_certs": ("K8S_AUTH_VALIDATE_CERTS", "K8S_AUTH_VERIFY_SSL"),
    "proxy": ("K8S_AUTH_PROXY",),
    "impersonate_user": ("K8S_AUTH_IMPERSONATE_USER",),
    "impersonate_groups": ("K8S_AUTH_IMPERSONATE_GROUPS",),
}


class Access(Login):
    """Everything that a connection to one API server needs: a login that is complete."""


def resolve_access(
    options: t.Mapping[str, t.Any],
    environ: t.Mapping[str, str],
    service_account_dir: str = SERVICE_ACCOUNT_DIR,
    seconds: float = LOGIN_SECONDS,
) -> Access:
    """Find the way to the API server.

    Args:
        options: the ``access`` options of a verb; None values count as not given.
        environ: the environment to look into (a task's ``environment:`` included).
        service_account_dir: where a pod's service account would be mounted.
        seconds: bounds the login program or the auth provider that a kubeconfig names.

    Returns:
        A complete Access; no request has been sent.

    Raises:
        AccessError: nothing usable was given, a file is missing or unreadable, a context does not exist.
    """
    given = _given(options, environ)
    login = _login(given, environ, service_account_dir, seconds)
    server = _server(str(given.get("host") or login.server), login)
    complete = dataclasses.replace(
        login,
        server=server,
        credential=StaticToken(str(given["api_key"])) if given.get("api_key") else login.credential,
        ca_pem=_read(given["ca_cert"], "ca_cert") if given.get("ca_cert") else login.ca_pem,
        client_pem=_client_pem(given) or login.client_pem,
        verify=given.get("validate_certs", login.verify),
        proxy=given.get("proxy") or login.proxy or proxy_from_environment(server, environ),
        impersonate_user=given.get("impersonate_user") or login.impersonate_user,
        impersonate_groups=tuple(given.get("impersonate_groups") or login.impersonate_groups),
    )
    return Access(**vars(complete))


def _given(options: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> dict[str, t.Any]:
    given: dict[str, t.Any] = {}
    for option, variables in ENVIRONMENT.items():
        value = options.get(option)
        if value is None:
            value = next((environ[name] for name in variables if environ.get(name)), None)
            if value is not None and option == "validate_certs":
                value = value.lower() not in ("0", "false", "no", "off")
            elif value is not None and option == "impersonate_groups":
                value = [group for group in value.split(",") if group]
        if value is not None:
            given[option] = value
    return given


def _server(address: str, login: Login) -> str:
    if not address:
        raise AccessError(
            f"No API server is named by the {login.source}.", next_step="Give host, or a cluster with a server in it."
        )
    server = address if "://" in address else f"https://{address}"
    if not _is_address(server):
        # It is not quoted: a password may stand in it.
        raise AccessError(
            f"The API server's address of the {login.source} is no address of the form https://host:port/path.",
            next_step="Correct host, or server in the kubeconfig.",
        )
    return server.rstrip("/")


def _is_address(server: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(server)
        complete = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        return False
    return complete and parts.username is None and not parts.query and not parts.fragment


def _login(
    given: t.Mapping[str, t.Any], environ: t.Mapping[str, str], service_account_dir: str, seconds: float
) -> Login:
    has_credential = given.get("api_key") or (given.get("client_cert") and given.get("client_key"))
    if given.get("host") and has_credential:
        return Login(source="options")
    context = given.get("context")
    kubeconfig = given.get("kubeconfig") or environ.get("KUBECONFIG")
    if kubeconfig:
        return login_from_kubeconfig(kubeconfig, context, seconds)
    if not context and environ.get("KUBERNETES_SERVICE_HOST") and os.path.isfile(f"{service_account_dir}/token"):
        return _login_from_service_account(environ, service_account_dir)
    default = os.path.expanduser(DEFAULT_PATH)
    if os.path.isfile(default):
        return login_from_kubeconfig(default, context, seconds)
    if given.get("host"):
        return Login(source="options")
    raise AccessError(
        "There is no way to an API server: no host and credential, no kubeconfig (option, K8S_AUTH_KUBECONFIG, "
        f"KUBECONFIG, {DEFAULT_PATH}) and no mounted service account.",
        next_step="Set kubeconfig (and context), or host with api_key.",
    )


def _login_from_service_account(environ: t.Mapping[str, str], directory: str) -> Login:
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    namespace_file = f"{directory}/namespace"
    return Login(
        source="mounted service account",
        server=f"https://{host}:{port}",
        credential=FileToken(f"{directory}/token"),
        ca_pem=_read(f"{directory}/ca.crt", "service account"),
        namespace=_read(namespace_file, "service account").strip() if os.path.isfile(namespace_file) else None,
    )


def _client_pem(given: t.Mapping[str, t.Any]) -> str | None:
    certificate, key = given.get("client_cert"), given.get("client_key")
    if not certificate and not key:
        return None
    if not (certificate and key):
        raise AccessError("client_cert and client_key belong together; one is missing.", next_step="Give both or none.")
    return _read(certificate, "client_cert") + "\n" + _read(key, "client_key")


def _read(path: str, what: str) -> str:
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(
            f"The {what} file {path} cannot be read: {getattr(error, 'strerror', None) or 'not a text file'}.",
            next_step="Check the path and its permissions on the machine where this runs.",
        ) from None
