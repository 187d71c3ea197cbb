# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances share no path, port, address or name."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from tools.cluster.failures import CannotRun
from tools.cluster.layout import INSTANCES, PORT_OFFSETS, Layout, cache_folder, layout_from

EVERY = [Layout(instance) for instance in INSTANCES]


def test_no_port_is_used_twice() -> None:
    ports = [layout.port(use) for layout in EVERY for use in PORT_OFFSETS]
    assert len(set(ports)) == len(ports)


def test_ports_stay_below_node_ports_and_ephemeral_ports() -> None:
    assert max(layout.port(use) for layout in EVERY for use in PORT_OFFSETS) < 30000


PARTS = [
    "name",
    "state",
    "run",
    "link",
    "pod_subnet",
    "service_subnet",
    "node_address",
    "proxy_address",
    "pod_network",
]


@pytest.mark.parametrize("part", PARTS)
def test_no_path_name_or_address_is_used_twice(part: str) -> None:
    assert len({getattr(layout, part) for layout in EVERY}) == len(EVERY)


def test_addresses_are_inside_their_subnets() -> None:
    for layout in EVERY:
        assert ipaddress.ip_address(layout.node_address) in ipaddress.ip_network(layout.pod_subnet)
        assert ipaddress.ip_address(layout.proxy_address) in ipaddress.ip_network(layout.pod_subnet)
        assert ipaddress.ip_address(layout.service_address) in ipaddress.ip_network(layout.service_subnet)


def test_names_fit_the_kernel() -> None:
    for layout in EVERY:
        assert len(layout.link) < 16
        assert len(str(layout.containerd_socket)) < 108


def test_the_first_instance_is_the_default() -> None:
    assert layout_from({}) == layout_from({"NAMZU_CLUSTER_INSTANCE": ""}) == Layout(1)


def test_the_environment_selects_the_instance() -> None:
    assert layout_from({"NAMZU_CLUSTER_INSTANCE": "2"}) == Layout(2)


def test_the_kubeconfig_of_an_instance_selects_it() -> None:
    own = {"KUBECONFIG": str(Layout(3).kubeconfig)}
    assert layout_from(own) == Layout(3)
    assert layout_from({**own, "NAMZU_CLUSTER_INSTANCE": "2"}) == Layout(2)
    assert layout_from({"KUBECONFIG": "/home/someone/.kube/config"}) == Layout(1)


@pytest.mark.parametrize("wrong", ["0", "10", "-1", "two", "1.5", "../1", "²"])
def test_a_wrong_instance_is_refused(wrong: str) -> None:
    with pytest.raises(CannotRun, match="NAMZU_CLUSTER_INSTANCE"):
        layout_from({"NAMZU_CLUSTER_INSTANCE": wrong})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NAMZU_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/namzu-sandbox"),
        ({"HOME": "/h"}, "/h/.cache/namzu-sandbox"),
        ({"NAMZU_CACHE": "", "HOME": "/h"}, "/h/.cache/namzu-sandbox"),
    ],
)
def test_the_cache_folder(environment: dict[str, str], expected: str) -> None:
    assert cache_folder(environment) == Path(expected)
