"""CatalogToolset: find_tools and call_tool; listing profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

from pydantic import Field

from trysquare.catalog.descriptions import definition, full_description, purpose_lines, usage_line
from trysquare.core.arguments import ToolArguments
from trysquare.core.call import call_tool, get_tool
from trysquare.core.context import CallContext
from trysquare.core.declarations import Tools
from trysquare.core.errors import ConfigurationError, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, CombinedToolset, Listener, StaticToolset, Toolset, Unsubscribe

if TYPE_CHECKING:
    from trysquare.catalog.search import Match, ToolIndex


PROFILES = ("full", "levels", "gateway", "search")
TOOLSETS = ("tools", "bots", "gateway", "debug", "guide", "workbench", "agents")
TOOLSET_DEFAULTS = {"gateway": "levels", "guide": "gateway"}
"""Default profile of a toolset; of every other one it is `full`. The guide lists the tools that read it."""
CATALOG_TOOLSET = "catalog"
"""The toolset of `find_tools` and `call_tool`, which serve every toolset whose profile is `search`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileChoice:
    """The profile of each toolset, and the one of all others; None leaves each to its default."""

    default: str | None = None
    toolsets: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_toolset(self, toolset: str) -> str:
        if toolset == CATALOG_TOOLSET and "search" in self.toolsets.values():
            return "search"
        return self.toolsets.get(toolset) or self.default or TOOLSET_DEFAULTS.get(toolset, "full")


def parse_profiles(choices: Iterable[str], *, toolsets: Iterable[str] = TOOLSETS) -> ProfileChoice:
    """Parse `levels` (for all toolsets) and `bots=levels` (for one). A later choice for the same toolset wins."""
    default: str | None = None
    chosen: dict[str, str] = {}
    known = tuple(toolsets)
    for choice in choices:
        toolset, separator, profile = (part.strip() for part in choice.rpartition("="))
        _require_known("profile", profile, PROFILES, choice)
        if separator:
            _require_known("toolset", toolset, known, choice)
            chosen[toolset] = profile
        else:
            default = profile
    return ProfileChoice(default=default, toolsets=chosen)


def listed(toolset: Toolset, choice: ProfileChoice) -> Sequence[Tool]:
    """The tools that a client's list shows: those of each toolset's profile, and the pinned ones."""
    shown = tuple(tool for tool in toolset.tools() if is_listed(tool, choice))
    if any(tool.may_be_paged for tool in shown):
        return shown
    return tuple(tool for tool in shown if not tool.reads_pages)


def is_listed(tool: Tool, choice: ProfileChoice) -> bool:
    return tool.metadata.pinned or choice.of_toolset(tool.metadata.toolset) in tool.metadata.profiles


def _require_known(kind: str, name: str, known: Sequence[str], choice: str) -> None:
    if name in known:
        return
    meant = "".join(f" Did you mean `{close}`?" for close in closest_names(name, known)[:1])
    raise ConfigurationError(
        f"Unknown {kind} `{name}`.{meant}",
        where=f"profile `{choice}`",
        hint=f"The {kind}s are {', '.join(f'`{one}`' for one in known)}.",
    )


INDEX_URI = "trysquare://tools"
TOOL_URI = "trysquare://tools/{name}"
MOST_FOUND, LONGEST_QUERY = 20, 1_000
_MOST_ASKING = 1_000
FIND, CALL = "find_tools", "call_tool"


class FindTools(ToolArguments):
    """What to look for. Plain fields only: their schema is read off the annotations, so a start stays fast."""

    query: str = Field(description="The action and its object in a few words, such as `rename file`; or a tool's name")
    limit: int = Field(5, description=f"How many tools to return at most, 1 to {MOST_FOUND}")
    detail: Literal["names", "compact", "full"] = Field(
        "compact", description="names with signatures; compact with the schema, ready to call; or the full description"
    )
    server: str | None = Field(None, description="Only tools of this server or toolset")
    read_only: bool = Field(False, description="Only tools that change nothing")


class CallTool(ToolArguments):
    """Which tool to call, and with what."""

    name: str = Field(description="The tool's name, as find_tools returned it")
    arguments: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="The tool's arguments, as its input_schema asks for them"
    )


