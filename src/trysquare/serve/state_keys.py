"""The keys that seal questions to the person, as the settings name them."""

from __future__ import annotations

from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.serve.options import SHORTEST_KEY
from trysquare.settings.model import Settings


def state_keys(settings: Settings) -> tuple[bytes, ...]:
    """The keys that seal questions to the person, from the settings and from the keys' file."""
    keys = [key.get_secret_value() for key in settings.http.state_keys]
    file = settings.http.state_keys_file
    if file is not None:
        keys.extend(_lines(file))
    for key in keys:
        if len(key.encode()) < SHORTEST_KEY:
            raise ConfigurationError(
                f"a state key needs at least {SHORTEST_KEY} bytes.",
                where=str(file or "http.state_keys"),
                hint="`python3 -c 'import secrets; print(secrets.token_hex(32))'` makes one.",
            )
    return tuple(key.encode() for key in keys)


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigurationError(f"http.state_keys_file cannot be read: {reason}.", where=str(file)) from None
    return [line.strip() for line in lines if line.strip()]
