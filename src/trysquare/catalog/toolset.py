"""catalogued: a toolset that can be searched, called by name and read about, however little of it is listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

from pydantic import Field

from trysquare.catalog.describe import compact_description, full_description, purpose_lines
from trysquare.catalog.profiles import CATALOG_ROOM
from trysquare.core.arguments import ToolArguments
from trysquare.core.call import call_tool, found_tool
from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext, Principal
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import Change, CombinedToolset, FixedToolset, Listener, Toolset, Unsubscribe
from trysquare.core.types import JsonObject

if TYPE_CHECKING:
    from trysquare.catalog.search import SearchIndex

INDEX_URI = "trysquare://tools"
TOOL_URI = "trysquare://tools/{name}"
MOST_FOUND, LONGEST_QUERY = 20, 1_000
FIND, CALL = "find_tools", "call_tool"


class FindTools(ToolArguments):
    """What to look for. Plain fields only: their schema is read off the annotations, so a start stays fast."""

    query: str = Field(description="What the tool should do, in a few words, or its name")
    limit: int = Field(5, description=f"How many tools to return at most, 1 to {MOST_FOUND}")
    detail: Literal["names", "compact", "full"] = Field(
        "compact", description="names only; compact with the schema, ready to call; or the full description"
    )


class CallTool(ToolArguments):
    """Which tool to call, and with what."""

    name: str = Field(description="The tool's name, as find_tools returned it")
    arguments: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="The tool's arguments, as its input_schema asks for them"
    )


def catalogued(toolset: Toolset) -> Toolset:
    """The toolset with `find_tools`, `call_tool` and a page about each tool."""
    return _CataloguedToolset([toolset, _Catalog(toolset).toolset()])


class _CataloguedToolset(CombinedToolset):
    """A toolset and its catalog, which tells that the list of tools is another one when the tools are."""

    def subscribe(self, listener: Listener) -> Unsubscribe:
        def tell(change: Change) -> None:
            listener(change)
            if change == "tools":
                listener(INDEX_URI)

        return super().subscribe(tell)


class _Catalog:
    """What is added to a toolset: the index is made at the first search, and follows the toolset from then on."""

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._index: SearchIndex | None = None

    def toolset(self) -> FixedToolset:
        """The two tools, the list of all tools and the pages about them."""
        return FixedToolset([self._finding(), self._calling()], resources=[self._list()], templates=[self._pages()])

    def _finding(self) -> Tool:
        async def find_tools(args: FindTools, context: CallContext) -> Result[list[JsonObject]]:
            """Find tools by what they do.

            Searches all tools, also those that are not listed. Call one that it returns with call_tool.
            """
            _refuse_out_of_range(args)
            return self._found(args, context.principal)

        return tool(
            find_tools,
            room=CATALOG_ROOM,
            profiles=frozenset({"search"}),
            use_when="no listed tool fits the task",
            examples=(Example(arguments={"query": "rename a file"}, explanation="tools that rename or move files"),),
            read_only=True,
            idempotent=True,
            open_world=False,
        )

    def _found(self, args: FindTools, principal: Principal) -> Result[list[JsonObject]]:
        matches = self._current_index().search(
            args.query, limit=args.limit, allowed=lambda one: principal.may_use(one.metadata.room)
        )
        if not matches:
            return Result[list[JsonObject]].ok([], message="There are no tools.")
        return Result[list[JsonObject]].ok(
            [_shown(match.tool, args.detail) for match in matches],
            instruction='If one of these nearest tools fits, call it with call_tool: {"name": …, "arguments": {…}}.'
            " If none does, ask again with the action and its object in the words that a tool would use.",
        )

    def _current_index(self) -> SearchIndex:
        from trysquare.catalog.search import SearchIndex

        if self._index is None:
            self._index = SearchIndex()
        self._index.update(self._toolset.tools())
        return self._index

    def _calling(self) -> Tool:
        async def call_named_tool(args: CallTool, context: CallContext) -> Result[Any]:
            """Call any tool by its name.

            Works for every tool, listed or not, exactly as if it were called by itself.
            """
            if args.name in (FIND, CALL):
                raise InvalidArguments(
                    f"`{args.name}` is called by itself, not through `{CALL}`.",
                    instruction="Name the tool that shall do the work.",
                )
            # Through the same toolset and context: consent, limits and errors are those of the tool itself.
            return _next_through_call(await call_tool(self._toolset, args.name, args.arguments, context))

        return tool(
            call_named_tool,
            name=CALL,
            room=CATALOG_ROOM,
            profiles=frozenset({"search"}),
            use_when="find_tools returned the tool that you need",
            examples=(
                Example(
                    arguments={"name": "rename_file", "arguments": {"path": "notes.txt", "to": "ideas.txt"}},
                    explanation="calls rename_file with its own arguments",
                ),
            ),
        )

    def _list(self) -> Resource:
        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            usable = (one for one in self._toolset.tools() if context.principal.may_use(one.metadata.room))
            lines = [f"- [{one.name}]({tool_uri(one.name)}): {_first_line(one)}" for one in usable]
            text = "# Tools\n\n" + ("\n".join(lines) or "None.") + "\n"
            return (ResourceContents(uri=uri, mime_type="text/markdown", text=text),)

        return Resource(
            uri=INDEX_URI,
            name="tools",
            title="All tools",
            description="Every tool with its purpose, listed or not",
            mime_type="text/markdown",
            read=read,
        )

    def _pages(self) -> ResourceTemplate:
        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            name = unquote(uri.removeprefix(f"{INDEX_URI}/"))
            text = full_description(found_tool(self._toolset, name, context.principal))
            return (ResourceContents(uri=uri, mime_type="text/markdown", text=text),)

        return ResourceTemplate(
            uri_template=TOOL_URI,
            name="tool",
            title="About a tool",
            description="The full description of one tool: purpose, schema, usage, examples",
            mime_type="text/markdown",
            read=read,
            complete=self._complete,
        )

    async def _complete(self, argument: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        """Names that begin with what was typed, then those that hold it."""
        wanted = typed.lower()
        names = sorted(one.name for one in self._toolset.tools() if wanted in one.name.lower())
        return sorted(names, key=lambda name: not name.lower().startswith(wanted))


def _refuse_out_of_range(args: FindTools) -> None:
    if not 1 <= args.limit <= MOST_FOUND:
        raise InvalidArguments(
            f"`limit` must be 1 to {MOST_FOUND}; got {args.limit}.",
            instruction="Send the corrected call in `next`.",
            next={"tool": FIND, "arguments": {**args.model_dump(), "limit": min(max(args.limit, 1), MOST_FOUND)}},
        )
    if len(args.query) > LONGEST_QUERY:
        raise InvalidArguments(
            f"`query` has {len(args.query)} characters; {LONGEST_QUERY} is the limit.",
            instruction="Say in a few words what the tool should do.",
        )


def tool_uri(name: str) -> str:
    """The address of the page about a tool."""
    return f"{INDEX_URI}/{quote(name, safe='')}"


def _shown(found: Tool, detail: str) -> JsonObject:
    if detail == "names":
        return {"name": found.name, "description": _first_line(found)}
    if detail == "full":
        return {"name": found.name, "description": full_description(found)}
    return {"name": found.name, "description": compact_description(found), "input_schema": found.input_schema}


def _first_line(shown: Tool) -> str:
    """The purpose in one line, with what a person must not miss."""
    return " ".join(purpose_lines(shown))


def _next_through_call(result: Result[Any]) -> Result[Any]:
    """The same answer, whose next call also goes through `call_tool`: a client can call only what it has listed."""
    following = result.next
    if following is None or "tool" not in following:
        return result
    inner = {"name": following["tool"], "arguments": following.get("arguments", {})}
    return replace(result, next={**following, "tool": CALL, "arguments": inner})
