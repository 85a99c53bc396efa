"""Agent definitions, read from TOML files that a user can copy and change."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import reduce
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from trysquare.agents.budget import Budget
from trysquare.agents.capabilities import Bundle, bundle
from trysquare.agents.completion import Criteria
from trysquare.agents.policy import Effect, Policy, Rule
from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names

Workspace: TypeAlias = Literal["project", "copy"]
SUFFIX = ".toml"
_MAX_FILE = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentDefinition:
    """An agent: its instructions, tools, policy, completion criteria and budget."""

    name: str
    description: str
    instructions: str
    title: str | None = None
    bundle: Bundle = field(default_factory=Bundle)
    bundles: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ("workbench",)
    policy: Policy = field(default_factory=Policy)
    criteria: Criteria = field(default_factory=Criteria)
    budget: Budget = field(default_factory=Budget)
    workspace: Workspace = "project"
    """The project itself, or a temporary copy, so that nothing can be changed."""
    parallel: bool = True
    answer_tokens: int | None = None
    """Limit of one answer, thinking included; None leaves it to the settings."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tools(_Part):
    bundles: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = Field(default=("workbench",), validation_alias=AliasChoices("toolsets", "rooms"))
    """`rooms` is the old key."""
    parallel: bool = True


class _Policy(_Part):
    default: Effect = "deny"
    rules: tuple[Rule, ...] = ()


class _File(_Part):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    description: Annotated[str, Field(min_length=1, max_length=500)]
    instructions: Annotated[str, Field(min_length=1)]
    title: str | None = None
    workspace: Workspace = "project"
    answer_tokens: Annotated[int | None, Field(ge=64, le=1_000_000)] = None
    tools: _Tools = _Tools()
    policy: _Policy = _Policy()
    completion: Criteria = Criteria()
    budget: Budget = Budget()


ALWAYS_DENIED = (
    Rule(effect="deny", paths=(".trysquare/**", "**/.trysquare/**"), why="agents may not touch the state of Trysquare"),
    Rule(
        effect="deny",
        commands=("trysquare approve*", "*-m trysquare approve*", "trysquare token*", "*-m trysquare token*"),
        why="only the user may approve a call",
    ),
)
"""What no definition can allow, since deny has precedence."""


def parse_definition(text: str, *, where: str) -> AgentDefinition:
    try:
        read = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"invalid TOML: {error}.", where=where) from None
    except ValidationError as error:
        problems = error.errors(include_url=False)[:5]
        message = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in problems)
        raise ConfigurationError(f"{message}.", where=where) from None
    own = Bundle(required=read.tools.required, optional=read.tools.optional)
    try:
        merged = reduce(Bundle.merged, (bundle(name) for name in read.tools.bundles), own)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, where=f"{where}: tools.bundles", hint=error.hint) from None
    return AgentDefinition(
        name=read.name,
        title=read.title,
        description=read.description,
        instructions=read.instructions.strip(),
        bundle=merged,
        bundles=read.tools.bundles,
        toolsets=read.tools.toolsets,
        policy=Policy(default=read.policy.default, rules=(*read.policy.rules, *ALWAYS_DENIED)),
        criteria=read.completion,
        budget=read.budget,
        workspace=read.workspace,
        parallel=read.tools.parallel,
        answer_tokens=read.answer_tokens,
    )


def built_in_names() -> tuple[str, ...]:
    folder = files("trysquare.agents") / "definitions"
    return tuple(sorted(entry.name.removesuffix(SUFFIX) for entry in folder.iterdir() if entry.name.endswith(SUFFIX)))


def built_in_text(name: str) -> str:
    return (files("trysquare.agents") / "definitions" / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def load_definition(name: str, *, folder: Path | None = None) -> AgentDefinition:
    """Load an agent by built-in name, path, or name in the agents' folder; a file never overrides a built-in agent."""
    if name.endswith(SUFFIX):
        return _load_file(Path(name))
    if name in built_in_names():
        return parse_definition(built_in_text(name), where=f"the agent {name}")
    if folder is not None and name.isidentifier() and (own := folder / f"{name}{SUFFIX}").is_file():
        return _load_file(own)
    known = (*built_in_names(), *_file_names(folder))
    near = closest_names(name, known)
    hint = f"Did you mean `{near[0]}`?" if near else f"Use one of {', '.join(known)}, or a TOML file."
    raise ConfigurationError(f"unknown agent `{name}`.", hint=hint)


def known_definitions(folder: Path | None = None) -> list[AgentDefinition]:
    """Built-in agents, and those of a folder with other names."""
    own = [name for name in _file_names(folder) if name not in built_in_names()]
    return [load_definition(name, folder=folder) for name in (*built_in_names(), *own)]


def _file_names(folder: Path | None) -> list[str]:
    return [] if folder is None else sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))


def _load_file(path: Path) -> AgentDefinition:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read it: {error.strerror}.", where=str(path)) from None
    if len(raw) > _MAX_FILE:
        raise ConfigurationError(f"it is larger than {_MAX_FILE:,} bytes.", where=str(path))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"it is not UTF-8 (byte {error.start}).", where=str(path)) from None
    definition = parse_definition(text, where=str(path))
    if definition.name != path.stem:
        raise ConfigurationError(
            f"it defines the agent `{definition.name}`.", where=str(path), hint="Give file and agent the same name."
        )
    return definition
