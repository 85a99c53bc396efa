"""Pydantic models of a bot's JSON files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trysquare.bots.documents.paths import compiled
from trysquare.bots.scanners.base import PATH, Severity, Target
from trysquare.bots.scanners.kinds import checked_expression, checked_schema
from trysquare.bots.workflow.machine import JumpPolicy, Policy, RunsOf


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
    """When the action is complete: `manual`, `auto`, `skip` or `combine_next`."""
    proof: bool | None = None
    """Whether only a human can close it."""
    requires_clean: bool | None = None
    """Whether the rules must find no error first."""
    budget_tokens: Annotated[int, Field(ge=200, le=200_000)] | None = None
    """Tokens that its instructions may take."""
    assignees: Names | None = None
    """Who may close it; a team is `@name`."""
    reviewers: Names | None = None
    """Who may prove it; it then needs proof."""


class ActionConfig(GateKeys):
    """`base_actions/N_name/action_config.json`."""

    name: str | None = None
    """The name of the folder, for readers."""
    description: str = ""
    """One line for the list of tools."""
    workflow: bool = True
    """Whether it is part of the order; an independent action moves nothing."""
    order: int | None = None
    """The place in the order, for folders without numbers."""
    next_action: str | None = None
    """The action that comes next, for readers; it must be right."""
    behaviors: Names | None = None
    """The behaviors that have it; by default all."""


class ActionEntry(GateKeys):
    """An action in `actions` of `bot_config.json`, in place of a folder in `base_actions`."""

    workflow: bool = True
    """Whether it is part of the order; an independent action moves nothing."""
    description: str = ""
    """One line for the list of tools."""
    instructions: Texts = []
    """What the agent does in it."""
    trigger_patterns: Texts = []
    """Phrases of a user who wants it."""
    behaviors: Names | None = None
    """The behaviors that have it; by default all."""


class JumpKeys(Closed):
    """What happens when an action is opened out of order."""

    ahead: JumpPolicy = "allow"
    """For an action that comes later: `allow`, `confirm` or `deny`."""
    reopened: JumpPolicy = "allow"
    """For an action that was completed before."""


class PresetEntry(Closed):
    """A preset of `presets`: which actions and gates apply in a run that was started with it."""

    description: str = ""
    """When to choose it."""
    actions: Names | None = None
    """What applies: actions, behaviors or `behavior.action`; by default all. `initialize_project` applies wherever
    anything does.
    """
    gates: Names | None = None
    """Whose gates apply, in the same way; by default all."""
    drops_proof: bool = False
    """Whether it may take away a gate that demands a human's proof. Who starts such a run has to agree."""


class BotConfig(Closed):
    """`bot_config.json`."""

    name: str | None = None
    """The name of the bot; by default that of its folder."""
    description: str = ""
    """What the bot is for, in one line."""
    goal: str = ""
    """What is better when it is done."""
    behaviors: list[str] | None = None
    """The behaviors in their order; by default all, by number."""
    jumps: JumpKeys = JumpKeys()
    """What happens when an action is opened out of order."""
    proof: bool = False
    """Whether only a human can close any action."""
    budget_tokens: Annotated[int, Field(ge=200, le=200_000)] | None = None
    """Tokens that the instructions of each action may take."""
    actions: dict[str, ActionEntry] | None = None
    """The actions in their order, for a bot without `base_actions`."""
    gates: dict[str, GateKeys] = {}
    """Gates by action (`render_output`), behavior (`shape`) or both (`shape.render_output`)."""
    runs: RunsOf = "project"
    """What has a run of its own where a call names none: the whole project, each branch, or each worktree."""
    presets: dict[str, PresetEntry] = {}
    """Depths to choose from at the start of a run, such as `quick`; without a choice, everything applies."""
    teams: dict[str, Names] = {}
    """Names for groups of principals; `@name` stands for them in `assignees` and `reviewers`."""


class InstructionsFile(Open):
    """`instructions.json` of a bot, a behavior, an action or a part."""

    description: str = ""
    """One line for the list of tools."""
    goal: str = ""
    """What is better when it is done."""
    inputs: Texts = []
    """What it starts from."""
    outputs: Texts = []
    """What it produces."""
    instructions: Texts = []
    """What the agent does."""


class TriggerFile(Open):
    """`trigger_words.json`: phrases of a user who wants this."""

    description: str = ""
    """A note for readers."""
    trigger_patterns: Texts = []
    """The phrases."""
    patterns: Texts = []
    """The same, under another name."""

    def all(self) -> tuple[str, ...]:
        """The phrases under both keys."""
        return tuple(dict.fromkeys((*self.trigger_patterns, *self.patterns)))


class QuestionsFile(Open):
    """`key_questions.json`."""

    questions: Annotated[Texts, Field(validation_alias=AliasChoices("questions", "key_questions"))] = []
    """The questions; also `key_questions`."""


class EvidenceFile(Open):
    """`evidence.json`."""

    evidence: Texts = []
    """Where to look for answers."""


class AssumptionsFile(Open):
    """`typical_assumptions.json`."""

    assumptions: Annotated[Texts, Field(validation_alias=AliasChoices("assumptions", "typical_assumptions"))] = []
    """What may be assumed; also `typical_assumptions`."""


