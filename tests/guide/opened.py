"""A small guide on disk, and the app that serves it, for the tests of what callers see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trysquare import CallContext, Result, Toolset, call_tool
from trysquare.app import App, open_app
from trysquare.settings import Settings
from trysquare.testing import ScriptedCaller, accept, make_context

DOCUMENTS: Mapping[str, str] = {
    "lang/python.md": "---\ntitle: Python\ntags: [backend]\n---\nUse four spaces.\n",
    "lang/rust.md": "---\ntags: [backend, systems]\n---\nRun cargo fmt.\n",
    "docs/api.md": "---\ntype: agent/information\n---\nThe API speaks JSON.\n",
    "rules/tests.md": "---\ntype: agent/requirements\npriority: 5\n---\nEvery change has a test.\n",
    "rules/tickets.md": "---\nrequires-workflow: true\n---\nOpen a ticket first.\n",
    "_commands/review.md": (
        "---\ntemplate: true\ndescription: Review something\narguments_required: 1\n---\n"
        "Review {{ arguments[0] }}{% if options.strict %} strictly{% endif %}.\n"
    ),
}


def write_guide(root: Path, documents: Mapping[str, str] = DOCUMENTS) -> Path:
    """Write documents below `docs/guide` of a project; returns that folder."""
    folder = root / "docs" / "guide"
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in documents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def settings_for(root: Path, **more: Any) -> Settings:
    """Settings that serve a project's guide."""
    return Settings.model_validate({"project": root, "guide": [root / "docs" / "guide"], **more})


@asynccontextmanager
async def opened(root: Path, **more: Any) -> AsyncGenerator[App]:
    """The app over a project's guide."""
    async with open_app(settings_for(root, **more)) as app:
        yield app


async def ask(
    tools: App | Toolset, tool: str, /, *, context: CallContext | None = None, **arguments: Any
) -> Result[Any]:
    """Call a tool of the guide by its own name. Unless a context says otherwise, a human agrees to what is stored."""
    if context is None and tool in ("set_category", "set_collection", "set_preset", "set_document"):
        context = agreeing()
    toolset = tools.toolset if isinstance(tools, App) else tools
    found = toolset.find(f"guide_{tool}") or toolset.find(tool)
    assert found is not None
    return await call_tool(toolset, found.name, arguments, context)


async def told(tools: App | Toolset, tool: str, /, *, context: CallContext | None = None, **arguments: Any) -> Any:
    """What a tool of the guide answers, where it succeeds."""
    result = await ask(tools, tool, context=context, **arguments)
    assert result.success, result.error
    return result.value


def agreeing(times: int = 1) -> CallContext:
    """The context of a caller behind whom a person says yes."""
    return make_context(caller=ScriptedCaller([accept(approve=True)] * times))
