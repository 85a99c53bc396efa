"""adapter: which debuggers there are, and installing the others once a person agrees."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.consent import arguments_digest
from trysquare.core.context import CallContext
from trysquare.core.errors import ConsentNeeded, ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.adapters import ADAPTERS, Adapter, adapter_for, installed, look_for, run_install
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.desk import Desk
from trysquare.debug.languages import ALIASES
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer


class AdapterArguments(ActionArguments):
    """Arguments of adapter."""

    also: ClassVar = {"install": "download", "install_all": "download_all", "status": "list", "show": "list"}

    action: Literal["list", "download", "download_all"] = "list"
    language: Annotated[str | None, Field(description="For download")] = None
    version: str | None = None
    force: Annotated[bool, Field(description="Install even where it is there")] = False


def adapter_tool(desk: Desk) -> Tool:
    """The tool for adapters."""

    async def adapter(args: AdapterArguments, context: CallContext) -> Result[Any]:
        """List debuggers, or install one after consent."""
        if args.action == "list":
            found = await installed()
            count = sum(each.path is not None for each in found)
            return answer(None, f"{count} of {len(found)} debuggers are installed.", {"adapters": _told(found)})
        if args.version is not None:
            raise ToolError(
                "A debugger is installed in the version that its package index has.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Leave `version` out, or ask the person to install that version.",
            )
        wanted = list(ADAPTERS) if args.action == "download_all" else [_of(args.language)]
        return await _install(wanted, force=args.force, context=context)

    return tool(adapter, name=ToolName.ADAPTER, room="debug", category="debug", open_world=True, result_limit=None)


def _told(found: Any) -> list[Any]:
    return [each.to_json() for each in found]


def _of(language: str | None) -> Adapter:
    if language is None:
        raise InvalidArguments("`language` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM)
    adapter = adapter_for(ALIASES.get(language.lower(), language.lower()))
    if adapter is None:
        known = ", ".join(name for each in ADAPTERS for name in each.languages)
        raise InvalidArguments(f"There is no debugger for `{language}`.", instruction=f"Languages are {known}.")
    return adapter


async def _install(wanted: list[Adapter], *, force: bool, context: CallContext) -> Result[Any]:
    missing = [each for each in wanted if force or (await look_for(each)).path is None]
    if not missing:
        return answer(None, "Everything is installed already.", {"adapters": _told(await installed(wanted))})
    await _agreed(missing, context)
    for each in missing:
        code, told = await run_install(each)
        if code:
            raise ToolError(
                f"`{' '.join(each.install)}` failed with exit code {code}.",
                code=ErrorCode.ADAPTER_INSTALL_FAILED,
                instruction="Ask the person to run it, with the rights that it needs.",
                fields={"output": told},
            )
    return answer(
        None, f"Installed {', '.join(each.name for each in missing)}.", {"adapters": _told(await installed(wanted))}
    )


async def _agreed(missing: list[Adapter], context: CallContext) -> None:
    """Installing changes the machine: a person has to say yes to the very commands."""
    commands = "\n".join(" ".join(each.install) for each in missing)
    if not context.can_ask():
        raise ConsentNeeded(
            f"A person has to run this, or agree to it:\n{commands}",
            instruction="Show the person the commands; this client cannot ask them.",
        )
    schema = {"type": "object", "properties": {"install": {"type": "boolean"}}, "required": ["install"]}
    # The key stands for these very commands: a yes to others does not count.
    key = "install-" + arguments_digest({"commands": commands})[:32]
    said = await context.ask(f"Run these commands on this machine?\n{commands}", schema, key=key)
    if said.action != "accept" or said.content.get("install") is not True:
        raise ToolError("The person did not agree to the installation.", code=ErrorCode.CONSENT_REFUSED)
