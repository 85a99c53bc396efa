"""Tool `blog_notion`, the Notion API, and Markdown as Notion blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, cast
from urllib.parse import quote

from pydantic import Field

from trysquare.content.config import NotionConfig
from trysquare.content.service import Api, ResponseLost, run_once
from trysquare.core.approvals import arguments_digest
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result, answered, dump_json
from trysquare.core.tool import Tool, tool
from trysquare.store.database import Transactions

MAX_TEXT = 2000
"""Characters of one rich text, in UTF-16 code units as Notion counts them."""
MAX_TEXTS = 100
"""Rich texts per block."""
MAX_BLOCKS = 100
"""Blocks per request."""
MAX_BYTES = 400_000
"""Bytes of blocks per request; Notion rejects requests above 500 kB."""

Block: TypeAlias = JsonObject

_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_BULLET = re.compile(r"\s*[-*+]\s+(.+)")
_NUMBER = re.compile(r"\s*\d{1,9}[.)]\s+(.+)")
_QUOTE = re.compile(r">\s?(.*)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})\s*")
_FENCE = re.compile(r"```\s*([\w+#-]*)\s*")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]{1,2000})`"
    r"|\[(?P<label>[^\[\]\n]{1,300})\]\((?P<url>https?://[^\s)]{1,1990})\)"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|(?<!\*)\*(?P<italic>[^*\s][^*\n]*)\*(?!\*)"
)
_LANGUAGES = frozenset({
    "bash", "c", "c++", "c#", "css", "diff", "docker", "elixir", "go", "graphql", "haskell", "html", "java",
    "javascript", "json", "kotlin", "latex", "lua", "makefile", "markdown", "perl", "php", "powershell", "python", "r",
    "ruby", "rust", "scala", "shell", "sql", "swift", "typescript", "xml", "yaml",
})  # fmt: skip
_SHORT = {"py": "python", "js": "javascript", "ts": "typescript", "sh": "shell", "yml": "yaml", "cpp": "c++"}


def markdown_blocks(text: str) -> list[Block]:
    """A Markdown text as blocks: headings, lists, quotes, code, rules and paragraphs."""
    blocks: list[Block] = []
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at].strip())
        if fence is not None:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == "```"), len(lines))
            blocks += code_blocks("\n".join(lines[at + 1 : end]), fence[1])
            at = end + 1
        elif _begins_block(lines[at]):
            blocks += _line_blocks(lines[at])
            at += 1
        else:
            end = next((n for n in range(at + 1, len(lines)) if _begins_block(lines[n])), len(lines))
            blocks += text_blocks("paragraph", "\n".join(lines[at:end]))
            at = max(end, at + 1)
    return blocks


def _begins_block(line: str) -> bool:
    """Whether a line ends the paragraph before it."""
    patterns = (_HEADING, _BULLET, _NUMBER, _QUOTE, _RULE, _FENCE)
    return not line.strip() or any(pattern.fullmatch(line.strip()) for pattern in patterns)


def _line_blocks(line: str) -> list[Block]:
    if not line.strip():
        return []
    if _RULE.fullmatch(line.strip()):
        return [{"object": "block", "type": "divider", "divider": {}}]
    if heading := _HEADING.fullmatch(line.strip()):
        return text_blocks(f"heading_{min(len(heading[1]), 3)}", heading[2])
    for pattern, kind in ((_BULLET, "bulleted_list_item"), (_NUMBER, "numbered_list_item"), (_QUOTE, "quote")):
        if found := pattern.fullmatch(line):
            return text_blocks(kind, found[1])
    return text_blocks("paragraph", line)


def text_blocks(kind: str, text: str) -> list[Block]:
    """A text as blocks of a kind, several where it exceeds one."""
    return _blocks(kind, [_rich(piece, **style) for run, style in _runs(text) for piece in pieces(run)])


def code_blocks(text: str, language: str) -> list[Block]:
    known = _SHORT.get(language.lower(), language.lower())
    texts = [_rich(piece) for piece in pieces(text)] or [_rich("")]
    return _blocks("code", texts, language=known if known in _LANGUAGES else "plain text")


def _runs(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Runs of text with one style each: bold, italic, code or a link."""
    at = 0
    for found in _INLINE.finditer(text):
        yield text[at : found.start()], {}
        kind = str(found.lastgroup)
        yield (found["label"], {"url": found["url"]}) if kind == "url" else (found[kind], {"style": kind})
        at = found.end()
    yield text[at:], {}


