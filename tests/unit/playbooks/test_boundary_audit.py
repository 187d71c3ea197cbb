# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report for a security reviewer: one page that needs nothing from elsewhere, every cell, and what has changed."""

from __future__ import annotations

import html.parser
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import (
    translate,
    translate_ingress,
)

ROOT = pathlib.Path(__file__).resolve().parents[3]
LABELS = {"sandbox.namzu.ai/template": "python"}
VOID = {"meta", "link", "br", "wbr", "hr", "img", "input"}

#: What somebody may call things in manifests.
HOSTILE = "</script><img src=x onerror=alert(1)>{{ '{{' }} 7 * 7 }}"


def objects(*more: t.Any) -> list[t.Any]:
    place: dict[str, t.Any] = {"namespace": "agents", "labels": LABELS}
    pods = [("sandbox-1", LABELS, "10.0.0.1"), ("sandbox-2", LABELS, "10.0.0.2"), ("db", {"app": "db"}, "10.0.0.3")]
    plays = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "awx"}}}]
    return [
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels},
                "spec": {"containers": []},
                "status": {"podIP": ip},
            }
            for name, labels, ip in pods
        ),
        translate("dns_only", name="namzu-python-egress", **place),
        translate_ingress(plays, name="namzu-python-ingress", **place),
        *more,
    ]


def policy(name: str, **spec: t.Any) -> dict[str, t.Any]:
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": {"podSelector": {"matchLabels": LABELS}, **spec}}


WEB = policy(
    "web", policyTypes=["Egress"], egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443}]}]
)
ODD = policy(HOSTILE, policyTypes=["Ingress"], ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}]}])


def audit(folder: pathlib.Path, manifests: list[t.Any], **more: t.Any) -> tuple[int, str, str]:
    """Run the playbook without ``audit_egress``; its exit code, its output, and the page that it wrote."""
    report = folder / "report.html"
    (folder / "manifests.yml").write_text(yaml.safe_dump_all(manifests))
    (folder / "ansible.cfg").touch()
    variables = {
        "audit_namespace": "agents",
        "audit_report": str(report),
        "audit_manifests": [str(folder / "manifests.yml")],
        **more,
    }
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    arguments = ["-m", "ansible", "playbook", "namzu.sandbox.boundary_audit", "-e", json.dumps(variables)]
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environ, timeout=300, check=False
    )
    output = done.stdout + done.stderr
    assert report.exists(), output
    return done.returncode, output, report.read_text()


def write(folder: pathlib.Path, manifests: list[t.Any]) -> str:
    """The page of an audit against ``dns_only`` that ends with exit code 0."""
    code, output, page = audit(folder, manifests, audit_egress={"kind": "dns_only"})
    assert code == 0, output
    return page


class Page(html.parser.HTMLParser):
    """A page, read strictly: every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text: dict[str, str] = {}
        self._section = ""
        self.feed(text)
        self.close()
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.attributes.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag in {"section", "script"}:
            self._section = str(found["id"])
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text[self._section] = self.text.get(self._section, "") + data
        if self.rows and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Page, str]:
    """The page of a first and of a second report, and the second one's text."""
    folder = tmp_path_factory.mktemp("audit")
    first = write(folder, objects())
    second = write(folder, objects(WEB, ODD))
    return Page(first), Page(second), second


def test_the_page_needs_nothing_from_elsewhere(pages: tuple[Page, Page, str]) -> None:
    for page in pages[:2]:
        for tag, found in page.attributes:
            assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
            assert str(found.get("href", "#")).startswith("#")
            assert not {"src", "srcset", "style", "action"} & found.keys()
            assert not [name for name in found if name.startswith("on")]
        assert [found.get("type") for tag, found in page.attributes if tag == "script"] == ["application/json"]
    for word in ("http:", "https:", "url(", "@import"):
        assert word not in pages[2]


def test_every_row_has_a_cell_for_every_peer_with_both_directions_and_evidence(pages: tuple[Page, Page, str]) -> None:
    page = pages[1]
    head, *rows = page.rows
    assert [row[0] for row in rows] == ["agents: app=db1 pod", "agents: sandbox.namzu.ai/template=python2 pods"]
    for row in rows:
        assert len(row) == len(head)
        for cell in row[1:]:
            assert "itself" in cell or ("to the peer" in cell and "from the peer" in cell)
    sandbox = dict(zip(head, rows[1], strict=True))
    assert "NetworkPolicy agents/web, egress rule 0" in sandbox["The internet"]
    assert "Closed by NetworkPolicy agents/namzu-python-ingress" in " ".join(sandbox["The internet"].split())


