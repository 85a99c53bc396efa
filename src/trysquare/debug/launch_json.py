"""launch.json: VS Code's launch configurations as targets of ours, variables filled in, what we cannot do refused."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.nearest import nearest

FILE = Path(".vscode") / "launch.json"
LANGUAGES = {
    "python": "python", "debugpy": "python", "node": "javascript", "pwa-node": "javascript", "lldb": "c",
    "lldb-dap": "c", "cppdbg": "c", "go": "go", "rdbg": "ruby", "java": "java",
}  # fmt: skip
_LEFT_OUT = ("stopOnEntry", "preLaunchTask", "postDebugTask", "envFile", "pathMappings")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchConfiguration:
    """One configuration, as far as a session needs it."""

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
    left_out: tuple[str, ...] = ()
    """What it asks for and is not done."""


def read_configurations(root: Path) -> list[dict[str, Any]]:
    """The configurations of a workspace as they are written, comments left out. None is an empty list."""
    file = root / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(file, f"it cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None
    plain = _TRAILING_COMMA.sub(lambda found: found[1] or "", _COMMENT.sub(lambda found: found[1] or "", text))
    try:
        whole = json.loads(plain)
    except json.JSONDecodeError as error:
        raise _invalid(file, f"{error.msg} near line {error.lineno}") from None
    found = cast(dict[str, Any], whole).get("configurations") if isinstance(whole, dict) else None
    return [cast(dict[str, Any], each) for each in cast(list[Any], found or []) if isinstance(each, dict)]


def find_configuration(root: Path, name: str, environment: Mapping[str, str]) -> LaunchConfiguration:
    """A configuration by its name, with its variables filled in."""
    known = {str(each.get("name")): each for each in read_configurations(root)}
    if name not in known:
        near = nearest(name, known)
        names = ", ".join(f"`{each}`" for each in near or tuple(known)[:10])
        hint = f"{'The nearest are' if near else f'{FILE} has'} {names}." if names else f"There is none in {FILE}."
        raise ToolError(f"There is no configuration `{name}`. {hint}", code=ErrorCode.CONFIG_NOT_FOUND)
    return _configuration(name, cast(dict[str, Any], _filled(known[name], root, environment, name)))


def _configuration(name: str, given: dict[str, Any]) -> LaunchConfiguration:
    kind = str(given.get("type", ""))
    language = LANGUAGES.get(kind)
    if language is None:
        raise ToolError(
            f"`{name}` is of type `{kind}`, which cannot be debugged here.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction=f"Types are {', '.join(LANGUAGES)}.",
        )
    connect = cast(dict[str, Any], given.get("connect") or given)
    port = connect.get("port")
    return LaunchConfiguration(
        name=name,
        language=language,
        request=str(given.get("request", "launch")),
        target=_target(given),
        cwd=given.get("cwd"),
        env={key: str(value) for key, value in cast(dict[str, Any], given.get("env") or {}).items()},
        runtime=_runtime(given),
        port=int(port) if isinstance(port, int | str) and str(port).isdigit() else None,
        host=connect.get("host"),
        just_my_code=bool(given.get("justMyCode", True)),
        left_out=tuple(name for name in _LEFT_OUT if given.get(name)),
    )


def _target(given: dict[str, Any]) -> str:
    arguments: Any = given.get("args") or []
    words = shlex.split(arguments) if isinstance(arguments, str) else [str(word) for word in cast(list[Any], arguments)]
    if module := given.get("module"):
        return shlex.join(["python", "-m", str(module), *words])
    program = given.get("program") or given.get("mainClass") or given.get("script") or ""
    return shlex.join([str(program), *words]) if program else ""


def _runtime(given: dict[str, Any]) -> str | None:
    names = ("python", "pythonPath", "runtimeExecutable", "javaExec")
    found: Any = next((given[name] for name in names if given.get(name)), None)
    first: Any = cast(list[Any], found)[0] if isinstance(found, list) else found
    return None if first is None else str(first)


def _filled(value: Any, root: Path, environment: Mapping[str, str], name: str) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found[1], root, environment, name), value)
    if isinstance(value, list):
        return [_filled(part, root, environment, name) for part in cast(list[Any], value)]
    if isinstance(value, dict):
        parts = cast(dict[str, Any], value)
        return {key: _filled(part, root, environment, name) for key, part in parts.items()}
    return value


def _variable(variable: str, root: Path, environment: Mapping[str, str], name: str) -> str:
    kind, _, rest = variable.partition(":")
    simple = {
        "workspaceFolder": str(root),
        "workspaceRoot": str(root),
        "workspaceFolderBasename": root.name,
        "userHome": environment.get("HOME", ""),
        "pathSeparator": "/",
    }
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
    why = reasons.get(kind) or ("it is the file open in the editor" if kind.startswith("file") else "it is not known")
    raise ToolError(
        f"`${{{variable}}}` in `{name}` cannot be filled in: {why}.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Give `target` and the other arguments themselves instead of launch_config_name.",
    )


def _invalid(file: Path, reason: str) -> ToolError:
    return ToolError(
        f"{file}: {reason}.", code=ErrorCode.CONFIG_INVALID, instruction="Ask the person to mend the file."
    )
