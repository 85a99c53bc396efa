"""Addresses: whose a resource is. No server stands in place of us, or of another server.

Our own scheme is reserved, and what our own resources answer to stays theirs. An address that two servers claim, by a
list or by the form of a template, is nobody's: each of them has it under an address of ours that names the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

SCHEME = "trysquare"
OF_SERVERS = f"{SCHEME}://gateway/servers/"
_BEGINNING = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """What one server says that it has: addresses, and what the addresses of its templates begin with."""

    addresses: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()

    def covers(self, address: str) -> bool:
        """Whether an address is the server's, as far as it can be told without asking it."""
        return address in self.addresses or address.startswith(self.beginnings)

    def overlaps(self, beginning: str) -> bool:
        """Whether an address that begins so may be the server's."""
        return (
            any(beginning.startswith(own) or own.startswith(beginning) for own in self.beginnings)
            or any(address.startswith(beginning) for address in self.addresses)
        )  # fmt: skip


def claims_of(addresses: Iterable[str], forms: Iterable[str]) -> Claims:
    """The claims of a server that lists these addresses and templates."""
    return Claims(
        addresses=frozenset(filter(may_claim, addresses)),
        beginnings=tuple(filter(may_claim, map(beginning_of, forms))),
    )


def beginning_of(form: str) -> str:
    """What every address of a template begins with."""
    return form.partition("{")[0]


def may_claim(address: str) -> bool:
    """Whether an address, or what a template begins with, can be a server's at all.

    It has to say of which kind it is, since a template of any kind would be everybody's, and it must not be of ours.
    """
    return _BEGINNING.match(address) is not None and not is_reserved(address)


def is_reserved(address: str) -> bool:
    """Whether an address can only be one of ours, however it is written."""
    scheme = address.strip().partition(":")[0].lower()
    return scheme == SCHEME or scheme.startswith(f"{SCHEME}+")


def address_at(server: str, address: str) -> str:
    """The address of a server's resource that names the server."""
    return f"{OF_SERVERS}{quote(server, safe='')}/{address}"


class Addresses:
    """The claims of all servers, and which of them hold."""

    def __init__(
        self,
        claims: Mapping[str, Claims],
        *,
        is_own: Callable[[str], bool] = lambda address: False,
        own_beginnings: Iterable[str] = (),
    ) -> None:
        self._claims = dict(claims)
        self._is_own = is_own
        self._own = Claims(beginnings=tuple(beginning for beginning in own_beginnings if beginning))

    def is_ours(self, address: str) -> bool:
        """Whether an address is none of any server's."""
        return is_reserved(address) or self._is_own(address)

    def claimants(self, address: str) -> list[str]:
        """The servers that say an address is theirs."""
        return [server for server, claims in self._claims.items() if claims.covers(address)]

    def named(self, address: str) -> tuple[str, str] | None:
        """The server and its own address, where an address names the server and is one of its."""
        for server, claims in self._claims.items():
            start = address_at(server, "")
            if address.startswith(start) and claims.covers(inner := address.removeprefix(start)):
                return server, inner
        return None

    def shown(self, server: str, address: str) -> str:
        """The address under which everybody has a resource of a server."""
        holds = not self.is_ours(address) and not [one for one in self.claimants(address) if one != server]
        return address if holds else address_at(server, address)

    def shown_form(self, server: str, form: str) -> str:
        """A template of a server, as everybody has it."""
        beginning = beginning_of(form)
        others = [claims for name, claims in self._claims.items() if name != server]
        holds = not any(claims.overlaps(beginning) for claims in (*others, self._own))
        return form if holds else address_at(server, form)
