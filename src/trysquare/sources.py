"""Sources of tools: what `server.py`, `server.py:NAME`, `package.module` or `MODULE:NAME` stands for."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast
from zlib import crc32

from trysquare.core.arguments import ToolArguments
from trysquare.core.declarations import Tools
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import CombinedToolset, StaticToolset, Toolset
from trysquare.settings.model import is_document, split_source

KINDS = "a `Tools` object, a Toolset, a Tool, a function, or a list of tools"
_OWN_FOLDER = str(Path(__file__).parent) + os.sep
_FASTMCP = "fastmcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A module or a Python file, and what it calls its tools."""

    module: str
    """The dotted name of the module; for a file, the name under which it is imported."""
    file: Path | None = None
    name: str = ""
    """The variable with the tools; empty for the only one there is."""

    @property
    def folder(self) -> Path | None:
        """The directory that Python has to search for the file and what it imports."""
        return None if self.file is None else self.file.parents[self.module.count(".")]


def parse_source(text: str, *, project: Path) -> Source:
    """The source that a text names; a relative file is one of the project's."""
    place, name, is_file = split_source(text)
    if not is_file:
        return Source(module=place, name=name)
    file = (project / os.path.expanduser(place)).resolve()
    if is_document(text):
        return Source(module="", file=file)
    return Source(module=_module_name(file), file=file, name=name)


def _module_name(file: Path) -> str:
    """The dotted name of a file: with the packages around it, so that its relative imports work."""
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) > 1 or not _is_taken(file):
        return ".".join(parts)
    # Two files of one name, or the name of an installed module: it cannot be imported under it, but it can be run.
    return f"{file.stem}_{crc32(os.fsencode(file)):08x}"


def _is_taken(file: Path) -> bool:
    """Whether the name of a file is not one for a module, or belongs to another one."""
    known = sys.modules.get(file.stem)
    if known is not None:
        return _file_of(known) != file
    return not file.stem.isidentifier() or file.stem in sys.stdlib_module_names


def load_tools(named: str, *, project: Path, where: str = "", openapi_url: str | None = None) -> Toolset:
    """The tools of a source, whose module is imported. Raises `ConfigurationError`.

    `openapi_url` is the address of the API, where the source is an OpenAPI document.
    """
    location = f"{where}: {named}" if where else named
    if is_document(named):
        return _api_tools(named, project, openapi_url)
    source = parse_source(named, project=project)
    module = import_source(source, project=project, location=location)
    if source.name:
        return _toolset_of(_attribute(module, source.name, location), location)
    return _only_tools_of(module, named, location)


def _api_tools(named: str, project: Path, url: str | None) -> Toolset:
    # Imported here, since most sources are Python.
    from trysquare.openapi import from_openapi

    _, _, is_file = split_source(named)
    spec = project / os.path.expanduser(named) if is_file else named
    return from_openapi(spec, base_url=url)


def import_source(source: Source, *, project: Path, location: str) -> ModuleType:
    """The module of a source, imported once. Raises `ConfigurationError`."""
    for folder in (str(project.resolve()), str(source.folder or "")):
        if folder and folder not in sys.path:
            sys.path.insert(0, folder)
    if source.file is not None and not source.file.is_file():
        raise _file_not_found(source.file, location)
    # What a module prints while it is imported must not mix with the protocol or with --json on stdout.
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.invalidate_caches()
            linecache.checkcache()
            return _import_file(source) if source.file else importlib.import_module(source.module)
    except ModuleNotFoundError as error:
        if source.file or error.name is None or not f"{source.module}.".startswith(f"{error.name}."):
            raise import_failed(error, location) from error
        raise _module_not_found(error.name, project, location) from None
    except (Exception, SystemExit) as error:
        raise import_failed(error, location) from error


def _import_file(source: Source) -> ModuleType:
    """Import a file under its name, so that what imports it gets the same module."""
    assert source.file is not None
    known = sys.modules.get(source.module)
    if known is not None and _file_of(known) == source.file:
        return known
    if "." in source.module:
        found = importlib.import_module(source.module)
        if _file_of(found) == source.file:
            return found
    spec = importlib.util.spec_from_file_location(source.module, source.file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[source.module] = importlib.util.module_from_spec(spec)
    with contextlib.ExitStack() as failed:
        failed.callback(sys.modules.pop, source.module, None)
        spec.loader.exec_module(module)
        failed.pop_all()
    return module


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _file_not_found(file: Path, location: str) -> ConfigurationError:
    near = closest_names(file.name, sorted(path.name for path in file.parent.glob("*.py")))
    place = f"The path is {file}." if location != str(file) else "Name a file that exists."
    hint = f"Did you mean `{near[0]}`?" if near else place
    return ConfigurationError("file not found.", where=location, hint=hint)


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
    """The error that a module raised while it was imported, with the user's own lines that led there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own_file(frame.filename)]
    if not own and not isinstance(error, SyntaxError):
        own = list(frames[-1:])
    places = [f"{frame.filename}:{frame.lineno}" for frame in own]
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        places, text = [*places, f"{error.filename}:{error.lineno}"], error.msg
    stated = error.location if isinstance(error, DeclarationError) else None
    last = f" ({places[-1]})" if places and stated is None else ""
    # Lines of the file that the message names already, such as the line of a class around the declaration, say nothing.
    named = stated or (places[-1] if places else "")
    way = "".join(f"\n  {place}" for place in places[:-1] if place.rpartition(":")[0] != named.rpartition(":")[0])
    by_way_of = f"\nimported by:{way}" if way else ""
    return ConfigurationError(f"import failed: {type(error).__name__}: {text}{last}{by_way_of}", where=location)


def is_own_file(filename: str) -> bool:
    """Whether a file is the user's: not one of Python, of an installed package, or of Trysquare."""
    if filename.startswith(("<", _OWN_FOLDER)):
        return False
    return not filename.startswith(_installed_folders())


@cache
def _installed_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in names} | _library_folders())


