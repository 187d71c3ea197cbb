# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS and proxies: whom we trust, as whom we come, and which way we go."""

from __future__ import annotations

import base64
import pathlib
import socketserver
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access, resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import StaticToken
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.proxies import proxy_from_environment
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.retry import retry
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.transport.pools import open_pools
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    AccessError,
    ApiTimeoutError,
    ApiUnreachableError,
)

from ..authorities import Authority, server_context
from ..scripted import Scripted, answer, claim

ONE = CLAIM.ref("team-a", "one")
OURS, THEIRS = Authority("ours"), Authority("theirs")
ANSWER = answer(200, claim())


def read(server: Scripted, **access: t.Any) -> Body:
    with Client(Access(server=server.url, **access)) as client:
        return client.get(ONE, Deadline(5.0))


def secure(folder: pathlib.Path, name: str = "localhost", *, client_authority: Authority | None = None) -> Scripted:
    """A server with a certificate of ours for 127.0.0.1, or for another name alone."""
    issued = OURS.issue(name, address="127.0.0.1" if name == "localhost" else None)
    return Scripted(ANSWER, tls=server_context(folder, issued, client_authority))


def test_server_of_our_authority_is_trusted(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path) as server:
        assert read(server, ca_pem=OURS.pem)


@pytest.mark.parametrize("authority", [THEIRS.pem, None], ids=["another", "system"])
def test_server_of_another_authority_is_not_trusted_and_sees_nothing(
    tmp_path: pathlib.Path, authority: str | None
) -> None:
    with secure(tmp_path) as server, pytest.raises(ApiUnreachableError) as caught:
        read(server, ca_pem=authority, credential=StaticToken("secret"))
    assert (caught.value.sent, caught.value.retryable) == (False, False)
    assert "not trusted" in str(caught.value)
    assert server.received == []


def test_server_of_another_name_is_not_trusted(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path, "kubernetes.default") as server, pytest.raises(ApiUnreachableError) as caught:
        read(server, ca_pem=OURS.pem)
    assert "127.0.0.1" in str(caught.value)
    assert not caught.value.retryable


def test_distrust_is_not_tried_again(tmp_path: pathlib.Path) -> None:
    began = time.monotonic()
    with secure(tmp_path) as server, pytest.raises(ApiUnreachableError):
        retry(Deadline(30.0), lambda: read(server, ca_pem=THEIRS.pem))
    assert time.monotonic() - began < 5.0


def test_server_name_is_checked_instead_of_the_host(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path, "kubernetes.default") as server:
        assert read(server, ca_pem=OURS.pem, server_name="kubernetes.default")


def test_server_name_of_another_is_not_trusted(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path) as server, pytest.raises(ApiUnreachableError, match="not trusted"):
        read(server, ca_pem=OURS.pem, server_name="kubernetes.default")


@pytest.mark.parametrize("server_name", [None, "kubernetes.default"])
def test_unverified_server_is_spoken_to(tmp_path: pathlib.Path, server_name: str | None) -> None:
    with secure(tmp_path, "elsewhere") as server:
        assert read(server, verify=False, server_name=server_name)


def test_client_certificate_is_shown(tmp_path: pathlib.Path) -> None:
    issued = THEIRS.issue("client")
    with secure(tmp_path, client_authority=THEIRS) as server:
        assert read(server, ca_pem=OURS.pem, client_pem=issued.certificate + issued.key)


def test_client_without_a_certificate_is_unreachable(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path, client_authority=THEIRS) as server, pytest.raises(ApiUnreachableError):
        read(server, ca_pem=OURS.pem)
    assert server.received == []


