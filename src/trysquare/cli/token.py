"""`trysquare token`: create, list and revoke bearer tokens for HTTP."""

from __future__ import annotations

import argparse
import re
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from trysquare.catalog.toolset import TOOLSETS
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options, load
from trysquare.cli.terminal import print_json, print_listing
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.metadata import RIGHTS
from trysquare.core.text import closest_names
from trysquare.providers import state_file
from trysquare.store.database import open_database
from trysquare.store.tokens import TokenInfo, Tokens

SCOPES = (*TOOLSETS, "prompts", "resources", *RIGHTS)
_LIFETIME = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NAME = re.compile(r"[\w.@-]{1,64}")
_ABOUT_SCOPE = "allow this toolset only, or grant a right such as server:restart; can be repeated"
_CREATE = (
    option("name", metavar="NAME", help="name of the user or program that gets the token"),
    option("--scope", action="append", metavar="TOOLSET", help=_ABOUT_SCOPE),
    option("--expires", metavar="TIME", help="lifetime such as 90d, 12h or 30m (default: unlimited)"),
    JSON,
    add_place_options,
)
_NAMED = option("name", metavar="NAME", help="the name of the token")


@contextmanager
def _open_tokens(arguments: argparse.Namespace) -> Generator[Tokens]:
    loaded = load(arguments)
    with closing(open_database(state_file(loaded.settings, loaded.origins))) as database:
        yield Tokens(database)


def create_token(arguments: argparse.Namespace) -> None:
    """Create a token and print it."""
    if not _NAME.fullmatch(arguments.name):
        raise ConfigurationError("a name has 1 to 64 letters, digits, `_`, `.`, `@` or `-`.", where="token create")
    for scope in arguments.scope or ():
        _require_scope(scope)
    lifetime = None if arguments.expires is None else read_lifetime(arguments.expires)
    with _open_tokens(arguments) as tokens:
        by = local_principal().subject
        text, info = tokens.create(arguments.name, by=by, scopes=arguments.scope, lifetime=lifetime)
    if arguments.json:
        print_json({"token": text, **_as_json(info)})
        return
    print(text)
    print(f"\nToken for {info.name}. Copy it now; it will not be shown again. Clients send it as:")
    print("  Authorization: Bearer TOKEN")
    print("A server that is running without tokens requires them after a restart.")


def _require_scope(scope: str) -> None:
    if scope not in SCOPES:
        near = closest_names(scope, SCOPES)
        hint = f"Did you mean `{near[0]}`?" if near else f"The scopes are {', '.join(SCOPES)}."
        raise ConfigurationError(f"unknown scope `{scope}`.", where="--scope", hint=hint)


def read_lifetime(text: str) -> float:
    """Seconds of `90d`, `12h`, `30m` or `10s`."""
    match = _LIFETIME.fullmatch(text)
    if match is None or int(match[1]) == 0 or len(match[1]) > 6:
        raise ConfigurationError(f"expected a time such as 90d, 12h or 30m; got `{text}`.", where="--expires")
    return float(int(match[1]) * _SECONDS[match[2]])


def list_tokens(arguments: argparse.Namespace) -> None:
    """Print the tokens without their secrets."""
    with _open_tokens(arguments) as tokens:
        found = tokens.all()
    rows = [(info.name, _scopes(info), info.created, _state(info), info.last_used or "never") for info in found]
    headings = ("NAME", "TOOLSETS", "CREATED", "STATE", "LAST USED")
    empty = "No tokens. Create one with `trysquare token create NAME`."
    print_listing([_as_json(info) for info in found], headings, rows, json=arguments.json, empty=empty)


def revoke_token(arguments: argparse.Namespace) -> None:
    """Revoke a token."""
    with _open_tokens(arguments) as tokens:
        info = tokens.revoke(arguments.name, by=local_principal().subject)
    print(f"Revoked the token for {info.name}.")


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


_CREATED = ("trysquare token create ada", "trysquare token create ci --scope tools --expires 90d")
_LISTED = ("trysquare token list", "trysquare token list --json")
_REVOKED = ("trysquare token revoke ada", "trysquare token revoke ada --project ../shop")
COMMAND = Command(
    subcommands={
        "create": Command(create_token, _CREATE, "create a token and print it once", examples=_CREATED),
        "list": Command(
            list_tokens, (JSON, add_place_options), "show the tokens without their secrets", examples=_LISTED
        ),
        "revoke": Command(revoke_token, (_NAMED, add_place_options), "revoke a token", examples=_REVOKED),
    },
    examples=(_CREATED[0], _LISTED[0]),
)