def test_a_state_is_never_told_by_colour_alone(pages: tuple[Page, Page, str]) -> None:
    for cell in (cell for row in pages[1].rows[1:] for cell in row[1:] if "itself" not in cell):
        assert cell.count("open") + cell.count("closed") >= 2


def test_the_second_report_tells_what_has_changed(pages: tuple[Page, Page, str]) -> None:
    first, second, _text = pages
    assert "no earlier report" in first.text["changes"]
    changes = " ".join(second.text["changes"].split())
    assert "agents: sandbox.namzu.ai/template=python to The internet" in changes
    assert "closed ⟶, now ● open TCP 443" in changes
    assert "from agents: app=db" in changes


def test_findings_name_policy_and_example(pages: tuple[Page, Page, str]) -> None:
    words = " ".join(pages[1].text["findings"].split())
    assert "NetworkPolicy agents/web, rule 0" in words
    assert "for example 198.51.100.77 on TCP 443" in words
    assert "No policy closes it" in words  # the database, which nobody has a policy for


def test_what_the_next_report_compares_with_is_in_the_page(pages: tuple[Page, Page, str]) -> None:
    data = json.loads(pages[1].text["audit-data"])
    assert (data["namespace"], data["selector"]) == ("agents", "")
    assert data["cells"]["agents: sandbox.namzu.ai/template=python | egress | The internet"] == ["open", "TCP 443"]


def test_names_are_text_whatever_is_in_them(pages: tuple[Page, Page, str]) -> None:
    assert HOSTILE not in pages[2]
    assert "onerror=alert" in pages[1].text["matrix"]


def test_what_could_not_be_read_is_said(pages: tuple[Page, Page, str]) -> None:
    assert "Nothing: every source" in pages[1].text["unread"]


def sandboxes(*more: t.Any) -> list[t.Any]:
    """A namespace in which every pod is a sandbox with its template's boundary, and further objects."""
    return [body for body in objects(*more) if body["metadata"]["name"] != "db"]


FOR_ALL = {**WEB, "metadata": {"name": "for-all"}, "spec": {**WEB["spec"], "podSelector": {}}}
LET_IN = policy("let-in", policyTypes=["Ingress"], ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "x"}}}]}])


def test_without_a_request_each_pod_is_judged_against_the_boundary_of_its_template(tmp_path: pathlib.Path) -> None:
    code, output, page = audit(tmp_path, sandboxes(), audit_fail=True)
    assert code == 0, output
    assert badge(page) == "good"


@pytest.mark.parametrize("added", [FOR_ALL, LET_IN], ids=["egress", "ingress"])
def test_a_policy_that_opens_more_than_the_boundary_of_the_template_fails_the_audit(
    tmp_path: pathlib.Path, added: dict[str, t.Any]
) -> None:
    code, _output, page = audit(tmp_path, sandboxes(added), audit_fail=True)
    assert code != 0
    assert badge(page) == "bad"
    assert f"NetworkPolicy agents/{added['metadata']['name']}" in Page(page).text["findings"]


def test_a_namespace_without_any_boundary_fails_the_audit(tmp_path: pathlib.Path) -> None:
    policies = {"NetworkPolicy"}
    bare = [body for body in sandboxes(FOR_ALL) if body["kind"] not in policies or body is FOR_ALL]
    code, _output, page = audit(tmp_path, bare, audit_fail=True)
    assert code != 0
    assert badge(page) == "bad"


def test_a_pod_without_a_template_has_no_boundary(tmp_path: pathlib.Path) -> None:
    code, _output, page = audit(tmp_path, objects(), audit_fail=True)
    assert code != 0
    assert "app=db" in Page(page).text["findings"]


@pytest.mark.parametrize(("allowed", "code"), [(False, 2), (True, 0)])
def test_a_page_about_no_pod_is_never_green(tmp_path: pathlib.Path, allowed: bool, code: int) -> None:
    found, _output, page = audit(
        tmp_path, sandboxes(), audit_label_selector="app=none", audit_fail=True, audit_allow_empty=allowed
    )
    assert found == code
    assert badge(page) == "neutral"


def badge(page: str) -> str:
    """The class of the page's badge: ``good``, ``bad`` or ``neutral``."""
    (classes,) = [str(found["class"]) for tag, found in Page(page).attributes if "verdict" in str(found.get("class"))]
    return classes.removeprefix("verdict ")
