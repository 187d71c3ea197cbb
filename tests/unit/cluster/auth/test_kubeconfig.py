# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading kubeconfigs: merging, relative paths, precedence of fields, and files that are none."""

from __future__ import annotations

import base64
import contextlib
import os
import pathlib
import typing as t

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import (
    FILE_TOKEN_SECONDS,
    FileToken,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.kubeconfig import Login, login_from_kubeconfig
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import AccessError

SECRET = "hush-hush-7"


def config(cluster: dict[str, t.Any], user: dict[str, t.Any], name: str = "main") -> dict[str, t.Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **cluster}}],
        "users": [{"name": name, "user": user}],
    }


def write(path: pathlib.Path, content: dict[str, t.Any] | str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def token(login: Login) -> str:
    assert login.credential is not None
    return login.credential.header()


def refusal(kubeconfig: str | dict[str, t.Any], context: str | None = None) -> str:
    with pytest.raises(AccessError) as caught:
        login_from_kubeconfig(kubeconfig, context)
    return str(caught.value)


def test_missing_context_names_those_that_are_there() -> None:
    message = refusal(config({}, {}), "other")
    assert "'other'" in message
    assert "it has: main" in message


def test_no_current_context_is_said() -> None:
    content = config({}, {})
    del content["current-context"]
    assert "no current context" in refusal(content)


@pytest.mark.parametrize("section", ["clusters", "users"])
def test_context_that_points_nowhere_is_said(section: str) -> None:
    content = config({}, {})
    content[section] = []
    assert f"no entry 'main' under {section}" in refusal(content)


def test_context_without_a_user_is_anonymous() -> None:
    content = config({}, {"token": SECRET})
    del content["contexts"][0]["context"]["user"]
    assert login_from_kubeconfig(content).credential is None


def test_first_file_to_name_an_entry_wins(tmp_path: pathlib.Path) -> None:
    one = write(tmp_path / "1", config({}, {"token": "of-one"}, "shared"))
    two = write(tmp_path / "2", {**config({}, {"token": "of-two"}, "shared"), "current-context": "two"})
    login = login_from_kubeconfig(os.pathsep.join((one, two)))
    assert token(login) == "Bearer of-one"


def test_parts_of_one_context_may_stand_in_several_files(tmp_path: pathlib.Path) -> None:
    whole = config({}, {"token": SECRET})
    parts = [{key: whole[key]} for key in ("clusters", "users", "contexts", "current-context")]
    paths = [write(tmp_path / str(number), part) for number, part in enumerate(parts)]
    login = login_from_kubeconfig(os.pathsep.join(paths))
    assert (login.server, token(login)) == ("https://main", f"Bearer {SECRET}")


def test_missing_files_of_a_list_are_passed_over(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "config", config({}, {}))
    assert login_from_kubeconfig(os.pathsep.join(("/no/such/file", "", path))).server == "https://main"


def test_list_without_any_file_is_refused() -> None:
    assert "does not exist" in refusal("/no/such/file")


def test_relative_paths_start_at_the_file_that_names_them(tmp_path: pathlib.Path) -> None:
    one = write(tmp_path / "one" / "config", {"clusters": config({"certificate-authority": "ca"}, {})["clusters"]})
    rest = config({}, {"tokenFile": "sub/token", "client-certificate": "cert", "client-key": "../two/key"})
    two = write(tmp_path / "two" / "config", {**rest, "clusters": []})
    write(tmp_path / "one" / "ca", "AUTHORITY")
    for name in ("sub/token", "cert", "key"):
        write(tmp_path / "two" / name, name.upper())
    login = login_from_kubeconfig(os.pathsep.join((one, two)))
    assert (login.ca_pem, login.client_pem, token(login)) == ("AUTHORITY", "CERT\nKEY", "Bearer SUB/TOKEN")


def test_home_is_expanded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "config", config({}, {}))
    assert login_from_kubeconfig("~/config").server == "https://main"


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key"])
def test_data_beats_the_file(field: str) -> None:
    data = base64.b64encode(b"DATA").decode()
    entry = {f"{field}-data": data, field: "/no/such/file"}
    both = {"client-certificate-data": data, "client-key-data": data}
    login = login_from_kubeconfig(config(entry if "authority" in field else {}, {**both, **entry}))
    assert "DATA" in str(login.ca_pem if "authority" in field else login.client_pem)


