"""Tools: where a module declares its tools, prompts and resources; and the tools of `MODULE:NAME`."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, Unpack, cast, overload

from trysquare.core.arguments import DrainableRegistry, ToolArguments
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.metadata import MetadataOptions
from trysquare.core.prompts import Complete, Prompt, prompt
from trysquare.core.resources import Resource, ResourceTemplate, resource
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import CombinedToolset, ServerInfo, StaticToolset, Toolset

F = TypeVar("F", bound=Callable[..., Any])


class ToolOptions(MetadataOptions, total=False):
    """The options of `Tools.tool`."""

    name: str | None
    title: str | None
    description: str | None


KINDS = "a `Tools` object, a Toolset, a Tool, a function, or a list of tools"


class Tools:
    """The tools, prompts and resources of a module, and what a server that serves them alone is called.

    It is an object that the module owns, so that importing has no hidden effect.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        version: str | None = None,
        instructions: str | None = None,
    ) -> None:
        info = ServerInfo(name=name, title=title, version=version, instructions=instructions)
        self.server_info: ServerInfo | None = None if info == ServerInfo() else info
        self._tools: DrainableRegistry[Tool] = DrainableRegistry("Tool")
        self._prompts: DrainableRegistry[Prompt] = DrainableRegistry("Prompt")
        self._resources: DrainableRegistry[Resource | ResourceTemplate] = DrainableRegistry("Resource")

    @overload
    def tool(self, function: F, /, **options: Unpack[ToolOptions]) -> F: ...

    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: Callable[..., Any] | str | None = None, /, **options: Any) -> Any:
        """Declare a function as a tool; it is returned unchanged. Works with and without parentheses."""
        if isinstance(function, str):
            options, function = {"name": function, **options}, None

        def remember(declared: F) -> F:
            self.add(tool(declared, **options))
            return declared

        return remember if function is None else remember(function)

    declare = tool

    def add(self, made: Tool) -> None:
        """Add a tool that was made elsewhere."""
        self._tools.add(made.name, made)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        complete: Complete | None = None,
        examples: tuple[tuple[str, str], ...] = (),
    ) -> Callable[[F], F]: ...

    def prompt(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a prompt; it is returned unchanged. Works with and without parentheses."""

        def remember(declared: F) -> F:
            made = prompt(declared, **options)
            self._prompts.add(made.name, made)
            return declared

        return remember if function is None else remember(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Complete | None = None,
    ) -> Callable[[F], F]:
        """Declare a function as a resource, or as a template where the address has parts in braces."""

        def remember(declared: F) -> F:
            made = resource(
                declared, uri, name=name, title=title, description=description, mime_type=mime_type, complete=complete
            )
            self._resources.add(uri, made)
            return declared

        return remember

    def toolset(self) -> StaticToolset:
        """All that was declared, as a toolset. Can be asked again; nothing is used up."""
        return self._toolset_of(self._tools.all(), self._prompts.all(), self._resources.all())

    def collect(self) -> StaticToolset:
        """All that was declared since the last time, once: what is collected is not collected again."""
        return self._toolset_of(self._tools.take(), self._prompts.take(), self._resources.take())

    def _toolset_of(
        self, tools: dict[str, Tool], prompts: dict[str, Prompt], resources: dict[str, Resource | ResourceTemplate]
    ) -> StaticToolset:
        return StaticToolset(
            tools.values(),
            prompts=prompts.values(),
            resources=(made for made in resources.values() if isinstance(made, Resource)),
            templates=(made for made in resources.values() if isinstance(made, ResourceTemplate)),
            server_info=self.server_info,
        )


Declarations = Tools
"""The former name of `Tools`."""


def load_module_tools(named: str, *, project: Path, where: str = "--tools") -> Toolset:
    """Import the module and return the tools of that name; without a name, all that the module declares."""
    module_name, separator, name = named.partition(":")
    folder = str(project.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    location = f"{where}: {named}"
    module = _import_module(module_name, project, location)
    if not separator:
        return _declared_in(module, location)
    return _toolset_of(_attribute(module, name, location), location)


def _import_module(name: str, project: Path, location: str) -> ModuleType:
    # What a module prints while it is imported must not mix with the protocol or with --json on stdout.
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise import_failed(error, location) from error
        raise _module_not_found(error.name, project, location) from None
    except (Exception, SystemExit) as error:
        raise import_failed(error, location) from error


def _module_not_found(missing: str, project: Path, location: str) -> ConfigurationError:
    parent, _, last = missing.rpartition(".")
    folder = project.joinpath(*parent.split(".")) if parent else project
    files = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    near = closest_names(last, sorted(files - {"__init__", "__main__"}))
    hint = f"The search path is {project.resolve()}, then Python's own."
    if near:
        hint = f"Did you mean `{f'{parent}.' if parent else ''}{near[0]}`?"
    return ConfigurationError(f"module `{missing}` not found.", where=location, hint=hint)


def import_failed(error: BaseException, location: str) -> ConfigurationError:
    """The error that a module raised while it was imported, with the line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    if isinstance(error, DeclarationError):
        # What is wrong stands where the tool is declared, not where that was found.
        frames = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent] or frames
    line, text = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else "", str(error)
    if isinstance(error, SyntaxError):
        line, text = f" ({error.filename}:{error.lineno})" if error.filename else line, error.msg
    return ConfigurationError(f"import failed: {type(error).__name__}: {text}{line}", where=location)


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or filename in (__file__, importlib.__file__)


