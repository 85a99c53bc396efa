"""static_links gives what is configured."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from trysquare import ErrorCode, StaticToolset
from trysquare.content.config import LinkConfig
from trysquare.content.rss_feed import static_links_tool
from trysquare.testing import call

LINKS = LinkConfig(
    social={"GitHub": "https://github.example/ada", "Bluesky": "https://bsky.example/ada"},
    custom={"Shop": "https://shop.example"},
    youtube_placeholder="[video: to be added]",
)


async def test_all_links_come_together() -> None:
    result = await call(StaticToolset([static_links_tool(LINKS)]), "static_links", {"action": "get_all"})
    assert result.fields["output"] == snapshot("""\
## Social
- [GitHub](https://github.example/ada)
- [Bluesky](https://bsky.example/ada)

## Links
- [Shop](https://shop.example)

[video: to be added]\
""")


@pytest.mark.parametrize(
    ("action", "found"),
    [("get_social", "github.example"), ("get_custom", "shop.example"), ("get_youtube_placeholder", "to be added")],
)
async def test_each_action_gives_its_part_alone(action: str, found: str) -> None:
    result = await call(StaticToolset([static_links_tool(LINKS)]), "static_links", {"action": action})
    assert found in result.fields["output"]
    assert sum(each in result.fields["output"] for each in ("github", "shop", "video")) == 1


@pytest.mark.parametrize("action", ["get_all", "get_social", "get_custom", "get_youtube_placeholder"])
async def test_what_is_not_configured_names_the_setting(action: str) -> None:
    result = await call(StaticToolset([static_links_tool(LinkConfig())]), "static_links", {"action": action})
    assert (result.code, "content." in (result.instruction or "")) == (ErrorCode.CONFIG_NOT_FOUND, True)
