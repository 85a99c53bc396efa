"""The part Bots: the runs of workflow bots, each as a board, with its history and its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.threads import run_in_thread

if TYPE_CHECKING:
    from trysquare.bots.projects import LiveBot
    from trysquare.console.app import Visit

SHOWN = 50
"""Runs of one bot on the first page, those that changed last first."""
TONES = {
    "claimed": "good", "confirmed": "good", "proven": "good", "auto": "good", "combined": "good",
    "not approved": "warn", "reopened": "warn", "complete": "good",
}  # fmt: skip

_MARKDOWN = (".md", ".markdown")

# `boards` is imported where a bot is served: the bots' own modules load for about a second.


async def show(visit: Visit) -> Response:
    """Every run of every bot."""
    bots = visit.console.workspace.bots
    reports = []
    if bots:
        from trysquare.console.boards import overviews

        reports = await run_in_thread(lambda: overviews(bots, limit=SHOWN))
    template = "_bot_rows.html" if visit.is_part else "bots.html"
    return visit.page(template, part="bots", bots=reports, tones=TONES)


async def show_run(visit: Visit) -> Response:
    """The board of one run."""
    bot, run = _named(visit)
    from trysquare.console.boards import board_of

    board = await run_in_thread(lambda: board_of(bot, run))
    return visit.page("_board.html" if visit.is_part else "board.html", part="bots", board=board, tones=TONES)


async def show_document(visit: Visit) -> Response:
    """One document of a run: a page in Markdown as safe elements, anything else as text."""
    bot, run = _named(visit)
    from trysquare.console.boards import read_document

    path = visit.request.query_params.get("path", "")
    text = await run_in_thread(lambda: read_document(bot, run, path))
    blocks = None
    if path.lower().endswith(_MARKDOWN):
        from trysquare.console.markdown import parse_markdown

        blocks = await run_in_thread(lambda: parse_markdown(text))
    template = "_document.html" if visit.is_part else "document.html"
    as_text = visit.request.query_params.get("as") == "text"
    return visit.page(
        template, part="bots", bot=bot.name, run=run, path=path, text=text, blocks=blocks, as_text=as_text
    )


async def show_maps(visit: Visit) -> Response:
    """The story maps of a run, which its page loads after itself."""
    bot, run = _named(visit)
    from trysquare.console.maps import story_maps

    maps = await run_in_thread(lambda: story_maps(bot, run))
    return visit.page("_maps.html" if visit.is_part else "maps.html", part="bots", bot=bot.name, run=run, maps=maps)


async def show_difference(visit: Visit) -> Response:
    """What differs between two versions of a run."""
    bot, run = _named(visit)
    from trysquare.console.boards import difference

    before, after = _version(visit, "before"), _version(visit, "after")
    found = await run_in_thread(lambda: difference(bot, run, before, after))
    return visit.page(
        "difference.html", part="bots", bot=bot.name, run=run, before=before, after=after, difference=found
    )


def _named(visit: Visit) -> tuple[LiveBot, str]:
    """The bot and the run of the address."""
    wanted = visit.request.path_params["bot"]
    for bot in visit.console.workspace.bots:
        if bot.name == wanted:
            return bot, visit.request.path_params["run"]
    raise NotFound("No such bot is served here.", code=ErrorCode.RESOURCE_NOT_FOUND, instruction="See the page Bots.")


def _version(visit: Visit, name: str) -> int:
    text = visit.request.query_params.get(name, "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise InvalidArguments(
        f"`{name}` is not a version.", instruction="Send the number of a version; the history of the run lists them."
    )


VIEWS = (
    ("GET", "/bots", show),
    ("GET", "/bots/{bot}/{run}", show_run),
    ("GET", "/bots/{bot}/{run}/document", show_document),
    ("GET", "/bots/{bot}/{run}/maps", show_maps),
    ("GET", "/bots/{bot}/{run}/difference", show_difference),
)