def pieces(text: str, most: int = MAX_TEXT) -> Iterator[str]:
    """The text in pieces of Notion's size limit; no character is split."""
    piece, length = [""], 0
    for letter in text:
        width = 2 if ord(letter) > 0xFFFF else 1
        if length + width > most:
            yield "".join(piece)
            piece, length = [], 0
        piece.append(letter)
        length += width
    if length:
        yield "".join(piece)


def batches(blocks: Iterable[Block]) -> list[list[Block]]:
    """The blocks by request."""
    found: list[list[Block]] = [[]]
    size = 0
    for block in blocks:
        own = len(dump_json(block).encode())
        if len(found[-1]) == MAX_BLOCKS or (found[-1] and size + own > MAX_BYTES):
            found.append([])
            size = 0
        found[-1].append(block)
        size += own
    return found


def _rich(text: str, *, url: str | None = None, style: str | None = None) -> JsonObject:
    content: JsonObject = {"content": text, **({"link": {"url": url}} if url else {})}
    return {"type": "text", "text": content, **({"annotations": {style: True}} if style else {})}


def _blocks(kind: str, texts: list[JsonObject], **more: str) -> list[Block]:
    return [
        {"object": "block", "type": kind, kind: {"rich_text": texts[at : at + MAX_TEXTS], **more}}
        for at in range(0, len(texts), MAX_TEXTS)
    ]


NAME = "blog_notion"
MAX_DRAFT = 400_000
Lines = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100)]
Post = Annotated[str | None, Field(max_length=10_000, description="Kept under the text")]


class BlogNotion(ToolArguments):
    title: Annotated[str, Field(min_length=1, max_length=1000, description="Title of the page")]
    expanded_draft: Annotated[str, Field(min_length=1, max_length=MAX_DRAFT, description="The whole text, as Markdown")]
    request_key: Annotated[
        str,
        Field(min_length=1, max_length=200, description="A key of your choice: repeated, nothing is published twice"),
    ]
    original_dictation: Annotated[str | None, Field(max_length=MAX_DRAFT, description="Kept at the end")] = None
    suggested_titles: Annotated[Lines | None, Field(description="Other titles")] = None
    substack_tags: Annotated[Lines | None, Field(description="What readers find it by, one word or two each")] = None
    twitter_post: Post = None
    linkedin_post: Post = None
    bluesky_post: Post = None
    key_takeaways: Annotated[Lines | None, Field(description="Main points")] = None
    target_audience: Annotated[str | None, Field(max_length=1000, description="For whom it is")] = None
    read_time: Annotated[str | None, Field(max_length=100, description="Such as 6 minutes")] = None


# Documented as in guide/tools/README.md.
def blog_notion_tool(config: NotionConfig, *, state: Transactions) -> Tool:
    """The publishing tool; `state` records the request keys."""

    async def blog_notion(args: BlogNotion, context: CallContext) -> Result[Any]:
        """Publish a text as a page in Notion."""
        notion = Notion(config)
        given = args.model_dump(exclude={"request_key"})

        async def publish() -> JsonObject:
            shape = await notion.shape()
            tags = tag_names(args.substack_tags or [])
            return await notion.publish(args.title, page_blocks(args, shape, tags), shape=shape, tags=tags)

        page, is_new = await run_once(
            state,
            args.request_key,
            tool=NAME,
            principal=context.principal.subject,
            digest=arguments_digest(given),
            work=publish,
        )
        outcome = "Published" if is_new else "Already published by an earlier call with this key"
        return answered(f"{outcome}: {page['url']}", data={**page, "new": is_new})

    return tool(
        blog_notion,
        name=NAME,
        category="publish",
        needs=("notion",),
        toolset="workbench",
        consent=Consent(question="Publish “{title}” to Notion?"),
        destructive=False,
        read_only=False,
        open_world=True,
        result_limit=None,
        use_when="the prompt asks to publish",
        avoid_when="the prompt does not ask for it, or the text is not finished",
        limits="Notion only; the user is asked before each publication",
        examples=(
            Example(
                arguments={"title": "Bees", "expanded_draft": "# Bees\n\nThey fly.", "request_key": "bees-1"},
                explanation="A page with one heading and one paragraph.",
            ),
        ),
        trigger_words=("publish", "notion", "blog"),
    )


