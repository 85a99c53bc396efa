"""How a server is started or reached, as its file writes it: what a person is shown and what is pinned.

Variables stay unfilled here, so that a new token in the environment is no change, and no secret is shown or kept.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from trysquare.core.secrets import MASK, is_secret_name, masked_text
from trysquare.core.untrusted import one_line

_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{20,}")
"""A part of a path that is as long and mixed as only keys are."""
_VARIABLE = re.compile(r"\$\{[^}]*\}")
_LONGEST = 20_000
_OPTION = re.compile(r"--?([A-Za-z0-9_-]+)")
_PAIR = re.compile(r"([^:=\s]+)([:=]\s*)(.*)", re.DOTALL)


def shown_command(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """The command line for a person, with literal secrets masked. Of the environment only the names."""
    line = shlex.join([command, *_masked_args(args)])
    folder = f" (in {cwd})" if cwd else ""
    names = f" (with {', '.join(sorted(env))})" if env else ""
    return one_line(f"{line}{folder}{names}", _LONGEST)


def shown_url(url: str) -> str:
    """The address for a person, without a user, a query's values or a fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(no valid address)"
    host = parts.netloc.rpartition("@")[2]
    names = [part.partition("=")[0] for part in parts.query.split("&") if part]
    query = "?" + "&".join(f"{name}={MASK}" for name in names) if names else ""
    base = f"{parts.scheme}://{host}" if parts.scheme else host
    path = "/".join(MASK if _RANDOM.fullmatch(part) else masked_text(part) for part in parts.path.split("/"))
    return one_line(f"{base}{path}{query}", _LONGEST)


def launch_digest(*written: object) -> str:
    """The fingerprint of whatever decides what is started or reached."""
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _masked_args(args: Sequence[str]) -> Iterator[str]:
    is_value = False
    for arg in args:
        yield _masked_value(arg) if is_value else _masked_arg(arg)
        option = _OPTION.fullmatch(arg)
        is_value = option is not None and is_secret_name(option.group(1))


def _masked_arg(arg: str) -> str:
    """`--token=…`, `API_KEY=…`, `Authorization: …` and addresses lose what may be secret in them."""
    if arg.startswith(("http://", "https://")):
        return shown_url(arg)
    pair = _PAIR.fullmatch(arg)
    if pair is not None and is_secret_name(pair.group(1)):
        return f"{pair.group(1)}{pair.group(2)}{_masked_value(pair.group(3))}"
    return masked_text(arg)


def _masked_value(value: str) -> str:
    return value if _VARIABLE.fullmatch(value) else MASK
