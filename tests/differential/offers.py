"""Our side of the differential suite: one toolset with something of everything the protocol has."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from tests.differential import material
from trysquare import (
    Audio,
    CallContext,
    CombinedToolset,
    Declarations,
    DynamicToolset,
    Image,
    PromptMessage,
    Resource,
    ResourceContents,
    ResourceLink,
    Result,
    Text,
    ToolError,
    Toolset,
)
from trysquare import prompt as make_prompt
from trysquare import tool as make_tool
from trysquare.core.context import ElicitRequest, RootsRequest, SamplingRequest, Visit

offers = Declarations()
PICTURE = Image(data=material.PICTURE, mime_type="image/png")
SOUND = Audio(data=material.SOUND, mime_type="audio/wav")
EMBEDDED = ResourceContents(uri=material.EMBEDDED_URI, mime_type="text/plain", text=material.TEXT)


def text(words: str) -> Result[None]:
    """A result that is a text and nothing else."""
    return Result.ok(content=(Text(text=words),))


@offers.declare()
async def plain() -> Result[None]:
    """Return a text."""
    return text(material.GREETING)


@offers.declare()
def picture() -> Result[None]:
    """Return an image."""
    return Result.ok(content=(PICTURE,))


@offers.declare()
def sound() -> Result[None]:
    """Return audio."""
    return Result.ok(content=(SOUND,))


@offers.declare()
def embedded() -> Result[None]:
    """Return an embedded text resource."""
    return Result.ok(content=(EMBEDDED,))


@offers.declare()
def embedded_blob() -> Result[None]:
    """Return an embedded binary resource."""
    blob = ResourceContents(uri=material.EMBEDDED_URI, mime_type="application/octet-stream", blob=material.BLOB)
    return Result.ok(content=(blob,))


@offers.declare()
def linked() -> Result[None]:
    """Return a link to a resource."""
    link = ResourceLink(uri=material.LINK_URI, name="linked", mime_type="text/plain", description="A linked text")
    return Result.ok(content=(link,))


@offers.declare()
def mixed() -> Result[None]:
    """Return blocks of several types."""
    return Result.ok(content=(Text(text=material.GREETING), PICTURE, SOUND, EMBEDDED))


@offers.declare()
def structured() -> Result[material.Json]:
    """Return structured content."""
    return Result.ok(material.DATA)


@offers.declare()
async def echo(words: str) -> Result[None]:
    """Return what was sent."""
    return text(words)


@offers.declare()
def add(a: int, b: int = 2) -> Result[material.Json]:
    """Add two numbers."""
    return Result.ok({"sum": a + b})


@offers.declare()
def route(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> Result[None]:
    """Return the region that also travels in a header."""
    return text(region)


@offers.declare()
def refused() -> Result[None]:
    """Return an error."""
    raise ToolError(material.REFUSAL)


@offers.declare()
def crashing() -> Result[None]:
    """Raise an exception."""
    raise RuntimeError("a fault of the tool")


@offers.declare()
async def steps(context: CallContext) -> Result[None]:
    """Report progress three times."""
    for number in material.STEPS:
        await context.progress(number, len(material.STEPS), f"step {number}")
    return text("Done with the steps.")


@offers.declare()
async def lines(context: CallContext) -> Result[None]:
    """Send log messages of four levels."""
    for level, line in material.LINES:
        await context.log(line, level)
    return text("Done with the lines.")


@offers.declare()
async def ask_form(context: CallContext) -> Result[None]:
    """Ask the user for a name."""
    answer = await context.ask(material.NAME_QUESTION, material.NAME_FORM, key="name")
    return text(f"{answer.action}: {answer.content.get('name')}")


@offers.declare()
async def ask_page(context: CallContext) -> Result[None]:
    """Send the user to a page."""
    visit = Visit(message=material.PAGE_QUESTION, url=material.PAGE, id=material.PAGE_ID, key="page")
    return text((await context.request(visit))["page"].action)


@offers.declare()
async def ask_model(context: CallContext) -> Result[None]:
    """Have the client's model answer."""
    return text(await context.sample(material.MODEL_PROMPT, max_tokens=material.MODEL_TOKENS, key="capital"))


@offers.declare()
async def ask_roots(context: CallContext) -> Result[None]:
    """List the client's roots."""
    return text(", ".join(await context.roots(key="roots")))


@offers.declare()
async def ask_several(context: CallContext) -> Result[None]:
    """Ask the user, the model and the client at once."""
    answers = await context.request(
        ElicitRequest(message=material.NAME_QUESTION, schema=material.NAME_FORM, key="name"),
        SamplingRequest(prompt=material.MODEL_PROMPT, max_tokens=material.MODEL_TOKENS, key="capital"),
        RootsRequest(key="roots"),
    )
    roots = [root["uri"] for root in answers["roots"].content["roots"]]
    return text(f"{answers['name'].content['name']}, {answers['capital'].content['text']}, {roots[0]}")