def _attribute(module: ModuleType, name: str, location: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [known for known in dir(found) if not known.startswith("_")]
            near = closest_names(part, public) or [known for known in public if _is_tools(getattr(found, known))]
            hint = f"Did you mean `{near[0]}`?" if near else f"Make it {KINDS}."
            raise ConfigurationError(f"{module.__name__} has no `{part}`.", where=location, hint=hint)
        found = getattr(found, part)
    return found


def _is_tools(value: Any) -> bool:
    return isinstance(value, (Tools, Tool)) or _is_toolset(value)


def _is_toolset(value: Any) -> bool:
    wanted = ("tools", "find", "prompts", "find_prompt", "resources", "templates", "find_resource", "subscribe")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in wanted)


def _toolset_of(value: Any, location: str) -> Toolset:
    if isinstance(value, Tools):
        return value.toolset()
    if isinstance(value, (Tool, FunctionType)):
        return _static_toolset((value,), location)
    if isinstance(value, (list, tuple)):
        return _static_toolset(cast(Iterable[Any], value), location)
    if _is_toolset(value):
        return cast(Toolset, value)
    raise ConfigurationError(
        f"`{type(value).__name__}` is not a source of tools.", where=location, hint=f"Name {KINDS}."
    )


def _static_toolset(values: Iterable[Any], location: str) -> Toolset:
    for value in values:
        if not isinstance(value, (Tool, FunctionType)):
            message = f"the list contains a `{type(value).__name__}`."
            raise ConfigurationError(message, where=location, hint="List tools only.")
    try:
        return StaticToolset(value if isinstance(value, Tool) else tool(value) for value in values)
    except DeclarationError as error:
        raise ConfigurationError(str(error), where=location) from None


def _declared_in(module: ModuleType, location: str) -> Toolset:
    """All that a module declares: its `Tools`, and the functions declared with `ToolArguments.declare`."""
    unique = {id(value): value for value in vars(module).values() if isinstance(value, Tools)}
    sets: list[Toolset] = [declared.toolset() for declared in unique.values()]
    if functions := tuple(ToolArguments.get_declared_tools().values()):
        sets.append(_static_toolset(functions, location))
    if not sets:
        hint = f"Name {KINDS}: {module.__name__}:NAME."
        raise ConfigurationError("the module declares no tools.", where=location, hint=hint)
    return CombinedToolset(sets)
