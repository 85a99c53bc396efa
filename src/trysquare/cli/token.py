"""`trysquare token`: bearer tokens for the server over HTTP."""

from __future__ import annotations

import argparse
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from trysquare.app import state_file
from trysquare.catalog.profiles import ROOMS
from trysquare.cli.options import add_place_options, load
from trysquare.cli.output import print_json, print_table
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.metadata import RIGHTS
from trysquare.core.nearest import nearest
from trysquare.store.database import open_database
from trysquare.store.tokens import TokenInfo, Tokens

SCOPES = (*ROOMS, "prompts", "resources", *RIGHTS)
_LIFETIME = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NAME = re.compile(r"[\w.@-]{1,64}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what can be done with tokens."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    create = actions.add_parser("create", help="make a token and print it, once", allow_abbrev=False)
    create.add_argument("name", metavar="NAME", help="who will use it; calls are made in this name")
    create.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help="open this toolset only, or give a right such as server:restart; can be repeated",
    )
    create.add_argument("--expires", metavar="TIME", help="such as 90d, 12h or 30m; without it, never")
    listing = actions.add_parser("list", help="show the tokens, without their secrets", allow_abbrev=False)
    revoke = actions.add_parser("revoke", help="end a token", allow_abbrev=False)
    revoke.add_argument("name", metavar="NAME")
    for action in (create, listing):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (create, listing, revoke):
        add_place_options(action)


def run(arguments: argparse.Namespace) -> int:
    """Create, list or revoke."""
    action = {"create": _create, "list": _list, "revoke": _revoke}[arguments.action]
    with _open_tokens(arguments) as tokens:
        action(tokens, arguments)
    return 0


@contextmanager
def _open_tokens(arguments: argparse.Namespace) -> Generator[Tokens]:
    loaded = load(arguments)
    database = open_database(state_file(loaded.settings, loaded.origins))
    try:
        yield Tokens(database)
    finally:
        database.close()


def _create(tokens: Tokens, arguments: argparse.Namespace) -> None:
    if not _NAME.fullmatch(arguments.name):
        raise ConfigurationError("a name has 1 to 64 letters, digits, `_`, `.`, `@` or `-`.", where="token create")
    for scope in arguments.scope or ():
        _require_scope(scope)
    lifetime = None if arguments.expires is None else read_lifetime(arguments.expires)
    text, info = tokens.create(arguments.name, by=_me(), scopes=arguments.scope, lifetime=lifetime)
    if arguments.json:
        print_json({"token": text, **_as_json(info)})
        return
    print(text)
    print(f"\nThis is the token of {info.name}. It is shown only now. Clients send it as:")
    print("  Authorization: Bearer TOKEN")
    print("A server that already runs without tokens asks for them after its next start.")


def _require_scope(scope: str) -> None:
    if scope not in SCOPES:
        near = nearest(scope, SCOPES)
        hint = f"Did you mean `{near[0]}`?" if near else f"The scopes are {', '.join(SCOPES)}."
        raise ConfigurationError(f"unknown scope `{scope}`.", where="--scope", hint=hint)


def read_lifetime(text: str) -> float:
    """Seconds of `90d`, `12h`, `30m` or `10s`."""
    match = _LIFETIME.fullmatch(text)
    if match is None or int(match[1]) == 0 or len(match[1]) > 6:
        raise ConfigurationError(f"expected a time such as 90d, 12h or 30m; got `{text}`.", where="--expires")
    return float(int(match[1]) * _SECONDS[match[2]])


def _list(tokens: Tokens, arguments: argparse.Namespace) -> None:
    found = tokens.all()
    if arguments.json:
        print_json([_as_json(info) for info in found])
    elif not found:
        print("There are no tokens. `trysquare token create NAME` makes one.")
    else:
        rows = [(info.name, _scopes(info), info.created, _state(info), info.last_used or "never") for info in found]
        print_table(("NAME", "ROOMS", "CREATED", "STATE", "LAST USED"), rows)


def _revoke(tokens: Tokens, arguments: argparse.Namespace) -> None:
    info = tokens.revoke(arguments.name, by=_me())
    print(f"The token of {info.name} is revoked.")


def _as_json(info: TokenInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "scopes": None if info.scopes is None else sorted(info.scopes),
        "created": info.created,
        "expires": _time(info.expires),
        "last_used": info.last_used,
        "revoked": info.revoked,
    }


def _scopes(info: TokenInfo) -> str:
    return "all" if info.scopes is None else ",".join(sorted(info.scopes))


def _state(info: TokenInfo) -> str:
    if info.revoked is not None:
        return f"revoked {info.revoked}"
    if info.expires is None:
        return "valid"
    ended = datetime.now(UTC).timestamp() >= info.expires
    return f"{'expired' if ended else 'valid until'} {_time(info.expires)}"


def _time(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def _me() -> str:
    return local_principal().subject
