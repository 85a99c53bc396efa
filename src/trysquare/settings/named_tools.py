"""What `MODULE:NAME` names: a module of the user's, imported, and in it the tools to serve."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from trysquare.core.arguments import ToolArguments
from trysquare.core.declarations import Declarations
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.nearest import nearest
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import CombinedToolset, FixedToolset, Toolset

KINDS = "a Declarations, a Toolset, a Tool, a function, or a list of tools"


def named_toolset(named: str, *, project: Path, where: str = "--tools") -> Toolset:
    """Import the module and return the tools of that name; without a name, all that the module declares."""
    module_name, separator, name = named.partition(":")
    make_importable(project)
    place = f"{where}: {named}"
    module = _imported(module_name, project, place)
    if not separator:
        return _declared_in(module, place)
    return _as_toolset(_attribute(module, name, place), place)


def make_importable(project: Path) -> None:
    """Let modules of the project be imported by name, before anything of the same name elsewhere."""
    folder = str(project.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _imported(name: str, project: Path, place: str) -> ModuleType:
    # What a module prints while it is imported must not mix with the protocol or with --json on stdout.
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not _is_part_of(error.name, name):
            raise _failed(error, place) from error
        raise _no_module(error.name, project, place) from None
    except (Exception, SystemExit) as error:
        raise _failed(error, place) from error


def _is_part_of(missing: str, name: str) -> bool:
    return name == missing or name.startswith(f"{missing}.")


def _no_module(missing: str, project: Path, place: str) -> ConfigurationError:
    parent, _, last = missing.rpartition(".")
    folder = project.joinpath(*parent.split(".")) if parent else project
    near = nearest(last, _modules_in(folder))
    shown = f"{parent}.{near[0]}" if near and parent else near[0] if near else ""
    hint = (
        f"The nearest is `{shown}`."
        if near
        else f"Modules are looked for in {project.resolve()} and where Python looks."
    )
    return ConfigurationError(f"there is no module `{missing}`.", where=place, hint=hint)


def _modules_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    files = [path.stem for path in folder.glob("*.py")]
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted({*files, *packages} - {"__init__", "__main__"})


def _failed(error: BaseException, place: str) -> ConfigurationError:
    """Say what a module raised while it was imported, and on which of its lines."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        line = f" ({error.filename}:{error.lineno})"
    else:
        line = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return ConfigurationError(f"importing it failed: {type(error).__name__}: {text}{line}", where=place)


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or filename in (__file__, importlib.__file__)


def _attribute(module: ModuleType, name: str, place: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise _no_name(found, part, module, place)
        found = getattr(found, part)
    return found


def _no_name(inside: Any, part: str, module: ModuleType, place: str) -> ConfigurationError:
    public = [known for known in dir(inside) if not known.startswith("_")]
    near = nearest(part, public) or [known for known in public if _is_tools(getattr(inside, known))][:1]
    hint = f"The nearest is `{near[0]}`." if near else f"Make it {KINDS}."
    return ConfigurationError(f"{module.__name__} has no `{part}`.", where=place, hint=hint)


def _is_tools(value: Any) -> bool:
    return isinstance(value, (Declarations, Tool)) or is_toolset(value)


def is_toolset(value: Any) -> bool:
    """Whether a value has the shape of a toolset."""
    wanted = ("tools", "find", "prompts", "find_prompt", "resources", "templates", "find_resource", "subscribe")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in wanted)


def _as_toolset(value: Any, place: str) -> Toolset:
    match value:
        case Declarations():
            return value.toolset()
        case Tool():
            return FixedToolset((value,))
        case FunctionType():
            return _set_of((value,), place)
        case list() | tuple():
            return _set_of(cast(Sequence[Any], value), place)
        case _ if is_toolset(value):
            return cast(Toolset, value)
        case _:
            raise ConfigurationError(
                f"a {type(value).__name__} is no source of tools.", where=place, hint=f"Name {KINDS}."
            )


def _set_of(values: Sequence[Any], place: str) -> Toolset:
    for value in values:
        if not isinstance(value, (Tool, FunctionType)):
            raise ConfigurationError(f"its list holds a {type(value).__name__}.", where=place, hint="List tools only.")
    try:
        return FixedToolset(value if isinstance(value, Tool) else tool(value) for value in values)
    except DeclarationError as error:
        raise ConfigurationError(str(error), where=place) from None


def _declared_in(module: ModuleType, place: str) -> Toolset:
    """All that a module declares: its Declarations, and the functions declared with `ToolArguments.declare`."""
    sets: list[Toolset] = [value.toolset() for value in _declarations(vars(module).values())]
    functions: Iterable[Callable[..., Any]] = ToolArguments.get_declared_tools().values()
    made = tuple(functions)
    if made:
        sets.append(_set_of(made, place))
    if not sets:
        raise ConfigurationError(
            "the module declares no tools.", where=place, hint=f"Name {KINDS}: {module.__name__}:NAME."
        )
    return CombinedToolset(sets)


def _declarations(values: Iterable[Any]) -> list[Declarations]:
    unique = {id(value): value for value in values if isinstance(value, Declarations)}
    return list(unique.values())
