"""`ibstat` text as a fabric."""

from __future__ import annotations

import pytest

from meshwright.sources.fabrics import load_fabric
from meshwright.sources.topology.adapters import read_adapters
from meshwright.spec.errors import InputError


def port(rate: str = "400", state: str = "Active", layer: str = "InfiniBand", physical: str = "LinkUp") -> str:
    return (
        f"\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: 29\n"
        f"\t\tLink layer: {layer}\n"
    )


def ibstat(*ports: str) -> str:
    return "".join(
        f"CA 'mlx5_{number}'\n\tCA type: MT4129\n\tNumber of ports: 1\n{text}" for number, text in enumerate(ports)
    )


@pytest.mark.parametrize(
    ("rate", "layer", "fabric"),
    [
        ("100", "InfiniBand", "infiniband-edr"),
        ("200", "InfiniBand", "infiniband-hdr"),
        ("400", "InfiniBand", "infiniband-ndr"),
        ("400", "Ethernet", "roce-400g"),
        ("100", "Ethernet", "roce-100g"),
    ],
)
def test_the_rate_and_the_link_layer_name_the_fabric(rate: str, layer: str, fabric: str) -> None:
    read = read_adapters(ibstat(*[port(rate, layer=layer)] * 8), "ports.txt")
    assert read.fabric == load_fabric(fabric)
    assert read.ports == 8
    assert read.warnings == ()


def test_a_rate_that_no_fabric_of_the_catalog_has_is_kept_and_said() -> None:
    read = read_adapters(ibstat(port("56")), "ports.txt")
    assert read.fabric.port_bytes_per_s == 56e9 / 8
    assert read.fabric.name == "infiniband-56g"
    assert "56 Gb/s" in read.warnings[0]
    assert "infiniband-edr" in read.warnings[0]


def test_a_port_that_is_down_is_left_out_and_named() -> None:
    read = read_adapters(
        ibstat(port(), port(state="Down", physical="Polling"), port(state="Initializing")), "ports.txt"
    )
    assert read.ports == 1
    assert [("mlx5_1:1" in w, "mlx5_2:1" in w) for w in read.warnings] == [(True, False), (False, True)]
    assert all("left out" in warning for warning in read.warnings)


@pytest.mark.parametrize(
    ("rates", "ports", "gigabits"),
    [
        (["56", "40"], 2, 40),  # 80 together, more than 56 alone
        (["400"] * 4 + ["25"], 4, 400),  # 1,600 without the slow port, 125 with it
        (["400", "200", "200"], 3, 200),  # 600 together
    ],
)
def test_ports_of_unequal_rate_are_used_so_that_they_carry_most(rates: list[str], ports: int, gigabits: int) -> None:
    read = read_adapters(ibstat(*map(port, rates)), "ports.txt")
    assert (read.ports, read.fabric.port_bytes_per_s) == (ports, gigabits * 1e9 / 8)
    assert any("unequal" in w or "left out" in w for w in read.warnings)


def test_one_link_layer_is_used() -> None:
    read = read_adapters(ibstat(port("200"), port("200"), port("100", layer="Ethernet")), "ports.txt")
    assert (read.fabric.name, read.ports) == ("infiniband-hdr", 2)
    assert "mlx5_2:1 (100 Gb/s, ethernet)" in read.warnings[0]


def test_ibstatus_is_read_alike() -> None:
    text = "".join(
        f"Infiniband device 'mlx5_{n}' port 1 status:\n\tdefault gid: fe80\n\tstate:\t\t 4: ACTIVE\n"
        "\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n\n"
        for n in range(4)
    )
    read = read_adapters(text, "ports.txt")
    assert (read.fabric.name, read.ports, read.warnings) == ("infiniband-hdr", 4, ())


def test_a_quoted_paste_is_read_alike() -> None:
    text = ibstat(*[port()] * 2)
    quoted = "".join(f"> {line}\r\n" for line in text.split("\n"))
    assert read_adapters(quoted, "ports.txt") == read_adapters(text, "ports.txt")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ["no port of ibstat", "paste the output of `ibstat`"]),
        ("GPU0 X NV4", ["no port of ibstat"]),
        (ibstat(port(state="Down", physical="Disabled")), ["no port is active", "mlx5_0:1 is Down", "@FABRIC"]),
        (ibstat(port("unknown")), ["mlx5_0:1", "rate can't be read"]),
    ],
)
def test_what_is_no_fabric_is_refused(text: str, pieces: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_adapters(text, "ports.txt")
    for piece in ("ports.txt", *pieces):
        assert piece in str(caught.value)