class Choices(Protocol):
    """Where it is kept which tools were chosen after a search."""

    def record(self, terms: Iterable[str], tool: str) -> None: ...

    def shares(self, terms: Iterable[str]) -> Mapping[str, float]: ...


def with_catalog(toolset: Toolset, choices: Choices | None = None) -> Toolset:
    """The toolset with `find_tools`, `call_tool` and a page about each tool; with `choices`, searches learn."""
    return _CataloguedToolset([toolset, _Catalog(toolset, choices).toolset()])


class _CataloguedToolset(CombinedToolset):
    """A toolset and its catalog, whose list of tools changes with the tools."""

    def subscribe(self, listener: Listener) -> Unsubscribe:
        def notify(change: Change) -> None:
            listener(change)
            if change == "tools":
                listener(INDEX_URI)

        return super().subscribe(notify)


class _Catalog:
    """The tools and resources of the catalog. The index is built at the first search and updated by each."""

    def __init__(self, toolset: Toolset, choices: Choices | None) -> None:
        self._toolset = toolset
        self._index: ToolIndex | None = None
        self._choices = choices
        self._asked: dict[str, tuple[list[str], frozenset[str]]] = {}
        """The terms of each principal's last search, and what it found."""

    def toolset(self) -> StaticToolset:
        """The two tools, the list of all tools and the pages about them."""
        declared = Tools()
        declared.declare(
            name=FIND,
            toolset=CATALOG_TOOLSET,
            profiles=frozenset({"search"}),
            use_when="no listed tool fits the task",
            examples=(Example(arguments={"query": "rename a file"}, explanation="tools that rename or move files"),),
            read_only=True,
            idempotent=True,
            open_world=False,
        )(self._find_tools)
        renaming = {"name": "rename_file", "arguments": {"path": "notes.txt", "to": "ideas.txt"}}
        declared.declare(
            name=CALL,
            toolset=CATALOG_TOOLSET,
            profiles=frozenset({"search"}),
            use_when="find_tools returned the tool that you need",
            examples=(Example(arguments=renaming, explanation="calls rename_file with its own arguments"),),
        )(self._call_tool)
        declared.resource(INDEX_URI, name="tools", title="All tools", mime_type="text/markdown")(self._list)
        declared.resource(
            TOOL_URI, name="tool", title="About a tool", mime_type="text/markdown", complete=self._complete
        )(self._page)
        return declared.toolset()

    async def _find_tools(self, args: FindTools, context: CallContext) -> Result[list[JsonObject]]:
        """Find tools by what they do.

        Searches all tools, also those that are not listed. Ask for one thing at a time, by its action and its object
        in a few words. The nearest tools come back, each `likely` or `unsure`; call one with call_tool.
        """
        from trysquare.catalog.search import ASK_AGAIN, doubts, server_of
        from trysquare.search.tokenize import terms

        _refuse_out_of_range(args)
        index = self._current_index()
        usable = {one.name: one for one in self._toolset.tools() if context.principal.may_use(one.metadata.toolset)}
        server = (
            None if args.server is None else _known_server(args.server, {server_of(one) for one in usable.values()})
        )
        await index.prepare(args.query)
        asked = terms(args.query)
        matches = index.search(
            args.query,
            limit=args.limit,
            known_for=None if self._choices is None else self._choices.shares(asked),
            allowed=lambda one: (
                one.name in usable
                and server in (None, server_of(one))
                and (one.metadata.read_only is True or not args.read_only)
            ),
        )
        if self._choices is not None:
            while len(self._asked) >= _MOST_ASKING:
                del self._asked[next(iter(self._asked))]
            self._asked[context.principal.subject] = asked, frozenset(match.tool.name for match in matches)
        if not matches:
            return Result[list[JsonObject]].ok(
                [], message="There are no such tools." if usable else "There are no tools."
            )
        return Result[list[JsonObject]].ok(
            [_as_json(match, args.detail) for match in matches],
            message=doubts(matches),
            instruction='If one of these nearest tools fits, call it with call_tool: {"name": …, "arguments": {…}}.'
            f" If none does, {ASK_AGAIN}.",
        )

    def _current_index(self) -> ToolIndex:
        from trysquare.catalog.search import ToolIndex

        if self._index is None:
            self._index = ToolIndex()
        self._index.update(self._toolset.tools())
        return self._index

    async def _call_tool(self, args: CallTool, context: CallContext) -> Result[Any]:
        """Call any tool by its name.

        Works for every tool, listed or not, exactly as if it were called by itself.
        """
        if args.name in (FIND, CALL):
            raise InvalidArguments(
                f"`{args.name}` cannot be called through `{CALL}`.",
                instruction="Name another tool; call this one directly.",
            )
        # Through the same toolset and context: consent, limits and errors are those of the tool itself.
        result = await call_tool(self._toolset, args.name, args.arguments, context)
        asked, found = self._asked.pop(context.principal.subject, ([], frozenset[str]()))
        if self._choices is not None and result.success and args.name in found:
            self._choices.record(asked, args.name)
        return _next_through_call(result)

    async def _list(self, context: CallContext) -> str:
        """Every tool with its purpose, listed or not"""
        usable = (one for one in self._toolset.tools() if context.principal.may_use(one.metadata.toolset))
        lines = [f"- [{one.name}]({tool_uri(one.name)}): {' '.join(purpose_lines(one))}" for one in usable]
        return "# Tools\n\n" + ("\n".join(lines) or "None.") + "\n"

    async def _page(self, name: str, context: CallContext) -> str:
        """The full description of one tool: purpose, schema, usage, examples"""
        return full_description(get_tool(self._toolset, name, context.principal))

    async def _complete(self, argument: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        """Names that begin with the typed text, then those that contain it."""
        prefix = typed.lower()
        names = sorted(one.name for one in self._toolset.tools() if prefix in one.name.lower())
        return sorted(names, key=lambda name: not name.lower().startswith(prefix))


def _refuse_out_of_range(args: FindTools) -> None:
    if not 1 <= args.limit <= MOST_FOUND:
        raise InvalidArguments(
            f"`limit` must be 1 to {MOST_FOUND}; got {args.limit}.",
            instruction="Send the corrected call in `next`.",
            next={
                "tool": FIND,
                "arguments": {**args.model_dump(exclude_defaults=True), "limit": min(max(args.limit, 1), MOST_FOUND)},
            },
        )
    if len(args.query) > LONGEST_QUERY:
        raise InvalidArguments(
            f"`query` has {len(args.query)} characters; {LONGEST_QUERY} is the limit.",
            instruction="Say in a few words what the tool should do.",
        )


def tool_uri(name: str) -> str:
    return f"{INDEX_URI}/{quote(name, safe='')}"


def _known_server(wanted: str, known: set[str]) -> str:
    """The server or toolset of this name, however it is capitalised."""
    found = next((one for one in known if one.casefold() == wanted.strip().casefold()), None)
    if found is None:
        near = closest_names(wanted, known)[:1]
        raise InvalidArguments(
            f"Unknown server `{wanted[:80]}`." + "".join(f" Did you mean `{one}`?" for one in near),
            instruction=f"Use one of {', '.join(f'`{one}`' for one in sorted(known)[:20])}, or leave `server` out.",
        )
    return found


def _as_json(match: Match, detail: str) -> JsonObject:
    from trysquare.catalog.search import server_of

    found = match.tool
    about = {"name": found.name, "server": server_of(found), "fit": match.fit}
    if detail == "full":
        return {**about, "description": full_description(found)}
    about["signature"] = usage_line(found.name, found.input_schema)
    if detail == "names":
        return {**about, "description": " ".join(purpose_lines(found))}
    return {**about, **definition(found)}


def _next_through_call(result: Result[Any]) -> Result[Any]:
    """The same result, whose next call also goes through `call_tool`: a client can call only what it has listed."""
    following = result.next
    if following is None or "tool" not in following:
        return result
    inner = {"name": following["tool"], "arguments": following.get("arguments", {})}
    return replace(result, next={**following, "tool": CALL, "arguments": inner})