class ActivityFile(Open):
    """`recommended_human_activity.json`."""

    activities: Annotated[Texts, Field(validation_alias=AliasChoices("activities", "recommended_human_activity"))] = []
    """What a human does in this step; also `recommended_human_activity`."""


class OptionEntry(Open):
    name: Words
    """The name of the option."""
    description: str = ""
    """What it means."""
    outcome: str = ""
    """What follows from it."""


def _as_options(value: Any) -> Any:
    return [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


class CriterionFile(Open):
    """`decision_criteria/*.json`."""

    question: Words
    """The question to decide."""
    description: str = ""
    """Why it matters."""
    options: Annotated[list[OptionEntry], BeforeValidator(_as_options)] = []
    """The options; a text is one with this name."""
    outcome: str = ""
    """What the decision is for."""


class KnowledgeFile(Closed):
    """`build_*.json`."""

    name: Words
    """The name of the document in this behavior."""
    description: str = ""
    """What it is for."""
    path: Inside = "."
    """The directory in the project."""
    type: Words | None = None
    """`json`, `yaml`, `markdown`, `story_graph`, or a type of your own; by default by the ending."""
    template: Inside | None = None
    """The file that the agent starts from."""
    schema_: Annotated[Inside | None, Field(alias="schema")] = None
    """A file with a JSON Schema, as JSON or YAML."""
    output: Output
    """The file to write; a `*` in its name stands for many files."""
    required: bool = True
    """Whether a project without it breaks a rule."""

    @model_validator(mode="after")
    def _some_shape(self) -> KnowledgeFile:
        if self.template is None and self.schema_ is None:
            raise ValueError("set `template`, `schema` or both")
        return self


_FILLED = re.compile(r"\{\{[A-Za-z_][\w.-]*\}\}")


class RenderFile(Closed):
    """`render_*.json`."""

    name: Words
    """The name of the page in this behavior."""
    description: str = ""
    """What it is for."""
    path: Inside = "."
    """The directory in the project, of input and output."""
    input: Output
    """The document; with `*`, many."""
    output: Output
    """The file to write; with `*`, one for each document."""
    each: Annotated[str, AfterValidator(_path)] | None = None
    """A JSONPath: each item that it selects has a page."""
    type: Words | None = None
    """The type of an input that no behavior builds."""
    template: Inside | None = None
    """The Mustache template."""
    builder: Words | None = None
    """What makes the page in place of a template."""
    provided: bool = False
    """Whether the project brings the input along."""
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
    """The name of the synchronization."""
    description: str = ""
    """What it is for."""
    render: Words
    """The name of the page."""
    carries: Texts = []
    """What it carries back, for readers."""


class ExamplesEntry(Open):
    description: str = ""
    """What the examples show."""
    examples: list[Any] = []
    """The examples: each is what `applies_to` selects."""


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
    """What a finding says; by default the description of the rule."""
    applies_to: AppliesTo
    """A JSONPath, `file`, or a node of a story graph."""
    document: str | None = None
    """The name of the document; by default every one of the behavior."""
    files: Texts = []
    """Globs of the files that are read."""


class RegexEntry(ScannerEntry):
    kind: Literal["regex"]
    """A pattern."""
    pattern: Annotated[str, AfterValidator(checked_expression)]
    """A regular expression of Python."""
    match: Literal["forbid", "require"] = "forbid"
    """Whether a match is wrong or required."""
    ignore_case: bool = False
    """Whether case does not matter."""


class SchemaEntry(ScannerEntry):
    kind: Literal["schema"]
    """A JSON Schema."""
    schema_: Annotated[dict[str, Any], Field(alias="schema"), AfterValidator(checked_schema)]
    """The schema that each selected value satisfies."""


class PythonEntry(ScannerEntry):
    kind: Literal["python"]
    """A Python function, in the sandbox."""
    callable: Annotated[str, Field(pattern=r"^([A-Za-z_][\w.]*|scanners/[\w./-]+\.py):[A-Za-z_]\w*$")]
    """`scanners/FILE.py:name` of the bot's directory, or `package.module:name`; it gets a value and the options, and
    returns or yields messages or pairs of line and message.
    """
    options: dict[str, Any] = {}
    """Named arguments of the function."""


class CommandEntry(ScannerEntry):
    kind: Literal["command"]
    """A program, in the sandbox."""
    argv: Annotated[list[str], Field(min_length=1)]
    """Its command line; `{files}` stands for the files, and `{bot}/scanners/FILE` for a file of the bot's directory.
    It prints `FILE:LINE: MESSAGE`, or JSON objects with `file`, `line` and `message`.
    """
    applies_to: AppliesTo = Target(kind="file")
    """Always `file`."""


class RuleFile(Open):
    """`rules/*.json`."""

    description: Words
    """The rule, in one sentence."""
    priority: int = 0
    """The lowest comes first."""
    severity: Severity = "error"
    """`error` or `warning`; only errors keep a gate closed."""
    do: ExamplesEntry = ExamplesEntry()
    """What is right."""
    dont: ExamplesEntry = ExamplesEntry()
    """What is wrong; the scanner must find it."""
    scanner: Annotated[RegexEntry | SchemaEntry | PythonEntry | CommandEntry, Field(discriminator="kind")] | None = None
    """What finds violations; without one the rule is only text for the agent."""