def _library_folders() -> set[str]:
    """The directories of a search path that hold installed packages, such as those of a system Python."""
    ends = ("site-packages", "dist-packages")
    return {entry + os.sep for entry in sys.path if entry.rstrip(os.sep).endswith(ends)}


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
    return isinstance(value, (Tools, Tool)) or _is_toolset(value) or _is_fastmcp(value)


def _is_declared(value: Any) -> bool:
    return isinstance(value, Tools)


def _is_toolset(value: Any) -> bool:
    wanted = ("tools", "find", "prompts", "find_prompt", "resources", "templates", "find_resource", "subscribe")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in wanted)


def _is_fastmcp(value: Any) -> bool:
    """Whether it is a server of FastMCP; without FastMCP loaded nothing is."""
    package = sys.modules.get(_FASTMCP)
    kind = getattr(package, "FastMCP", None) if package is not None else None
    return kind is not None and isinstance(value, kind)


def _toolset_of(value: Any, location: str) -> Toolset:
    if isinstance(value, Tools):
        return value.toolset()
    if isinstance(value, (Tool, FunctionType)):
        return _static_toolset((value,), location)
    if isinstance(value, (list, tuple)):
        return _static_toolset(cast(Iterable[Any], value), location)
    if _is_toolset(value):
        return cast(Toolset, value)
    if _is_fastmcp(value):
        from trysquare.integrations.fastmcp_toolset import from_fastmcp

        return from_fastmcp(value)
    raise ConfigurationError(
        f"`{type(value).__name__}` is not a source of tools.", where=location, hint=f"Name {KINDS}."
    )


def _static_toolset(values: Iterable[Any], location: str, make: Callable[[Any], Tool] = tool) -> Toolset:
    for value in values:
        if not isinstance(value, (Tool, FunctionType)):
            message = f"the list contains a `{type(value).__name__}`."
            raise ConfigurationError(message, where=location, hint="List tools only.")
    try:
        return StaticToolset(value if isinstance(value, Tool) else make(value) for value in values)
    except DeclarationError as error:
        raise ConfigurationError(str(error), where=location) from None


def _only_tools_of(module: ModuleType, named: str, location: str) -> Toolset:
    """The tools of a module that names them once, and the functions declared with `ToolArguments.declare`."""
    found = _sources_in(module)
    if len(found) > 1:
        names = ", ".join(f"`{named}:{name}`" for name in found)
        raise ConfigurationError("the module has several sources of tools.", where=location, hint=f"Choose: {names}.")
    sets = [_toolset_of(value, location) for value in found.values()]
    if functions := tuple(ToolArguments.get_declared_tools().values()):
        # Imported here, since most modules declare another way.
        from trysquare.integrations.decorator import described_tool

        sets.append(_static_toolset(functions, location, make=described_tool))
    if not sets:
        hint = f"Name {KINDS}: {named}:NAME."
        raise ConfigurationError("the module declares no tools.", where=location, hint=hint)
    return sets[0] if len(sets) == 1 else CombinedToolset(sets)


def _has_mounted(outer: object, inner: object) -> bool:
    return isinstance(outer, Tools) and isinstance(inner, Tools) and outer.has_mounted(inner)


def _sources_in(module: ModuleType) -> Mapping[str, Any]:
    """The `Tools` of a module by name, each once; without any, its FastMCP servers, and then its toolsets."""
    for is_kind in (_is_declared, _is_fastmcp, _is_toolset):
        found: dict[int, tuple[str, Any]] = {}
        for name, value in vars(module).items():
            if is_kind(value):
                found.setdefault(id(value), (name, value))
        if found:
            # What one of the others has mounted is served by that one.
            outer = [
                (name, value)
                for name, value in found.values()
                if not any(other is not value and _has_mounted(other, value) for _, other in found.values())
            ]
            return dict(outer or found.values())
    return {}
