"""Pydantic models of a bot's JSON files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trysquare.bots.documents.paths import compiled
from trysquare.bots.scanners.base import PATH, Severity, Target
from trysquare.bots.scanners.kinds import checked_expression, checked_schema
from trysquare.bots.workflow.machine import JumpPolicy, Policy


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _relative(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or "\0" in value:
        raise ValueError(f"`{value}` is outside the project; use a relative path without `..`")
    return value


def _many(value: str) -> str:
    name = PurePosixPath(value).name
    if value.count("*") > 1 or ("*" in value and "*" not in name):
        raise ValueError(f"`{value}`: only the name of the file may have a `*`, and only one")
    return value


def _path(value: str) -> str:
    compiled(value)
    return value


Texts = Annotated[list[str], BeforeValidator(_as_list)]
Inside = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_relative)]
Output = Annotated[Inside, AfterValidator(_many)]
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


class ActionEntry(GateKeys):
    """An action in `actions` of `bot_config.json`, in place of a folder in `base_actions`."""

    workflow: bool = True
    description: str = ""
    instructions: Texts = []
    trigger_patterns: Texts = []


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
    actions: dict[str, ActionEntry] | None = None
    """The actions in their order, for a bot without `base_actions`."""
    gates: dict[str, GateKeys] = {}
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
    type: Words | None = None
    template: Inside | None = None
    schema_: Annotated[Inside | None, Field(alias="schema")] = None
    output: Output
    required: bool = True

    @model_validator(mode="after")
    def _some_shape(self) -> KnowledgeFile:
        if self.template is None and self.schema_ is None:
            raise ValueError("set `template`, `schema` or both")
        return self


_FILLED = re.compile(r"\{\{[A-Za-z_][\w.-]*\}\}")


class RenderFile(Closed):
    """`render_*.json`."""

    name: Words
    description: str = ""
    path: Inside = "."
    input: Output
    output: Output
    each: Annotated[str, AfterValidator(_path)] | None = None
    type: Words | None = None
    template: Inside | None = None
    builder: Words | None = None
    provided: bool = False
    synchronize: bool = False
    """Whether edits of the page are carried back, as with a `synchronize_*.json`."""

    @model_validator(mode="after")
    def _one_maker(self) -> RenderFile:
        if (self.template is None) == (self.builder is None):
            raise ValueError("set either `template` or `builder`")
        if "*" in self.output and "*" not in self.input:
            raise ValueError("`output` has `*`, and `input` has not")
        if bool(_FILLED.search(self.output)) != (self.each is not None) or "{{" in _FILLED.sub("", self.output):
            raise ValueError("`each` needs an `output` such as `{{name}}.md`, and the other way round")
        if self.each is not None and (self.builder is not None or "*" in self.output):
            raise ValueError("`each` needs a `template`, and no `*` in `output`")
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


_KIND = re.compile(r"([a-z][a-z_]*)(?:\.([A-Za-z_][\w-]*))?")


def _target(value: Any) -> Target:
    text = value if isinstance(value, str) else ""
    if text.startswith("$"):
        compiled(text)
        return Target(kind=PATH, field=text)
    found = _KIND.fullmatch(text)
    if found is None:
        raise ValueError(
            f"`{value}` is neither `file`, a JSONPath such as `$.items[*].name`, nor a node such as `story.name`"
        )
    return Target(kind=found[1], field=found[2])


AppliesTo = Annotated[Target, BeforeValidator(_target)]


class ScannerEntry(Closed):
    message: str = ""
    applies_to: AppliesTo
    document: str | None = None
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
