"""Toolset of a writing run: the tools that its prompt needs, and no others.

First there is only `analyse`; the analysis opens the rest: no research without a question, no post for a network that
was not named, no publication without the prompt's own words. What is open depends on the calls made and on nothing
else, so that a resumed job has the same tools at the same steps.
"""

from __future__ import annotations

from pathlib import Path

from trysquare.agents.tool_calls import CallRecord
from trysquare.agents.writing import tools
from trysquare.agents.writing.draft import LONG_KINDS, NETWORKS, PIECE_KINDS, Analysis, Draft
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, DynamicToolset, Toolset
from trysquare.models import Model

WRITING = "writing"
RESEARCH = frozenset({"rss_feed", "static_links", "calendar"})
PUBLISH = "blog_notion"


class WritingToolset(DynamicToolset):
    """Another toolset with the writing tools that the prompt needs."""

    def __init__(self, inner: Toolset, *, root: Path, name: str, model: Model, task: str) -> None:
        super().__init__()
        self._inner = inner
        self._session = tools.WritingSession(draft=Draft(root=root, name=name), model=model, task=task)
        self._analysis: Analysis | None = None
        self.close = inner.subscribe(self._on_change)
        self._open()

    def note(self, record: CallRecord) -> None:
        if record.success and record.call.name == tools.ANALYSE:
            # The call succeeded, so its arguments are valid.
            self._analysis = tools.analyse_tool(self._session).arguments.parse(tools.ANALYSE, record.call.arguments)
            self._open()

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            self._open()

    def _open(self) -> None:
        self.replace(tools=[*self._builtin(self._analysis), *self._others(self._analysis)])

    def _builtin(self, analysis: Analysis | None) -> list[Tool]:
        wanted = [(True, tools.analyse_tool)]
        if analysis is not None:
            wanted += [
                (bool(analysis.research), tools.research_notes_tool),
                (analysis.wants(LONG_KINDS), tools.outline_tool),
                (analysis.wants(LONG_KINDS), tools.section_tool),
                (analysis.wants(PIECE_KINDS), tools.piece_tool),
                (analysis.wants(NETWORKS), tools.social_post_tool),
                (True, tools.complete_draft_tool),
            ]
        return [make(self._session) for opens, make in wanted if opens]

    def _others(self, analysis: Analysis | None) -> list[Tool]:
        opened = frozenset[str]() if analysis is None else analysis.tools()
        publishes = analysis is not None and analysis.publishes
        others: list[Tool] = []
        for tool in self._inner.tools():
            if tool.name == PUBLISH:
                others += [tools.draft_publisher(tool, self._session)] if publishes else []
            elif tool.name not in RESEARCH or tool.name in opened:
                others.append(tool)
        return others
