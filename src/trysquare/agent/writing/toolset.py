"""The tools of a run that writes: those which its prompt needs, and no others.

At first there is only `analyse`. What the analysis asks for opens the rest: no research without a question, no post for
a network that was not named, and no publication without the prompt's own words for it. What is open follows from the
calls that were made and from nothing else, so that a job which is taken up again sees the same tools at the same steps.
"""

from __future__ import annotations

from pathlib import Path

from trysquare.agent.records import CallRecord
from trysquare.agent.writing.analysis import LONG_KINDS, NETWORKS, PIECE_KINDS, Analysis
from trysquare.agent.writing.draft import Draft
from trysquare.agent.writing.publishing import drafted
from trysquare.agent.writing.tools import (
    ANALYSE,
    Desk,
    analyse_tool,
    complete_draft_tool,
    outline_tool,
    piece_tool,
    research_notes_tool,
    section_tool,
    social_post_tool,
)
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, ChangingToolset, Toolset, Unsubscribe
from trysquare.models.model import Model

WRITING = "writing"
"""The bundle by which a definition asks for these tools."""
RESEARCH = frozenset({"rss_feed", "static_links", "calendar"})
PUBLISH = "blog_notion"


class WritingToolset(ChangingToolset):
    """The tools of another set, and those for writing, as far as the prompt needs them."""

    def __init__(self, inner: Toolset, *, root: Path, name: str, model: Model, task: str) -> None:
        super().__init__()
        self._inner = inner
        self._desk = Desk(draft=Draft(root=root, name=name), model=model, task=task)
        self._analysis: Analysis | None = None
        self._unsubscribe: Unsubscribe = inner.subscribe(self._on_change)
        self._open()

    def close(self) -> None:
        """Hear no more of changes."""
        self._unsubscribe()

    def note(self, record: CallRecord) -> None:
        """An analysis opens what it asks for."""
        if record.success and record.call.name == ANALYSE:
            # Read as the tool itself read it; it succeeded, so it can be read.
            self._analysis = analyse_tool(self._desk).arguments.parse(ANALYSE, record.call.arguments)
            self._open()

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            self._open()

    def _open(self) -> None:
        """Put the tools in place that the analysis asks for."""
        self.replace(tools=[*self._own(self._analysis), *self._others(self._analysis)])

    def _own(self, analysis: Analysis | None) -> list[Tool]:
        desk, own = self._desk, [analyse_tool(self._desk)]
        if analysis is None:
            return own
        if analysis.research:
            own.append(research_notes_tool(desk))
        if analysis.wants(LONG_KINDS):
            own += [outline_tool(desk), section_tool(desk)]
        if analysis.wants(PIECE_KINDS):
            own.append(piece_tool(desk))
        if analysis.wants(NETWORKS):
            own.append(social_post_tool(desk))
        return [*own, complete_draft_tool(desk)]

    def _others(self, analysis: Analysis | None) -> list[Tool]:
        opened = frozenset[str]() if analysis is None else analysis.tools()
        publishes = analysis is not None and analysis.publishes
        kept: list[Tool] = []
        for tool in self._inner.tools():
            if tool.name == PUBLISH:
                kept += [drafted(tool, self._desk)] if publishes else []
            elif tool.name not in RESEARCH or tool.name in opened:
                kept.append(tool)
        return kept


def writing_toolset(inner: Toolset, *, root: Path, name: str, model: Model, task: str) -> WritingToolset:
    """The tools of a run that writes; its files lie in `drafts/NAME` below `root`."""
    return WritingToolset(inner, root=root, name=name, model=model, task=task)
