"""Which addresses of the network belong to everybody, and which to this machine, its neighbours or its provider."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_PROVIDERS = {IPv4Address("168.63.129.16"): "a service address of a cloud"}
"""Addresses that look public and are answered by the machine's own provider."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def parse_address(text: str) -> Address:
    """An address as the resolver writes it; the name of an interface behind `%` does not count."""
    return ip_address(text.partition("%")[0])


def why_not_public(address: Address) -> str | None:
    """What an address is if it is not public, in a few words; None for a public one."""
    if isinstance(address, IPv6Address):
        return _why_not_public_six(address)
    return _PROVIDERS.get(address) or _kind(address)


def _why_not_public_six(address: IPv6Address) -> str | None:
    inner = _inner(address)
    if inner is not None:
        # Networks without IPv4 of their own reach every public host by such an address, so those must stay allowed.
        reason = why_not_public(inner)
        return f"{reason}, written inside an IPv6 address" if reason else None
    if address in _TRANSLATED_LOCALLY or address.is_site_local:
        return "a private address"
    return _kind(address)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries, in each of the ways to carry one."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if address in _TEREDO:
        return address.teredo[1] if address.teredo else None
    if address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _kind(address: Address) -> str | None:
    kinds = (
        (address.is_unspecified, "the address of no machine"),
        (address.is_loopback, "this machine itself"),
        (address.is_link_local, "a link-local address, where clouds keep their metadata"),
        (address.is_multicast, "a multicast address"),
        (address.is_reserved or not address.is_global, "a private or reserved address"),
    )
    return next((said for found, said in kinds if found), None)