def page_blocks(args: BlogNotion, shape: Shape, tags: list[str]) -> list[Block]:
    """The page: the text, then its metadata."""
    blocks = markdown_blocks(args.expanded_draft)
    if not blocks:
        raise InvalidArguments("`expanded_draft` has no text in it.")
    facts = {
        "Audience": args.target_audience,
        "Reading time": args.read_time,
        # A parent without a property for tags still shows them.
        "Tags": ", ".join(tags) if tags and shape.tags is None else None,
    }
    sections: dict[str, list[str] | str | None] = {
        "Key takeaways": args.key_takeaways,
        "Other titles": args.suggested_titles,
        "Twitter": args.twitter_post,
        "LinkedIn": args.linkedin_post,
        "Bluesky": args.bluesky_post,
        "About this text": [f"{name}: {fact}" for name, fact in facts.items() if fact],
        "Original dictation": args.original_dictation,
    }
    for title, given in sections.items():
        kind, texts = ("paragraph", [given]) if isinstance(given, str) else ("bulleted_list_item", given or ())
        if section := [block for text in texts for block in text_blocks(kind, text)]:
            blocks += [*text_blocks("heading_2", title), *section]
    return blocks


VERSION = "2025-09-03"
"""API version of the requests."""
MAX_TAGS = 100
MAX_TAG = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Property names of pages of the configured parent: its title, and its tags, if any."""

    title: str = "title"
    tags: str | None = None


class Notion:
    """Notion API of one integration."""

    def __init__(self, config: NotionConfig) -> None:
        self._config = config
        self._api = Api(service="Notion", url=config.url, token_setting="content.notion_token")

    async def shape(self) -> Shape:
        """Property names of pages of the configured parent; below a page only a title."""
        self._require_configured()
        if self._config.data_source is None:
            return Shape()
        source = await self._send("GET", f"/v1/data_sources/{quote(self._config.data_source, safe='')}")
        properties = cast(dict[str, JsonObject], source.get("properties") or {})
        titles = [name for name, each in properties.items() if each.get("type") == "title"]
        tags = [name for name, each in properties.items() if each.get("type") == "multi_select"]
        named = next((name for name in tags if name.lower() == "tags"), None)
        return Shape(title=titles[0] if titles else "title", tags=named)

    async def publish(self, title: str, blocks: Sequence[Block], *, shape: Shape, tags: Sequence[str]) -> JsonObject:
        """Create the page with all its blocks, and return its id and URL; if a part fails, it goes to the trash."""
        first, *rest = batches(blocks)
        made = await self._send("POST", "/v1/pages", self._new_page(title, first, shape, tags))
        id, url = str(made.get("id")), str(made.get("url"))
        try:
            for batch in rest:
                await self._send("PATCH", f"/v1/blocks/{quote(id, safe='')}/children", {"children": batch})
        except ToolError as error:
            raise await self._discard(id, url, error) from error
        return {"page_id": id, "url": url}

    async def check(self) -> None:
        """Check the token with Notion; raises the error."""
        self._require_configured()
        await self._send("GET", "/v1/users/me")

    def _new_page(self, title: str, children: Sequence[Block], shape: Shape, tags: Sequence[str]) -> JsonObject:
        properties: JsonObject = {shape.title: {"title": [_rich(piece) for piece in pieces(title)]}}
        if shape.tags and tags:
            properties[shape.tags] = {"multi_select": [{"name": tag} for tag in tags]}
        kind, id = "page_id", self._config.page
        if self._config.data_source is not None:
            kind, id = "data_source_id", self._config.data_source
        return {"parent": {"type": kind, kind: id}, "properties": properties, "children": list(children)}

    async def _discard(self, id: str, url: str, cause: ToolError) -> ToolError:
        """Move an incomplete page to the trash, and return the error to raise."""
        try:
            await self._send("PATCH", f"/v1/pages/{quote(id, safe='')}", {"in_trash": True})
        except ToolError:
            return ResponseLost(
                f"The page {url} was created incompletely: {cause.message}",
                instruction="Ask the user to check the page, and to remove it before it is published again.",
            )
        return ToolError(
            f"Nothing was published: {cause.message} The incomplete page is in Notion's trash.",
            code=cause.code,
            instruction=cause.instruction,
        )

    async def _send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        headers: dict[str, Any] = {"Authorization": f"Bearer {self._config.token}", "Notion-Version": VERSION}
        return await self._api.send(method, path, headers=headers, body=body)

    def _require_configured(self) -> None:
        if not self._config.is_set:
            raise ToolError(
                "Notion is not configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Continue without it, or ask the user to set content.notion_token and one of "
                "content.notion_page and content.notion_data_source.",
            )


def tag_names(tags: Sequence[str]) -> list[str]:
    """Tags in Notion's form: without commas, limited in length, unique."""
    names = (" ".join(tag.replace(",", " ").split())[:MAX_TAG].strip() for tag in tags)
    return list(dict.fromkeys(name for name in names if name))[:MAX_TAGS]
