"""A fabric's ports become bytes per second of one accelerator."""

from __future__ import annotations

import pytest

from meshwright.sources.fabrics import KEYS, fabric_from, load_fabric
from meshwright.sources.fields import Fields
from meshwright.spec.errors import InputError, UnknownName


def test_ethernet_has_one_port_per_host_and_infiniband_one_per_adapter() -> None:
    assert load_fabric("ethernet-400g").ports(8) == 1
    assert load_fabric("infiniband-hdr").ports(8) == 8
    assert load_fabric("roce-100g").ports(16) == 16
    assert load_fabric("efa-400g").ports(8) == 4


def test_oversubscription_divides_the_rate() -> None:
    level = load_fabric("infiniband-ndr").level(nodes=4, accelerators_per_node=8, ports_per_node=8, oversubscription=2)
    assert level.bytes_per_s == 25e9
    assert level.port_bytes_per_s == 50e9
    assert level.size == 32


def test_a_wrong_name_brings_near_names() -> None:
    with pytest.raises(UnknownName, match="ethernet-100g"):
        load_fabric("ethernet-100")


def test_a_rate_per_node_and_a_rule_for_ports_exclude_each_other() -> None:
    content = {"name": "n", "port_bits_per_s": 1e9, "latency_s": 0, "efficiency": 1, "node_ports": 2}
    assert fabric_from(Fields("f.yaml", content, KEYS)).ports(8) == 2
    with pytest.raises(InputError, match="node_ports and default_ports are both given"):
        fabric_from(Fields("f.yaml", content | {"default_ports": "one"}, KEYS))
