"""launch.json: VS Code's launch configurations as debug targets, with their variables substituted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object, map_strings
from trysquare.core.text import closest_names
from trysquare.debug.adapters.registry import LAUNCH_TYPES
from trysquare.debug.debugger import unsupported
from trysquare.files import jsonc
from trysquare.files.edit import TextError

FILE = Path(".vscode") / "launch.json"
_LEFT_OUT = ("preLaunchTask", "postDebugTask", "envFile", "pathMappings")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchConfiguration:
    """The settings of a configuration that a session uses."""

    name: str
    language: str
    request: str
    target: str
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    runtime: str | None = None
    port: int | None = None
    host: str | None = None
    just_my_code: bool = True
    stop_on_entry: bool = False
    left_out: tuple[str, ...] = ()
    """Settings that are ignored."""


def read_configurations(root: Path) -> list[JsonObject]:
    """The configurations of a workspace as they are written; empty without a launch.json."""
    file = root / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(file, f"cannot read it ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None
    try:
        found = jsonc.read_entry(text, ["configurations"])
    except TextError as error:
        raise _invalid(file, str(error)) from None
    return [as_object(each) for each in as_list(found) if isinstance(each, dict)]


def find_configuration(root: Path, name: str, environment: Mapping[str, str]) -> LaunchConfiguration:
    """A configuration by its name, with its variables substituted."""
    known = {str(each.get("name")): each for each in read_configurations(root)}
    if name not in known:
        near = closest_names(name, known)
        names = ", ".join(f"`{each}`" for each in near or tuple(known)[:10])
        hint = f"{'Did you mean' if near else f'{FILE} has'} {names}{'?' if near else '.'}" if names else ""
        hint = hint or f"{FILE} has no configurations."
        raise ToolError(f"Unknown configuration `{name}`. {hint}", code=ErrorCode.CONFIG_NOT_FOUND)

    def substituted(text: str) -> str:
        return _VARIABLE.sub(lambda found: _variable(found[1], root, environment, name), text)

    return _configuration(name, as_object(map_strings(known[name], substituted)))


def _configuration(name: str, given: JsonObject) -> LaunchConfiguration:
    kind = str(given.get("type", ""))
    language = LAUNCH_TYPES.get(kind)
    if language is None:
        supported = f"Supported types: {', '.join(LAUNCH_TYPES)}."
        raise unsupported(f"Configuration `{name}` has the unsupported type `{kind}`.", supported)
    connect = as_object(given.get("connect")) or given
    port = connect.get("port")
    return LaunchConfiguration(
        name=name,
        language=language,
        request=str(given.get("request", "launch")),
        target=_target(given),
        cwd=given.get("cwd"),
        env={key: str(value) for key, value in as_object(given.get("env")).items()},
        runtime=_runtime(given),
        port=int(port) if isinstance(port, int | str) and str(port).isdigit() else None,
        host=connect.get("host"),
        just_my_code=bool(given.get("justMyCode", True)),
        stop_on_entry=bool(given.get("stopOnEntry", False)),
        left_out=tuple(name for name in _LEFT_OUT if given.get(name)),
    )


def _target(given: JsonObject) -> str:
    arguments = given.get("args")
    words = shlex.split(arguments) if isinstance(arguments, str) else [str(word) for word in as_list(arguments)]
    if module := given.get("module"):
        return shlex.join(["python", "-m", str(module), *words])
    program = given.get("program") or given.get("mainClass") or given.get("script") or ""
    return shlex.join([str(program), *words]) if program else ""


def _runtime(given: JsonObject) -> str | None:
    names = ("python", "pythonPath", "runtimeExecutable", "javaExec")
    found: Any = next((given[name] for name in names if given.get(name)), None)
    first = as_list(found)[0] if isinstance(found, list) else found
    return None if first is None else str(first)


def _variable(variable: str, root: Path, environment: Mapping[str, str], name: str) -> str:
    kind, _, rest = variable.partition(":")
    simple = {
        "workspaceFolder": str(root), "workspaceRoot": str(root), "workspaceFolderBasename": root.name,
        "userHome": environment.get("HOME", ""), "pathSeparator": "/",
    }  # fmt: skip
    if variable in simple:
        return simple[variable]
    if kind == "env":
        wanted, _, default = rest.partition(":")
        return environment.get(wanted, default)
    reasons = {
        "config": "it is a setting of the editor",
        "command": "it is a command of the editor",
        "input": "the editor would ask for it",
    }
    reason = reasons.get(kind) or ("it is the file open in the editor" if kind.startswith("file") else "unknown name")
    raise unsupported(
        f"Cannot substitute `${{{variable}}}` in configuration `{name}`: {reason}.",
        "Give `target` and the other arguments instead of launch_config_name.",
    )


def _invalid(file: Path, reason: str) -> ToolError:
    return ToolError(f"{file}: {reason}.", code=ErrorCode.CONFIG_INVALID, instruction="Ask the user to fix the file.")
