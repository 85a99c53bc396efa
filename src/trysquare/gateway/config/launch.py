"""Launch of a server as its file writes it: masked display, digest, and the pin that a human approves.

Variables are not filled in here: a new token in the environment is not a change, and no secret is displayed or stored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from trysquare.core.context import local_principal
from trysquare.core.errors import ConsentNeeded
from trysquare.core.redaction import MASK, is_secret_name, mask_tokens
from trysquare.core.untrusted import one_line
from trysquare.gateway.models import ServerConfig
from trysquare.store.pins import CommandPins

logger = logging.getLogger("trysquare.gateway")

_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{20,}")
"""A path segment that is as long and mixed as only keys are."""
_VARIABLE = re.compile(r"\$\{[^}]*\}")
_LONGEST = 20_000
_OPTION = re.compile(r"--?([A-Za-z0-9_-]+)")
_PAIR = re.compile(r"([^:=\s]+)([:=]\s*)(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnapprovedServer:
    """A server that is not used until a human has approved how it is started or reached now."""

    server: ServerConfig
    before: str | None
    """The approved launch; None for a server that was never used."""

    def describe(self) -> str:
        """The change, for a human or a model."""
        name, shown = self.server.name, self.server.shown
        if self.before is None:
            return f"Server `{name}` was never used before:\n  {shown}"
        if self.before == shown:
            return f"Values that are not displayed have changed for server `{name}`:\n  {shown}"
        return f"Server `{name}` is started or reached differently.\n  before: {self.before}\n  now:    {shown}"


class LaunchPins:
    """Approved launch of each server. The first use pins it, unless `first_use` is "hold". Methods block on the store.

    The user wrote the file and serves it, so the first use is theirs; later changes may be anybody's.
    """

    def __init__(self, pins: CommandPins) -> None:
        self._pins = pins

    def check(self, server: ServerConfig) -> None:
        """Pin a server at its first use. Raises `ConsentNeeded` for one that changed since."""
        if server.first_use != "hold" and self._pins.find(server.location.file, server.name) is None:
            # A warning, so that it is logged by default.
            logger.warning("first use of server %s (%s): %s", server.name, server.location, server.shown)
            self._pins.pin_first(server.location.file, server.name, **_pin(server))
        pending = self.pending(server)
        if pending is not None:
            raise ConsentNeeded(
                f"{pending.describe()}\nA human must approve it first.",
                instruction=f"Ask the user to review the change and to run `trysquare gateway approve {server.name}`.",
                fields={"server": server.name, "outcome": "not_sent"},
            )

    def pending(self, server: ServerConfig) -> UnapprovedServer | None:
        """The launch that a human has to approve before this server is used, or None."""
        pin = self._pins.find(server.location.file, server.name)
        if pin is None:
            return UnapprovedServer(server=server, before=None) if server.first_use == "hold" else None
        return None if pin.digest == server.launch_digest else UnapprovedServer(server=server, before=pin.shown)

    def is_approved(self, server: ServerConfig) -> bool:
        """Whether it was used or approved before, exactly as it is now."""
        pin = self._pins.find(server.location.file, server.name)
        return pin is not None and pin.digest == server.launch_digest

    def approve(self, server: ServerConfig) -> None:
        """Pin a server as it is now, on behalf of a human."""
        self._pins.approve(server.location.file, server.name, **_pin(server))


def _pin(server: ServerConfig) -> dict[str, Any]:
    return {"digest": server.launch_digest, "shown": server.shown, "by": local_principal().subject}


def display_command(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """The command line with literal secrets masked, and the names of its environment."""
    line = shlex.join([command, *_masked_args(args)])
    folder = f" (in {cwd})" if cwd else ""
    names = f" (with {', '.join(sorted(env))})" if env else ""
    return one_line(f"{line}{folder}{names}", _LONGEST)


def display_url(url: str) -> str:
    """The URL without user, query values and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(invalid URL)"
    host = parts.netloc.rpartition("@")[2]
    names = [part.partition("=")[0] for part in parts.query.split("&") if part]
    query = "?" + "&".join(f"{name}={MASK}" for name in names) if names else ""
    base = f"{parts.scheme}://{host}" if parts.scheme else host
    path = "/".join(MASK if _RANDOM.fullmatch(part) else mask_tokens(part) for part in parts.path.split("/"))
    return one_line(f"{base}{path}{query}", _LONGEST)


def launch_digest(*written: object) -> str:
    """Digest of everything that decides what is started or reached."""
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def secret_positions(args: Sequence[str]) -> list[int]:
    """Which arguments of a command line hold a literal secret."""
    return [at for at, (arg, shown) in enumerate(zip(args, _masked_args(args), strict=True)) if arg != shown]


def _masked_args(args: Sequence[str]) -> Iterator[str]:
    is_value = False
    for arg in args:
        yield _masked_value(arg) if is_value else _masked_arg(arg)
        option = _OPTION.fullmatch(arg)
        is_value = option is not None and is_secret_name(option.group(1))


def _masked_arg(arg: str) -> str:
    """Mask the secret part of `--token=…`, `API_KEY=…`, `Authorization: …` and URLs."""
    if arg.startswith(("http://", "https://")):
        return display_url(arg)
    pair = _PAIR.fullmatch(arg)
    if pair is not None and is_secret_name(pair.group(1)):
        return f"{pair.group(1)}{pair.group(2)}{_masked_value(pair.group(3))}"
    return mask_tokens(arg)


def _masked_value(value: str) -> str:
    return value if _VARIABLE.fullmatch(value) else MASK
