"""AgentDefinition: an agent as a value, read from a TOML file that a user can copy and change."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trysquare.agent.budgets import Budget
from trysquare.agent.bundles import Bundle, bundle
from trysquare.agent.completion import Criteria
from trysquare.agent.policy import Effect, Policy, Rule
from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest

Workspace: TypeAlias = Literal["project", "copy"]
SUFFIX = ".toml"
_MAX_FILE = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentDefinition:
    """What an agent is: whom it speaks as, which tools it has, what it may do, and when it is done."""

    name: str
    description: str
    instructions: str
    title: str | None = None
    bundle: Bundle = field(default_factory=Bundle)
    bundles: tuple[str, ...] = ()
    """The names of the bundles that it was made of."""
    rooms: tuple[str, ...] = ("workbench",)
    policy: Policy = field(default_factory=Policy)
    criteria: Criteria = field(default_factory=Criteria)
    budget: Budget = field(default_factory=Budget)
    workspace: Workspace = "project"
    """Whether it works in the project itself, or in a copy that is thrown away, so that it can change nothing."""
    parallel: bool = True
    """Whether one answer may hold several calls."""
    answer_tokens: int | None = None
    """How many tokens one answer of the model may have, thinking included; None leaves it to the settings."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tools(_Part):
    bundles: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ("workbench",)
    parallel: bool = True


class _Rule(_Part):
    effect: Effect
    tool: str = "*"
    actions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    why: str | None = None


class _Policy(_Part):
    default: Effect = "deny"
    rules: tuple[_Rule, ...] = ()


class _Completion(_Part):
    tests_pass: bool = False
    files_exist: bool = False
    files_change: bool = False
    called: tuple[str, ...] = ()


class _Budget(_Part):
    steps: Annotated[int, Field(ge=1, le=10_000)] = 40
    tokens: Annotated[int | None, Field(ge=1)] = None
    seconds: Annotated[float | None, Field(gt=0)] = None
    cost: Annotated[float | None, Field(gt=0)] = None


class _File(_Part):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    description: Annotated[str, Field(min_length=1, max_length=500)]
    instructions: Annotated[str, Field(min_length=1)]
    title: str | None = None
    workspace: Workspace = "project"
    answer_tokens: Annotated[int | None, Field(ge=64, le=1_000_000)] = None
    tools: _Tools = _Tools()
    policy: _Policy = _Policy()
    completion: _Completion = _Completion()
    budget: _Budget = _Budget()


ALWAYS_DENIED = (
    Rule(effect="deny", paths=(".trysquare/**", "**/.trysquare/**"), why="no agent touches the state of Trysquare"),
    Rule(
        effect="deny",
        commands=("trysquare approve*", "*-m trysquare approve*", "trysquare token*", "*-m trysquare token*"),
        why="only a person approves a call",
    ),
)
"""What no definition can allow, since deny stands over everything."""


def parse_definition(text: str, *, where: str) -> AgentDefinition:
    """An agent from the text of its file."""
    try:
        read = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"it is no TOML: {error}.", where=where) from None
    except ValidationError as error:
        raise ConfigurationError(_told(error), where=where) from None
    own = Bundle(required=read.tools.required, optional=read.tools.optional)
    try:
        joined = reduce(Bundle.joined, (bundle(name) for name in read.tools.bundles), own)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, where=f"{where}: tools.bundles", hint=error.hint) from None
    return AgentDefinition(
        name=read.name,
        title=read.title,
        description=read.description,
        instructions=read.instructions.strip(),
        bundle=joined,
        bundles=read.tools.bundles,
        rooms=read.tools.rooms,
        policy=_policy(read.policy),
        criteria=Criteria(**read.completion.model_dump()),
        budget=Budget(**read.budget.model_dump()),
        workspace=read.workspace,
        parallel=read.tools.parallel,
        answer_tokens=read.answer_tokens,
    )


def _policy(read: _Policy) -> Policy:
    rules = tuple(Rule(**rule.model_dump()) for rule in read.rules)
    return Policy(default=read.default, rules=(*rules, *ALWAYS_DENIED))


def _told(error: ValidationError) -> str:
    details = error.errors(include_url=False)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in details[:5]]
    return "; ".join(told) + "."


def built_in_names() -> tuple[str, ...]:
    """The agents that come with Trysquare."""
    folder = files("trysquare.agent") / "definitions"
    return tuple(sorted(entry.name.removesuffix(SUFFIX) for entry in folder.iterdir() if entry.name.endswith(SUFFIX)))


def built_in_text(name: str) -> str:
    """The file of an agent that comes with Trysquare, to be copied."""
    return (files("trysquare.agent") / "definitions" / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def load_definition(name: str, *, folder: Path | None = None) -> AgentDefinition:
    """An agent by the name of a built-in one, by the path of a file, or by the name of a file in the agents' folder.

    A file never stands in for a built-in agent of the same name: whoever asks for `builder` gets its policy.
    """
    if name.endswith(SUFFIX):
        return _of_file(Path(name))
    if name in built_in_names():
        return parse_definition(built_in_text(name), where=f"the agent {name}")
    if folder is not None and name.isidentifier() and (own := folder / f"{name}{SUFFIX}").is_file():
        return _of_file(own)
    raise ConfigurationError(f"there is no agent `{name}`.", hint=_hint(name, _own_names(folder)))


def known_definitions(folder: Path | None = None) -> list[AgentDefinition]:
    """Every built-in agent, and those of a folder that have names of their own."""
    own = [name for name in _own_names(folder) if name not in built_in_names()]
    return [load_definition(name, folder=folder) for name in (*built_in_names(), *own)]


def _own_names(folder: Path | None) -> list[str]:
    if folder is None or not folder.is_dir():
        return []
    return sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))


def _hint(name: str, own: Sequence[str]) -> str:
    known = (*built_in_names(), *own)
    near = nearest(name, known)
    return f"The nearest is `{near[0]}`." if near else f"There are {', '.join(known)}, or name a TOML file."


def _of_file(path: Path) -> AgentDefinition:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"it cannot be read: {error.strerror}.", where=str(path)) from None
    if len(raw) > _MAX_FILE:
        raise ConfigurationError(f"it is larger than {_MAX_FILE:,} bytes.", where=str(path))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"it is not UTF-8 (byte {error.start}).", where=str(path)) from None
    definition = parse_definition(text, where=str(path))
    _require_file_name(definition, path)
    return definition


def _require_file_name(definition: AgentDefinition, path: Path) -> None:
    if definition.name != path.stem:
        raise ConfigurationError(
            f"the agent in it is called `{definition.name}`.", where=str(path), hint="Name both the same."
        )
