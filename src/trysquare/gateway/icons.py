"""Icons that servers give their tools, prompts and resources, as far as clients of the gateway get them."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from trysquare.core.json import as_list, as_object
from trysquare.core.metadata import Icon
from trysquare.gateway.apps import LONGEST, is_public

MOST_ICONS: Final = 4
MAX_DATA: Final = 8 * 1024
"""Characters of an icon that is a `data:` URI. It stands in every list."""
_MOST_SIZES: Final = 8
# No SVG: it may hold scripts, which a client might run where it embeds the picture.
_DATA = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}")
_TYPE = re.compile(r"image/[a-z0-9.+-]{1,40}")
_SIZE = re.compile(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any")


def read_icons(given: Any) -> tuple[Icon, ...]:
    """The first icons of an entry that are valid and safe to show; the others are left out."""
    found = (_icon(as_object(one)) for one in as_list(given)[: 4 * MOST_ICONS])
    return tuple(icon for icon in found if icon is not None)[:MOST_ICONS]


def _icon(entry: dict[str, Any]) -> Icon | None:
    source, kind, sizes = entry.get("src"), entry.get("mimeType"), as_list(entry.get("sizes"))
    if not isinstance(source, str) or not (_is_address(source) or _is_picture(source)):
        return None
    return Icon(
        source,
        mime_type=kind if isinstance(kind, str) and _TYPE.fullmatch(kind) else None,
        sizes=tuple(size for size in sizes[:_MOST_SIZES] if isinstance(size, str) and _SIZE.fullmatch(size)),
    )


def _is_picture(source: str) -> bool:
    return len(source) <= MAX_DATA and _DATA.fullmatch(source) is not None


def _is_address(source: str) -> bool:
    """Whether it is an `https:` address in the public network: the client of a user reads it."""
    if len(source) > LONGEST or not source.isascii() or not source.isprintable() or " " in source:
        return False
    try:
        parts = urlsplit(source)
    except ValueError:
        return False
    return parts.scheme == "https" and source.startswith("https://") and is_public(f"https://{parts.netloc}")