def test_server_that_speaks_no_tls_is_unreachable() -> None:
    class Plain(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            self.request.recv(65536)

    with socketserver.TCPServer(("127.0.0.1", 0), Plain) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        access = Access(server=f"https://127.0.0.1:{server.server_address[1]}")
        with Client(access) as client, pytest.raises(ApiUnreachableError) as caught:
            client.get(ONE, Deadline(5.0))
        thread.join()
    assert not caught.value.sent


def test_handshake_that_hangs_is_given_up_in_time() -> None:
    began = time.monotonic()
    with Scripted([60.0]) as server:
        access = Access(server=server.url.replace("http:", "https:"))
        with Client(access) as client, pytest.raises(ApiTimeoutError):
            client.get(ONE, Deadline(0.3))
    assert time.monotonic() - began < 2.0


def test_slow_answer_over_tls_is_given_up_in_time(tmp_path: pathlib.Path) -> None:
    script = [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", *([0.02, b" "] * 900)]
    began = time.monotonic()
    tls = server_context(tmp_path, OURS.issue("localhost", address="127.0.0.1"))
    with (
        Scripted(script, tls=tls) as server,
        Client(Access(server=server.url, ca_pem=OURS.pem)) as client,
        pytest.raises(ApiTimeoutError),
    ):
        client.get(ONE, Deadline(0.4))
    assert time.monotonic() - began < 2.0


def test_bundle_with_comments_in_any_language_is_read(tmp_path: pathlib.Path) -> None:
    with secure(tmp_path) as server:
        assert read(server, ca_pem=f"# Főtanúsítvány\n{OURS.pem}")


@pytest.mark.parametrize(
    "text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_authority_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(AccessError, match="is not a PEM certificate"):
        open_pools(Access(server="https://h", ca_pem=text))


ISSUED, ANOTHER = THEIRS.issue("client"), THEIRS.issue("client")


@pytest.mark.parametrize(
    "text",
    ["", "nothing", ISSUED.certificate, ISSUED.certificate + ANOTHER.key, ISSUED.certificate + ISSUED.encrypted_key],
    ids=["empty", "no-pem", "no-key", "another-key", "encrypted-key"],
)
def test_client_certificate_that_is_none_is_refused_without_asking(text: str) -> None:
    with pytest.raises(AccessError, match="do not belong together"):
        open_pools(Access(server="https://h", client_pem=text or " "))


def test_client_key_is_left_in_no_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    open_pools(Access(server="https://h", client_pem=ISSUED.certificate + ISSUED.key))
    assert list(tmp_path.iterdir()) == []


def test_proxy_is_asked_for_plain_addresses() -> None:
    with Scripted(ANSWER) as proxy, Client(Access(server="http://h:1", proxy=proxy.url)) as client:
        assert client.get(ONE)
    assert proxy.received[0].line.startswith("GET http://h:1/apis/")


def test_proxy_is_asked_for_a_tunnel_and_told_no_secret() -> None:
    refusal = b"HTTP/1.1 403 No\r\n\r\n"
    with Scripted(refusal) as proxy:
        access = Access(server="https://h:6443", proxy=proxy.url, credential=StaticToken("hush"))
        with Client(access) as client, pytest.raises(ApiUnreachableError) as caught:
            client.get(ONE)
    assert proxy.received[0].line.startswith("CONNECT h:6443 ")
    assert proxy.received[0].all("Authorization") == []
    assert not caught.value.sent


def test_proxy_is_told_its_own_password() -> None:
    with Scripted(ANSWER) as proxy:
        address = proxy.url.replace("http://", "http://ann:p%40ss@")
        with Client(Access(server="http://h:1", proxy=address)) as client:
            client.get(ONE)
    pair = base64.b64encode(b"ann:p@ss").decode()
    assert proxy.received[0].all("Proxy-Authorization") == [f"Basic {pair}"]


@pytest.mark.parametrize("proxy", ["ftp://u:hush@p", "socks5://u:hush@p", "http://u:hush@[p", "http://u:hush@p:port"])
def test_proxy_that_is_none_is_refused_unquoted(proxy: str) -> None:
    with pytest.raises(AccessError) as caught:
        open_pools(Access(server="https://h", proxy=proxy))
    assert "hush" not in str(caught.value)


def test_unreachable_proxy_does_not_show_its_password() -> None:
    access = Access(server="https://h", proxy="http://ann:hush@127.0.0.1:1")
    with Client(access) as client, pytest.raises(ApiUnreachableError) as caught:
        client.get(ONE)
    assert "hush" not in str(caught.value)
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://h", {}, None),
        ("https://h", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h", {"https_proxy": "http://low", "HTTPS_PROXY": "http://up"}, "http://low"),
        ("https://h", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://h", {"HTTP_PROXY": "http://p"}, None),
        ("http://h", {"HTTP_PROXY": "http://p"}, "http://p"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, None),
    ],
)
def test_environment_names_the_proxy(server: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_from_environment(server, environ) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "server", "direct"),
    [
        ("*", "https://h", True),
        ("h", "https://h", True),
        ("H.Example", "https://h.example", True),
        ("example", "https://h.example", True),
        ("ample", "https://h.example", False),
        (".example", "https://h.example", True),
        (".example", "https://example", False),
        ("*.example", "https://h.example", True),
        ("other, h ,", "https://h", True),
        ("h:6443", "https://h:6443", True),
        ("h:6443", "https://h", False),
        ("h:443", "https://h", True),
        ("10.0.0.0/8", "https://10.96.0.1", True),
        ("10.0.0.0/8", "https://11.96.0.1", False),
        ("10.0.0.0/8", "https://h", False),
        ("10.96.0.1", "https://10.96.0.1:443", True),
        ("10.96.0.1:443", "https://10.96.0.1", True),
        ("fd00::/8", "https://[fd00::1]", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:443", False),
        ("fd00::1", "https://[fd00::1]", True),
        ("", "https://h", False),
        (" , ,", "https://h", False),
        ("10.0.0.0/99", "https://10.0.0.1", False),
    ],
)
def test_environment_names_who_is_reached_directly(no_proxy: str, server: str, direct: bool) -> None:
    environ = {"HTTPS_PROXY": "http://p", "NO_PROXY": no_proxy}
    assert (proxy_from_environment(server, environ) is None) is direct


def test_environment_of_the_task_is_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://of-the-process")
    options = {"host": "https://h", "api_key": "k"}
    assert resolve_access(options, {}).proxy is None
    assert resolve_access(options, {"HTTPS_PROXY": "http://of-the-task"}).proxy == "http://of-the-task"


def test_option_beats_the_environment() -> None:
    options = {"host": "https://h", "api_key": "k", "proxy": "http://option"}
    assert resolve_access(options, {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}).proxy == "http://option"
