"""Which addresses count as public."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.net.fetch import parse_address, why_not_public


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_are_public(address: str) -> None:
    assert why_not_public(parse_address(address)) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "100.100.100.200", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "168.63.129.16", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
        "2001:db8::1", "64:ff9b:1::1",
    ],
)  # fmt: skip
def test_addresses_of_this_machine_its_neighbours_and_its_provider_are_not(address: str) -> None:
    assert why_not_public(parse_address(address))


@given(st.ip_addresses(v=4))
def test_an_address_written_inside_another_is_judged_by_itself(inner: IPv4Address) -> None:
    is_public = why_not_public(inner) is None
    mapped, translated = IPv6Address(f"::ffff:{inner}"), IPv6Address(f"64:ff9b::{inner}")
    six_to_four = IPv6Address((0x2002 << 112) | (int(inner) << 80) | 1)
    for outer in (mapped, translated, six_to_four):
        assert (why_not_public(outer) is None) == is_public