def test_token_beats_the_token_file() -> None:
    login = login_from_kubeconfig(config({}, {"token": SECRET, "tokenFile": "/no/such/file"}))
    assert token(login) == f"Bearer {SECRET}"


def test_every_field_of_the_cluster_is_read() -> None:
    fields = {"insecure-skip-tls-verify": True, "tls-server-name": "name", "proxy-url": "http://p"}
    login = login_from_kubeconfig(config(fields, {"as": "ann", "as-groups": ["a"]}))
    assert (login.verify, login.server_name, login.proxy) == (False, "name", "http://p")
    assert (login.impersonate_user, login.impersonate_groups) == ("ann", ("a",))


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"insecure-skip-tls-verify": "false"}, {}),
        ({"server": 7}, {}),
        ({"tls-server-name": ["x"]}, {}),
        ({"proxy-url": {}}, {}),
        ({}, {"as": 7}),
        ({}, {"as-groups": "admins"}),
    ],
    ids=str,
)
def test_field_of_the_wrong_type_is_refused(cluster: dict[str, t.Any], user: dict[str, t.Any]) -> None:
    assert next(iter({**cluster, **user})) in refusal(config({"server": "https://x", **cluster}, user))


def test_data_that_is_no_base64_is_refused_unquoted() -> None:
    message = refusal(config({"certificate-authority-data": f"=={SECRET}\N{SNOWMAN}"}, {}))
    assert "certificate-authority-data" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    "content",
    [
        f"users: [{{token: {SECRET}",
        f"a: 1\n\tb: {SECRET}\n",
        f"token: {SECRET}: {SECRET}",
        f"!!python/object:os.system {SECRET}",
        f"when: 2026-99-99\ntoken: {SECRET}",
        "[" * 5000 + SECRET,
        f"&a [*a, *b] # {SECRET}",
        f"- {SECRET}",
        SECRET,
        "7",
        "",
        f"contexts: 7 # {SECRET}",
        f"users: {{name: {SECRET}}}",
        f"clusters: [{SECRET}]",
        f"users: [{{user: {{token: {SECRET}}}}}]",
        f"users: [{{name: u, user: {SECRET}}}]",
    ],
    ids=lambda content: content[:20].replace("\n", " "),
)
def test_file_that_is_no_kubeconfig_is_refused_unquoted(tmp_path: pathlib.Path, content: str) -> None:
    path = write(tmp_path / "config", content)
    message = refusal(path)
    assert path in message
    assert SECRET not in message


def test_file_that_is_no_text_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\x00token")
    assert "not YAML" in refusal(str(path))


def test_folder_is_refused(tmp_path: pathlib.Path) -> None:
    assert "cannot be read: Is a directory" in refusal(str(tmp_path))


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key"])
def test_named_file_that_cannot_be_read_is_said(field: str) -> None:
    entry = {field: "/no/such/file"}
    message = refusal(config(entry, {}) if "authority" in field else config({}, entry))
    assert f"The {field} file /no/such/file of main cannot be read" in message


KEYS = st.sampled_from(
    ["name", "cluster", "user", "context", "clusters", "users", "contexts", "current-context", "server", "token"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@given(
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_no_content_breaks_the_reader(content: t.Any) -> None:
    with contextlib.suppress(AccessError):
        login_from_kubeconfig(content if isinstance(content, dict) else {"contexts": content}, "c")


class Times:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_token_file_is_read_again_after_its_time(tmp_path: pathlib.Path) -> None:
    path, times = tmp_path / "token", Times()
    path.write_text("one\n")
    credential = FileToken(str(path), times)
    assert credential.header() == "Bearer one"
    path.write_text("two\n")
    times.now = FILE_TOKEN_SECONDS - 1
    assert credential.header() == "Bearer one"
    times.now = FILE_TOKEN_SECONDS
    assert credential.header() == "Bearer two"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"], ids=["missing", "empty", "blank", "binary"])
def test_token_file_that_gives_none_is_refused(tmp_path: pathlib.Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AccessError) as caught:
        FileToken(str(path)).header()
    assert str(path) in str(caught.value)
