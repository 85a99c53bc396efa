"""Loading a bot's folder: what becomes of it, and an error for each thing that can be wrong with it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bots.bot_folders import MINIMAL, write_bot
from tests.bots.faults.desk import at
from tests.support import size
from trysquare import ConfigurationError
from trysquare.bots import load_bot
from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.model import Gate
from trysquare.bots.scanners.base import CommandScanner, PythonScanner, RegexScanner, SchemaScanner, Target

SHAPE = "behaviors/1_shape"
KNOWLEDGE = f"{SHAPE}/2_content/1_knowledge_graph"
RENDER = f"{SHAPE}/2_content/2_render"
RENDER_FILE = {"name": "map", "path": "docs", "input": "graph.json", "template": "map.md", "output": "map.md"}
PLACES = (
    "bot_config.json",
    "instructions.json",
    "trigger_words.json",
    "base_actions/2_gather_context/action_config.json",
    f"{SHAPE}/gather_context/action_config.json",
    f"{SHAPE}/1_guardrails/1_required_context/key_questions.json",
    f"{SHAPE}/1_guardrails/2_planning/decision_criteria/depth.json",
    f"{KNOWLEDGE}/build_graph.json",
    f"{RENDER}/render_map.json",
    f"{SHAPE}/3_rules/exact.json",
)
KEYS = (
    *("name", "behaviors", "gates", "jumps", "ahead", "proof", "budget_tokens", "policy", "order", "next_action"),
    *("workflow", "questions", "question", "options", "template", "output", "path", "input", "builder"),
    *("description", "scanner", "kind", "pattern", "applies_to", "schema", "callable", "do", "dont", "examples"),
)
RULE: dict[str, Any] = {"description": "Be exact.", "do": {"examples": ["a"]}, "dont": {"examples": ["b"]}}


def ruled(**scanner: Any) -> dict[str, Any]:
    """A rule of the shape behavior with a scanner."""
    return {f"{SHAPE}/3_rules/exact.json": {**RULE, "scanner": scanner}}


def refused(root: Path, changes: dict[str, Any]) -> ConfigurationError:
    """The error that a spoilt bot gives, with its place relative to the folder."""
    with pytest.raises(ConfigurationError) as caught:
        load_bot(write_bot(root, changes))
    error = caught.value
    assert error.where is not None
    assert error.where.startswith(str(root))
    error.where = error.where[len(str(root)) :].lstrip("/")
    return error


def test_a_folder_becomes_a_plan_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    plan = load_bot(write_bot(tmp_path)).plan()
    assert plan.bot == "mini"
    assert plan.behaviors == ("shape", "code")
    assert plan.actions == ("initialize_project", "gather_context", "build_knowledge")
    assert plan.independent == {"correct_bot"}
    assert plan.first == at("shape.initialize_project")


def test_numbers_order_as_numbers(tmp_path: Path) -> None:
    changes = {"bot_config.json": {"name": "mini"}, "behaviors/10_last/instructions.json": {}}
    assert [each.name for each in load_bot(write_bot(tmp_path, changes)).behaviors] == ["shape", "code", "last"]


def test_behaviors_without_numbers_come_as_they_are_listed(tmp_path: Path) -> None:
    changes = {
        "bot_config.json": {"behaviors": ["second", "first"], "name": "mini"},
        "behaviors/first/instructions.json": {},
        "behaviors/second/instructions.json": {},
    }
    definition = load_bot(write_bot(tmp_path, changes))
    assert [each.name for each in definition.behaviors] == ["second", "first"]
    assert [warning.partition(": ")[0] for warning in definition.warnings] == [
        "behaviors/1_shape",
        "behaviors/2_code",
    ]


def test_actions_without_numbers_come_by_their_order_key(tmp_path: Path) -> None:
    changes: dict[str, Any] = {path: None for path in MINIMAL if path.startswith("base_actions")}
    changes["base_actions/b/action_config.json"] = {"order": 1, "next_action": "a"}
    changes["base_actions/a/action_config.json"] = {"order": 2, "next_action": None}
    assert load_bot(write_bot(tmp_path, changes)).plan().actions == ("b", "a")


def test_the_configuration_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    changes = {"bot_config.json": None, "config/bot_config.json": {"name": "other"}}
    assert load_bot(write_bot(tmp_path, changes)).name == "other"


def test_a_bot_without_a_name_is_called_like_its_folder(tmp_path: Path) -> None:
    assert load_bot(write_bot(tmp_path / "note_bot", {"bot_config.json": {}})).name == "note_bot"


def test_an_empty_behavior_folder_is_a_behavior_whose_parts_are_missing(tmp_path: Path) -> None:
    write_bot(tmp_path, {"behaviors/1_shape/instructions.json": None})
    (tmp_path / "behaviors" / "1_shape").mkdir()
    assert load_bot(tmp_path).behavior("shape").missing == (
        "behaviors/1_shape/instructions.json",
        "behaviors/1_shape/trigger_words.json",
        "behaviors/1_shape/guardrails",
        "behaviors/1_shape/content",
        "behaviors/1_shape/rules",
    )


def test_missing_parts_deep_inside_are_named_too(tmp_path: Path) -> None:
    changes = {
        f"{SHAPE}/1_guardrails/1_required_context/key_questions.json": {"questions": ["Who?"]},
        f"{RENDER}/instructions.json": {"instructions": "Render."},
    }
    missing = load_bot(write_bot(tmp_path, changes)).behavior("shape").missing
    assert f"{SHAPE}/1_guardrails/1_required_context/evidence.json" in missing
    assert f"{SHAPE}/1_guardrails/planning" in missing
    assert f"{RENDER}/render_*.json" in missing
    assert f"{SHAPE}/1_guardrails/1_required_context/key_questions.json" not in missing


def test_trigger_words_are_read_at_every_level_and_under_both_keys(tmp_path: Path) -> None:
    changes = {
        "trigger_words.json": {"trigger_patterns": ["go on"]},
        f"{SHAPE}/trigger_words.json": {"patterns": ["map it"], "trigger_patterns": ["shape it", "map it"]},
        f"{SHAPE}/gather_context/trigger_words.json": {"trigger_patterns": ["ask about the shape"]},
        "base_actions/2_gather_context/trigger_words.json": {"patterns": ["ask"]},
    }
    definition = load_bot(write_bot(tmp_path, changes))
    assert definition.trigger_patterns == ("go on",)
    assert definition.behavior("shape").trigger_patterns == ("shape it", "map it")
    assert definition.triggers_of("shape", "gather_context") == ("ask about the shape", "ask")
    assert definition.triggers_of("code", "gather_context") == ("ask",)


def test_guardrails_content_and_rules_are_read_with_and_without_numbers(tmp_path: Path) -> None:
    changes = {
        f"{SHAPE}/1_guardrails/1_required_context/key_questions.json": {"questions": ["Who?"]},
        f"{SHAPE}/1_guardrails/2_planning/decision_criteria/1_depth.json": {
            "question": "How deep?",
            "options": ["shallow", {"name": "deep", "outcome": "More stories."}],
        },
        "behaviors/2_code/guardrails/required_context/key_questions.json": {"questions": "Where?"},
        f"{KNOWLEDGE}/build_graph.json": {"name": "graph", "path": "docs", "template": "t.json", "output": "g.json"},
        f"{KNOWLEDGE}/t.json": {"epics": []},
        f"{RENDER}/render_map.json": RENDER_FILE,
        f"{RENDER}/templates/map.md": "# Map\n",
        f"{SHAPE}/2_content/3_synchronize/synchronize_map.json": {"name": "map", "render": "map"},
        f"{SHAPE}/3_rules/2_later.json": {**RULE, "priority": 2},
        f"{SHAPE}/3_rules/1_first.json": {**RULE, "priority": 1},
        "rules/common.json": {**RULE, "priority": 9},
    }
    definition = load_bot(write_bot(tmp_path, changes))
    shape = definition.behavior("shape")
    assert shape.guardrails.key_questions == ("Who?",)
    assert [option.name for option in shape.guardrails.decision_criteria[0].options] == ["shallow", "deep"]
    assert definition.behavior("code").guardrails.key_questions == ("Where?",)
    assert (shape.content.knowledge[0].output, shape.content.knowledge[0].template_text) == (
        "docs/g.json",
        '{\n  "epics": []\n}',
    )
    assert (shape.content.renders[0].output, shape.content.renders[0].template_text) == ("docs/map.md", "# Map\n")
    sync = shape.content.synchronizations[0]
    assert (sync.input, sync.output) == ("docs/map.md", "docs/graph.json")
    assert [rule.name for rule in definition.rules_of("shape")] == ["first", "later", "common"]


@pytest.mark.parametrize(
    ("scanner", "loaded"),
    [
        (
            {"kind": "regex", "pattern": "a+", "message": "No a.", "applies_to": "story.name"},
            RegexScanner(pattern="a+", message="No a.", target=Target(kind="story", field="name")),
        ),
        (
            {"kind": "schema", "schema": {"type": "object"}, "applies_to": "story"},
            SchemaScanner(schema={"type": "object"}, message="Be exact.", target=Target(kind="story")),
        ),
        (
            {"kind": "python", "callable": "json.decoder:scanstring", "applies_to": "graph"},
            PythonScanner(callable="json.decoder:scanstring", message="Be exact.", target=Target(kind="graph")),
        ),
        (
            {"kind": "command", "argv": ["sh", "-n", "{files}"], "files": "*.sh"},
            CommandScanner(
                argv=("sh", "-n", "{files}"), message="Be exact.", target=Target(kind="file"), files=("*.sh",)
            ),
        ),
    ],
)
def test_scanners_of_each_kind_are_loaded(tmp_path: Path, scanner: dict[str, Any], loaded: object) -> None:
    changes = {f"{SHAPE}/3_rules/exact.json": {**RULE, "scanner": scanner}}
    assert load_bot(write_bot(tmp_path, changes)).rules_of("shape")[0].scanner == loaded


def test_finding_a_python_scanner_runs_none_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "library" / "scanners_that_explode"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit\n", encoding="utf-8")
    (package / "names.py").write_text("raise SystemExit\n\ndef vague(name): ...\n", encoding="utf-8")
    monkeypatch.syspath_prepend(package.parent)
    scanner = {"kind": "python", "callable": "scanners_that_explode.names:vague", "applies_to": "story.name"}
    bot = write_bot(tmp_path / "bot", {f"{SHAPE}/3_rules/exact.json": {**RULE, "scanner": scanner}})
    assert load_bot(bot).rules_of("shape")[0].scanner is not None


def test_a_scanner_without_examples_is_reported_since_it_cannot_be_tested(tmp_path: Path) -> None:
    scanner = {"kind": "regex", "pattern": "a", "applies_to": "story.name"}
    changes = {f"{SHAPE}/3_rules/exact.json": {"description": "Be exact.", "scanner": scanner}}
    missing = load_bot(write_bot(tmp_path, changes)).missing
    assert f"{SHAPE}/3_rules/exact.json: do.examples" in missing
    assert f"{SHAPE}/3_rules/exact.json: dont.examples" in missing


def test_initialize_project_closes_itself_and_the_other_actions_wait_for_the_user(tmp_path: Path) -> None:
    definition = load_bot(write_bot(tmp_path))
    assert definition.gates[at("shape.initialize_project")].policy == "auto"
    assert definition.gates[at("shape.gather_context")] == Gate(policy="manual", budget_tokens=6_000)


def test_gates_are_set_from_the_general_to_the_particular(tmp_path: Path) -> None:
    changes = {
        "bot_config.json": {
            "name": "mini",
            "proof": True,
            "budget_tokens": 4_000,
            "jumps": {"ahead": "confirm"},
            "gates": {"gather_context": {"policy": "skip"}, "code.gather_context": {"policy": "manual"}},
        },
        "base_actions/2_gather_context/action_config.json": {"policy": "auto", "proof": False},
        f"{SHAPE}/gather_context/action_config.json": {"budget_tokens": 900, "requires_clean": True},
    }
    definition = load_bot(write_bot(tmp_path, changes))
    assert definition.gates[at("shape.gather_context")] == Gate(policy="skip", requires_clean=True, budget_tokens=900)
    assert definition.gates[at("code.gather_context")] == Gate(policy="manual", budget_tokens=4_000)
    assert definition.gates[at("code.build_knowledge")].proof
    plan = definition.plan()
    assert plan.jump_policy("ahead") == "confirm"
    assert plan.jump_policy("reopened") == "allow"
    assert plan.after(plan.first) == at("shape.build_knowledge")


def test_keys_and_parts_that_mean_nothing_are_warned_of(tmp_path: Path) -> None:
    changes = {
        f"{SHAPE}/instructions.json": {"goal": "A map.", "gaol": "A map."},
        f"{SHAPE}/3_rule/exact.json": RULE,
        f"{SHAPE}/trigger_word.json": {"patterns": ["x"]},
    }
    expected = (("3_rule", "`rules`"), ("trigger_word.json", "`trigger_words`"), ("instructions.json", "`gaol`"))
    for warning, (file, name) in zip(load_bot(write_bot(tmp_path, changes)).warnings, expected, strict=True):
        assert warning.startswith(f"{SHAPE}/{file}: ")
        assert name in warning


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        pytest.param(
            {"behaviors/3_shape/instructions.json": {}},
            "behaviors",
            "`1_shape` and `3_shape` have the same name `shape`: numbers only order. Rename or remove one of them.",
            id="two behaviors of one name",
        ),
        pytest.param(
            {"base_actions/4_gather_context/action_config.json": {}},
            "base_actions",
            "`2_gather_context` and `4_gather_context` have the same name `gather_context`",
            id="two actions of one name",
        ),
        pytest.param(
            {f"{SHAPE}/2_content/x.json": {}, f"{SHAPE}/content/x.json": {}},
            SHAPE,
            "`2_content` and `content` have the same name `content`",
            id="two parts of one name",
        ),
        pytest.param(
            {f"{SHAPE}/3_rules/1_exact.json": RULE, f"{SHAPE}/3_rules/2_exact.json": RULE},
            f"{SHAPE}/3_rules",
            "`1_exact` and `2_exact` have the same name `exact`",
            id="two rules of one name",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "behaviors": ["shape", "coed"]}},
            "bot_config.json",
            "Did you mean `code`? Or add behaviors/2_coed.",
            id="a behavior without a folder",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "behaviors": ["shape", "shape"]}},
            "bot_config.json",
            "`behaviors` lists `shape` twice.",
            id="a behavior twice",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "behaviors": ["code", "shape"]}},
            "bot_config.json",
            "By number the order is shape, code.",
            id="a list in another order",
        ),
        pytest.param(
            {f"{RENDER}/render_map.json": RENDER_FILE},
            f"{RENDER}/render_map.json",
            f"Template `map.md` not found. Put it at {RENDER}/map.md or {RENDER}/templates/map.md",
            id="a template that is not there",
        ),
        pytest.param(
            {f"{KNOWLEDGE}/build_graph.json": {"name": "graph", "template": "t.json", "output": "g.json"}},
            f"{KNOWLEDGE}/build_graph.json",
            "Template `t.json` not found.",
            id="a knowledge template that is not there",
        ),
        pytest.param(
            {
                f"{KNOWLEDGE}/build_graph.json": {"name": "graph", "template": "t.json", "output": "g.json"},
                f"{KNOWLEDGE}/t.json": '{\n  "epics": [\n}',
            },
            f"{KNOWLEDGE}/t.json:3",
            "This is not JSON",
            id="a knowledge template that is no JSON",
        ),
        pytest.param(
            {f"{RENDER}/render_map.json": {**RENDER_FILE, "builder": "story_map_html"}},
            f"{RENDER}/render_map.json",
            "either `template` or `builder`",
            id="a template and a builder",
        ),
        pytest.param(
            {f"{RENDER}/render_map.json": {**RENDER_FILE, "output": "../map.md"}},
            f"{RENDER}/render_map.json:6",
            "`output`: `../map.md`",
            id="an output outside the project",
        ),
        pytest.param(
            {f"{SHAPE}/2_content/3_synchronize/synchronize_map.json": {"name": "map", "render": "map"}},
            f"{SHAPE}/2_content/3_synchronize/synchronize_map.json",
            "Unknown render config `map`",
            id="a synchronization of nothing",
        ),
        pytest.param(
            {
                f"{RENDER}/render_map.json": RENDER_FILE,
                f"{RENDER}/render_other.json": RENDER_FILE,
                f"{RENDER}/map.md": "",
            },
            f"{RENDER}/render_other.json",
            f"The name `map` is taken by {RENDER}/render_map.json.",
            id="two render configs of one name",
        ),
        pytest.param(
            {"base_actions/1_initialize_project/action_config.json": {"next_action": "gather"}},
            "base_actions/1_initialize_project/action_config.json",
            "Unknown `next_action` `gather`. Did you mean `gather_context`?",
            id="an unknown next action",
        ),
        pytest.param(
            {"base_actions/1_initialize_project/action_config.json": {"next_action": "build_knowledge"}},
            "base_actions/1_initialize_project/action_config.json",
            "but by their numbers `gather_context` comes after `initialize_project`.",
            id="a next action against the numbers",
        ),
        pytest.param(
            {
                "base_actions/1_initialize_project/action_config.json": {"order": 2},
                "base_actions/2_gather_context/action_config.json": {"order": 1},
            },
            "base_actions/2_gather_context/action_config.json",
            "`1_initialize_project`",
            id="an order against the numbers",
        ),
        pytest.param(
            {"base_actions/2_gather_context/action_config.json": {"name": "gather"}},
            "base_actions/2_gather_context/action_config.json",
            "but the folder is `2_gather_context`. Write `gather_context`, or rename the folder.",
            id="an action of another name",
        ),
        pytest.param(
            {"base_actions/4_extra/instructions.json": {}},
            "base_actions/4_extra",
            "`action_config.json`",
            id="an action without configuration",
        ),
        pytest.param(
            {"base_actions/correct_bot/action_config.json": {"workflow": False, "policy": "auto"}},
            "base_actions/correct_bot/action_config.json",
            "An independent action is never closed and has nothing after it.",
            id="a policy of an independent action",
        ),
        pytest.param(
            ruled(kind="python", callable="no.such:it", applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "module `no.such` not found",
            id="a scanner that cannot be found",
        ),
        pytest.param(
            ruled(kind="python", callable="json.decoder:scan_strings", applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "the module `json.decoder` has no `scan_strings`.",
            id="a scanner that its module does not have",
        ),
        pytest.param(
            ruled(kind="command", argv=["no-such-program-anywhere"]),
            f"{SHAPE}/3_rules/exact.json",
            "`no-such-program-anywhere`",
            id="a scanner that runs a program that is not there",
        ),
        pytest.param(
            ruled(kind="schema", schema={"type": "text"}, applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "this is not a JSON Schema, at `type`: 'text' is not valid",
            id="a scanner that is no schema",
        ),
        pytest.param(
            ruled(kind="schema", schema={"properties": {"name": {"pattern": "("}}}, applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "this is not a JSON Schema, at `properties/name/pattern`: '(' is not a 'regex'",
            id="a schema with a pattern that is none",
        ),
        pytest.param(
            ruled(kind="schema", schema={"patternProperties": {"*": {}}}, applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "this is not a JSON Schema, at `patternProperties`: '*' is not a 'regex'",
            id="a schema with a pattern of names that is none",
        ),
        pytest.param(
            ruled(kind="schema", schema={"properties": {"name": {"$ref": "#/$defs/name"}}}, applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "`#/$defs/name`",
            id="a schema that refers to nothing",
        ),
        pytest.param(
            ruled(kind="schema", schema={"$ref": "https://example.com/schema.json"}, applies_to="story"),
            f"{SHAPE}/3_rules/exact.json",
            "external",
            id="a schema that lies elsewhere",
        ),
        pytest.param(
            ruled(kind="regex", pattern="(", applies_to="story.name"),
            f"{SHAPE}/3_rules/exact.json:",
            "this is not a regular expression",
            id="a scanner that is no regular expression",
        ),
        pytest.param(
            ruled(kind="regex", pattern="a", applies_to="tale"),
            f"{SHAPE}/3_rules/exact.json:",
            "`tale` is not one of file, graph, epic, sub_epic, story",
            id="a scanner of nothing known",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "gates": {"gather": {"proof": True}}}},
            "bot_config.json",
            "Unknown action or behavior `gather` in `gates`. Did you mean",
            id="a gate of nothing",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "prof": True}},
            "bot_config.json:3",
            "Unknown key `prof`. Did you mean `proof`?",
            id="an unknown key of the configuration",
        ),
        pytest.param(
            {"base_actions/2_gather_context/action_config.json": {"policy": "sometimes"}},
            "base_actions/2_gather_context/action_config.json:2",
            "`policy`: Input should be 'manual', 'auto', 'skip' or 'combine_next'.",
            id="an unknown policy",
        ),
        pytest.param(
            {"bot_config.json": {"name": "mini", "gates": {"build_knowledge": {"policy": "combine_next"}}}},
            "bot_config.json",
            "The last action of `shape` has the policy combine_next, and nothing comes after it.",
            id="a last action that goes with the next",
        ),
        pytest.param(
            {
                "bot_config.json": {
                    "name": "mini",
                    "gates": {
                        f"shape.{action}": {"policy": "skip"}
                        for action in ("initialize_project", "gather_context", "build_knowledge")
                    },
                }
            },
            "bot_config.json",
            "Every action of `shape` is skipped. Leave the behavior out of `behaviors`",
            id="a behavior that is skipped",
        ),
        pytest.param(
            {f"{SHAPE}/instructions.json": '{\n  "goal": "A map."\n  "description": "x"\n}'},
            f"{SHAPE}/instructions.json:3",
            "This is not JSON: Expecting ',' delimiter (column 3).",
            id="no JSON",
        ),
        pytest.param(
            {f"{SHAPE}/instructions.json": '{\n  "goal": "A",\n  "goal": "B"\n}'},
            f"{SHAPE}/instructions.json:3",
            "`goal`",
            id="a key twice",
        ),
        pytest.param(
            {f"{SHAPE}/instructions.json": '{"goal": NaN}'},
            f"{SHAPE}/instructions.json",
            "NaN",
            id="not a number",
        ),
        pytest.param(
            {f"{SHAPE}/instructions.json": "[" * 100_000},
            f"{SHAPE}/instructions.json",
            "This is not JSON",
            id="endless depth",
        ),
        pytest.param(
            {f"{SHAPE}/instructions.json": {"goal": 3}},
            f"{SHAPE}/instructions.json:2",
            "`goal`: Input should be a valid string.",
            id="a value of another type",
        ),
        pytest.param(
            {"bot_config.json": None}, "", "`bot_config.json` not found.", id="no configuration"
        ),
        pytest.param(
            {"config/bot_config.json": {}},
            "bot_config.json",
            "`config/bot_config.json`",
            id="two configurations",
        ),
        pytest.param(
            {"bot_config.json": {"name": "My Bot"}},
            "bot_config.json",
            "`My Bot`",
            id="a name that is none",
        ),
        pytest.param(
            {path: None for path in MINIMAL if path.startswith("behaviors")} | {"bot_config.json": {"name": "mini"}},
            "behaviors",
            "The bot has no behavior. Add a folder such as behaviors/1_shape.",
            id="no behavior",
        ),
        pytest.param(
            {path: None for path in MINIMAL if path.startswith("base_actions")},
            "base_actions",
            "The bot has no workflow action.",
            id="no action",
        ),
        pytest.param(
            {"behaviors/3_Big-Thing/instructions.json": {}},
            "behaviors/3_Big-Thing",
            "`Big-Thing`",
            id="a behavior whose name is none",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_an_error_that_names_the_file_and_says_what_to_do(
    tmp_path: Path, changes: dict[str, Any], where: str, said: str
) -> None:
    error = refused(tmp_path, changes)
    assert error.where is not None
    assert error.where.startswith(where)
    assert said in str(error)


@pytest.mark.parametrize("word", ["tool", "close", "restart", "find", "do", "close_current_action", "restart_server"])
@pytest.mark.parametrize("kind", ["behaviors", "base_actions"])
def test_a_reserved_word_is_no_name(tmp_path: Path, word: str, kind: str) -> None:
    error = refused(tmp_path, {f"{kind}/9_{word}/action_config.json": {}})
    assert error.where == f"{kind}/9_{word}"
    assert f"`{word}`" in str(error)
    assert "Choose another name." in str(error)


def test_a_tool_name_over_64_characters_is_refused_with_its_folder(tmp_path: Path) -> None:
    name = "a_behavior_with_a_name_that_goes_on_and_on_and_on"
    error = refused(tmp_path, {"bot_config.json": {"name": "mini"}, f"behaviors/3_{name}/instructions.json": {}})
    assert error.where == f"behaviors/3_{name}"
    for token in (f"`mini_{name}_initialize_project`", "73", "64"):
        assert token in str(error)


def test_two_ways_to_one_tool_name_are_refused(tmp_path: Path) -> None:
    changes = {
        "bot_config.json": {"name": "mini"},
        "behaviors/3_code_gather/instructions.json": {},
        "base_actions/4_context/action_config.json": {},
    }
    error = refused(tmp_path, changes)
    for token in ("`mini_code_gather_context`", "gather_context and ", " code_gather "):
        assert token in str(error)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    write_bot(tmp_path)
    (tmp_path / "behaviors" / "1_shape" / "instructions.json").write_bytes(b'{"goal": "\xff"}')
    error = refused(tmp_path, {f"{SHAPE}/instructions.json": None})
    assert error.where == f"{SHAPE}/instructions.json"
    assert "byte 10" in str(error)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Not a directory"):
        load_bot(tmp_path / "none")


def test_a_link_that_leaves_the_folder_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"goal": "outside"}', encoding="utf-8")
    bot = write_bot(tmp_path / "bot", {f"{SHAPE}/instructions.json": None, f"{SHAPE}/trigger_words.json": {}})
    os.symlink(secret, bot / SHAPE / "instructions.json")
    definition = load_bot(bot)
    assert definition.behavior("shape").goal == ""
    assert f"{SHAPE}/instructions.json" in definition.missing


def test_loading_changes_nothing_in_the_folder(tmp_path: Path) -> None:
    write_bot(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    load_bot(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before


def test_a_command_in_the_project_is_looked_for_when_it_is_run(tmp_path: Path) -> None:
    changes = ruled(kind="command", argv=["scripts/check.sh"])
    assert load_bot(write_bot(tmp_path, changes)).rules_of("shape")[0].scanner is not None


def test_a_render_config_whose_input_nothing_builds_is_warned_of(tmp_path: Path) -> None:
    changes = {f"{RENDER}/render_map.json": {**RENDER_FILE, "template": "./map.md"}, f"{RENDER}/map.md": "# Map\n"}
    (warning,) = load_bot(write_bot(tmp_path, changes)).warnings
    assert warning.startswith(f"{RENDER}/render_map.json: ")
    assert "`docs/graph.json`" in warning


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["shape", "story.name", "regex", "skip"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=size(60, 800), deadline=None)
@given(st.dictionaries(st.sampled_from(PLACES), JSON.map(json.dumps) | st.text(max_size=20), min_size=1, max_size=3))
def test_whatever_stands_in_the_files_a_bot_is_loaded_or_refused_with_its_place(files: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        place = place_of_fault(write_bot(Path(folder), files))
        assert place is None or place.startswith(folder)


def place_of_fault(root: Path) -> str | None:
    """Where a bot is wrong, or None if it can begin to work."""
    try:
        plan = load_bot(root).plan()
    except ConfigurationError as error:
        return str(error.where)
    return None if plan.contains(plan.first) else "a plan that cannot begin"


def test_an_action_can_belong_to_some_behaviors_only(tmp_path: Path) -> None:
    own = {"name": "build_knowledge", "workflow": True, "behaviors": ["code"]}
    definition = load_bot(write_bot(tmp_path, {"base_actions/3_build_knowledge/action_config.json": own}))
    tools = [tool.name for tool in definition.tool_names()]
    assert "mini_code_build_knowledge" in tools
    assert "mini_shape_build_knowledge" not in tools
    assert [str(each) for each in definition.plan().order] == [
        "shape.initialize_project",
        "shape.gather_context",
        "code.initialize_project",
        "code.gather_context",
        "code.build_knowledge",
    ]
    assert not any(str(each) == "shape.build_knowledge" for each in definition.gates)


@pytest.mark.parametrize("denied", ["allow", "deny"])
def test_an_action_of_another_behavior_is_no_defect(denied: str, tmp_path: Path) -> None:
    own = {"name": "build_knowledge", "workflow": True, "behaviors": ["2_code"]}
    config = {**MINIMAL["bot_config.json"], "jumps": {"ahead": denied}}
    changes = {"base_actions/3_build_knowledge/action_config.json": own, "bot_config.json": config}
    checked = check_folder(write_bot(tmp_path, changes))
    assert checked.workflow is not None
    assert (checked.workflow.defects, checked.workflow.exhaustive) == ((), True)


def test_an_action_names_behaviors_that_are_there_and_leaves_none_without_work(tmp_path: Path) -> None:
    changes = {
        f"base_actions/{number}_{name}/action_config.json": {"workflow": True, "behaviors": ["cod"]}
        for number, name in ((1, "initialize_project"), (2, "gather_context"), (3, "build_knowledge"))
    }
    found = [each for each in check_folder(write_bot(tmp_path, changes)).findings if each.severity == "error"]
    assert [each.code for each in found] == ["unknown_name"] * 3 + ["dead_end"] * 2
    assert {each.line for each in found[:3]} == {4}
    assert "Did you mean `code`?" in found[0].remedy
