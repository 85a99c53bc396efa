"""Pydantic models of a bot's JSON files."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trysquare.bots.scanners.base import Severity, Target
from trysquare.bots.scanners.kinds import checked_expression, checked_schema
from trysquare.bots.workflow.machine import JumpPolicy, Policy, RunsOf


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _relative(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or "\0" in value:
        raise ValueError(f"`{value}` is outside the project; use a relative path without `..`")
    return value


Texts = Annotated[list[str], BeforeValidator(_as_list)]
Inside = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_relative)]
Words = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], BeforeValidator(_as_list)]


class Open(BaseModel):
    """A file of texts: an unknown key is a warning."""

    model_config = ConfigDict(extra="allow")


class Closed(BaseModel):
    """A file that decides something: an unknown key is an error, since a typo in `proof` would open a gate."""

    model_config = ConfigDict(extra="forbid")


class GateKeys(Closed):
    """Settings of an action's gate; missing ones are inherited."""

    policy: Policy | None = None
    proof: bool | None = None
    requires_clean: bool | None = None
    budget_tokens: Annotated[int, Field(ge=200, le=200_000)] | None = None
    assignees: Names | None = None
    reviewers: Names | None = None


class ActionConfig(GateKeys):
    """`base_actions/N_name/action_config.json`."""

    name: str | None = None
    description: str = ""
    workflow: bool = True
    order: int | None = None
    next_action: str | None = None


class JumpKeys(Closed):
    """What happens when an action is opened out of order."""

    ahead: JumpPolicy = "allow"
    reopened: JumpPolicy = "allow"


class BotConfig(Closed):
    """`bot_config.json`."""

    name: str | None = None
    description: str = ""
    goal: str = ""
    behaviors: list[str] | None = None
    jumps: JumpKeys = JumpKeys()
    proof: bool = False
    budget_tokens: Annotated[int, Field(ge=200, le=200_000)] | None = None
    gates: dict[str, GateKeys] = {}
    runs: RunsOf = "project"
    teams: dict[str, Names] = {}
    """Names for groups of principals; `@name` stands for them in `assignees` and `reviewers`."""


class InstructionsFile(Open):
    """`instructions.json` of a bot, a behavior, an action or a part."""

    description: str = ""
    goal: str = ""
    inputs: Texts = []
    outputs: Texts = []
    instructions: Texts = []


class TriggerFile(Open):
    """`trigger_words.json`: phrases of a user who wants this."""

    description: str = ""
    trigger_patterns: Texts = []
    patterns: Texts = []

    def all(self) -> tuple[str, ...]:
        """The phrases under both keys."""
        return tuple(dict.fromkeys((*self.trigger_patterns, *self.patterns)))


class QuestionsFile(Open):
    """`key_questions.json`."""

    questions: Annotated[Texts, Field(validation_alias=AliasChoices("questions", "key_questions"))] = []


class EvidenceFile(Open):
    """`evidence.json`."""

    evidence: Texts = []


class AssumptionsFile(Open):
    """`typical_assumptions.json`."""

    assumptions: Annotated[Texts, Field(validation_alias=AliasChoices("assumptions", "typical_assumptions"))] = []


class ActivityFile(Open):
    """`recommended_human_activity.json`."""

    activities: Annotated[Texts, Field(validation_alias=AliasChoices("activities", "recommended_human_activity"))] = []


class OptionEntry(Open):
    name: Words
    description: str = ""
    outcome: str = ""


def _as_options(value: Any) -> Any:
    return [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


class CriterionFile(Open):
    """`decision_criteria/*.json`."""

    question: Words
    description: str = ""
    options: Annotated[list[OptionEntry], BeforeValidator(_as_options)] = []
    outcome: str = ""


class KnowledgeFile(Closed):
    """`build_*.json`."""

    name: Words
    description: str = ""
    path: Inside = "."
    template: Inside
    output: Inside


class RenderFile(Closed):
    """`render_*.json`."""

    name: Words
    description: str = ""
    path: Inside = "."
    input: Inside
    output: Inside
    template: Inside | None = None
    builder: Literal["story_map_svg", "story_map_html"] | None = None

    @model_validator(mode="after")
    def _one_maker(self) -> RenderFile:
        if (self.template is None) == (self.builder is None):
            raise ValueError("set either `template` or `builder`")
        return self


class SynchronizeFile(Closed):
    """`synchronize_*.json`."""

    name: Words
    description: str = ""
    render: Words
    carries: Texts = []


class ExamplesEntry(Open):
    description: str = ""
    examples: list[Any] = []


_KINDS = ("graph", "epic", "sub_epic", "story", "increment", "criterion", "scenario", "step", "file")


def _target(value: Any) -> Target:
    kind, _, field = value.partition(".") if isinstance(value, str) else ("", "", "")
    if kind not in _KINDS:
        raise ValueError(f"`{value}` is not one of {', '.join(_KINDS)}, nor one of them with `.field`")
    return Target(kind=kind, field=field or None)


AppliesTo = Annotated[Target, BeforeValidator(_target)]


class ScannerEntry(Closed):
    message: str = ""
    applies_to: AppliesTo
    files: Texts = []


class RegexEntry(ScannerEntry):
    kind: Literal["regex"]
    pattern: Annotated[str, AfterValidator(checked_expression)]
    match: Literal["forbid", "require"] = "forbid"
    ignore_case: bool = False


class SchemaEntry(ScannerEntry):
    kind: Literal["schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema"), AfterValidator(checked_schema)]


class PythonEntry(ScannerEntry):
    kind: Literal["python"]
    callable: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    options: dict[str, Any] = {}


class CommandEntry(ScannerEntry):
    kind: Literal["command"]
    argv: Annotated[list[str], Field(min_length=1)]
    applies_to: AppliesTo = Target(kind="file")


class RuleFile(Open):
    """`rules/*.json`."""

    description: Words
    priority: int = 0
    severity: Severity = "error"
    do: ExamplesEntry = ExamplesEntry()
    dont: ExamplesEntry = ExamplesEntry()
    scanner: Annotated[RegexEntry | SchemaEntry | PythonEntry | CommandEntry, Field(discriminator="kind")] | None = None