@offers.declare()
async def ask_twice(context: CallContext) -> Result[None]:
    """Ask a second question that depends on the first answer."""
    name = await context.ask(material.NAME_QUESTION, material.NAME_FORM, key="name")
    color = await context.ask(material.COLOR_QUESTION, material.COLOR_FORM, key="color")
    return text(f"{name.content.get('name')} likes {color.content.get('color')}.")


async def complete(argument: str, typed: str, others: dict[str, str]) -> list[str]:
    """Complete any argument from one list of values."""
    return [value for value in material.COMPLETIONS if value.startswith(typed)]


@offers.prompt()
def simple() -> str:
    """A prompt without arguments."""
    return material.GREETING


@offers.prompt(complete=complete)
def greeting(name: str, tone: str = "warm") -> str:
    """A prompt with arguments.

    Args:
        name: Who is greeted
        tone: How the greeting sounds
    """
    return f"Greet {name} in a {tone} tone."


@offers.prompt()
def pictured() -> list[PromptMessage]:
    """A prompt with an image and a resource."""
    return [
        PromptMessage(content=PICTURE),
        PromptMessage(content=EMBEDDED),
        PromptMessage(content=Text(text=material.GREETING), role="assistant"),
    ]


@offers.prompt()
async def asking(context: CallContext) -> str:
    """A prompt that asks the user first."""
    answer = await context.ask(material.NAME_QUESTION, material.NAME_FORM, key="name")
    return material.named(answer.content.get("name"))


@offers.prompt()
def failing() -> str:
    """A prompt that raises an exception."""
    raise RuntimeError("a fault of the prompt")


@offers.resource(material.TEXT_URI, mime_type="text/plain")
def text_resource() -> str:
    """A text."""
    return material.TEXT


@offers.resource(material.BLOB_URI, mime_type="application/octet-stream")
def blob_resource() -> ResourceContents:
    """Bytes."""
    return ResourceContents(uri=material.BLOB_URI, mime_type="application/octet-stream", blob=material.BLOB)


@offers.resource(material.WATCHED_URI, mime_type="text/plain")
def watched_resource() -> str:
    """A text that changes."""
    return material.TEXT


@offers.resource(material.CRASHING_URI, mime_type="text/plain")
def crashing_resource() -> str:
    """A resource that raises an exception."""
    raise RuntimeError("a fault of the resource")


@offers.resource(material.ASKING_URI, mime_type="text/plain")
async def asking_resource(context: CallContext) -> str:
    """A resource that asks the user first."""
    answer = await context.ask(material.NAME_QUESTION, material.NAME_FORM, key="name")
    return material.named(answer.content.get("name"))


@offers.resource(material.TEMPLATE, mime_type="text/plain", complete=complete)
def item_resource(key: str) -> str:
    """An item by its key."""
    return material.item(key)


def extra() -> Result[None]:
    """A tool that is added and removed."""
    return text("extra")


def extra_prompt() -> str:
    """A prompt that is added and removed."""
    return "extra"


async def _read_added(uri: str, values: dict[str, str], context: CallContext) -> list[ResourceContents]:
    return [ResourceContents(uri=uri, mime_type="text/plain", text="extra")]


def differential_toolset() -> Toolset:
    """A fresh toolset, with the tools that change it or wait for one another."""
    changing = DynamicToolset()
    changes = Declarations()
    cancelled = asyncio.Queue[None]()

    @changes.declare()
    async def linger(context: CallContext) -> Result[None]:
        """Report progress once, then run until cancelled."""
        try:
            await context.progress(1, 2)
            await asyncio.Event().wait()
        finally:
            cancelled.put_nowait(None)
        return text("never")

    @changes.declare()
    async def await_cancelled() -> Result[None]:
        """Wait until a lingering call was cancelled."""
        await cancelled.get()
        return text("cancelled")

    @changes.declare()
    def touch() -> Result[None]:
        """Change the watched resource."""
        changing.notify(material.WATCHED_URI)
        return text("touched")

    @changes.declare()
    def change_tools() -> Result[None]:
        """Add a tool, or remove it."""
        changing.replace(tools=[] if changing.tools() else [make_tool(extra)])
        return text("changed")

    @changes.declare()
    def change_prompts() -> Result[None]:
        """Add a prompt, or remove it."""
        changing.replace(prompts=[] if changing.prompts() else [make_prompt(extra_prompt)])
        return text("changed")

    @changes.declare()
    def change_resources() -> Result[None]:
        """Add a resource, or remove it."""
        added = Resource(uri=material.ADDED_URI, name="added", mime_type="text/plain", read=_read_added)
        changing.replace(resources=[] if changing.resources() else [added])
        return text("changed")

    return CombinedToolset([offers.toolset(), changes.toolset(), changing])
