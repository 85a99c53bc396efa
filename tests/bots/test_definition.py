"""What a definition answers; and story_bot, the example that is a real bot."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.faults.desk import at
from trysquare.bots import load_bot
from trysquare.bots.definition.folder import RESERVED
from trysquare.bots.definition.model import BotDefinition, changed_parts
from trysquare.bots.scanners.base import RegexScanner, Rule, SchemaScanner
from trysquare.core.tokens import count_tokens

STORY_BOT = Path(__file__).parents[2] / "examples" / "bots" / "story_bot"
BEHAVIORS = ("shape", "prioritization", "arrange", "discovery", "exploration", "scenarios", "tests", "code")


@cache
def story_bot() -> BotDefinition:
    return load_bot(STORY_BOT)


def all_rules() -> list[Rule]:
    definition = story_bot()
    return [*definition.rules, *(rule for behavior in definition.behaviors for rule in behavior.rules)]


def catches(rule: Rule, example: Any) -> bool:
    """Whether the rule's scanner finds a fault in an example, judged by independent means."""
    scanner = rule.scanner
    if isinstance(scanner, RegexScanner):
        found = re.search(scanner.pattern, example, re.IGNORECASE if scanner.ignore_case else 0) is not None
        return found if scanner.match == "forbid" else not found
    assert isinstance(scanner, SchemaScanner)
    jsonschema.Draft202012Validator.check_schema(scanner.schema)
    return not jsonschema.Draft202012Validator(scanner.schema).is_valid(example)


def test_story_bot_has_eight_behaviors_seven_workflow_actions_and_correct_bot() -> None:
    plan = story_bot().plan()
    assert plan.behaviors == BEHAVIORS
    assert plan.actions == (
        "initialize_project",
        "gather_context",
        "decide_planning_criteria",
        "build_knowledge",
        "render_output",
        "synchronize_output",
        "validate_rules",
    )
    assert plan.independent == {"correct_bot"}


def test_story_bot_has_exactly_75_tools_of_different_names_that_clients_accept() -> None:
    names = [tool.name for tool in story_bot().tool_names()]
    assert len(names) == len(set(names)) == 3 + 8 + 8 * 8 == 75
    assert max(map(len, names)) <= 64


def test_story_bot_lacks_nothing_and_holds_nothing_that_is_not_used() -> None:
    assert story_bot().missing == ()
    assert story_bot().warnings == ()


@pytest.mark.parametrize("name", BEHAVIORS)
def test_every_behavior_of_story_bot_is_complete(name: str) -> None:
    behavior = story_bot().behavior(name)
    rails, content = behavior.guardrails, behavior.content
    assert all((behavior.description, behavior.goal, behavior.inputs, behavior.outputs, behavior.instructions))
    assert 4 <= len(rails.key_questions) <= 7
    assert all(question.endswith("?") or "?" in question for question in rails.key_questions)
    assert all((rails.evidence, rails.assumptions, rails.human_activity))
    assert len(rails.decision_criteria) >= 2
    assert all(option.outcome for criterion in rails.decision_criteria for option in criterion.options)
    assert all(len(criterion.options) >= 2 and criterion.outcome for criterion in rails.decision_criteria)
    assert content.knowledge
    assert content.renders
    assert content.synchronizations
    assert 3 <= len(behavior.rules) <= 6
    assert len(behavior.trigger_patterns) >= 5


def test_all_behaviors_of_story_bot_work_on_one_graph() -> None:
    contents = [behavior.content for behavior in story_bot().behaviors]
    graph = {"docs/stories/story-graph.json"}
    assert {each.output for content in contents for each in content.knowledge} == graph
    assert {each.input for content in contents for each in content.renders} == graph
    assert {each.output for content in contents for each in content.synchronizations} == graph


@pytest.mark.parametrize("name", BEHAVIORS)
def test_what_a_behavior_outputs_is_what_it_builds_and_renders(name: str) -> None:
    behavior = story_bot().behavior(name)
    said = " ".join(behavior.outputs)
    assert [each.output for each in behavior.content.renders if each.output not in said] == []


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.file.removesuffix(".json"))
def test_each_rule_of_story_bot_catches_its_dont_examples_and_passes_its_do_examples(rule: Rule) -> None:
    assert rule.do.examples
    assert rule.dont.examples
    if rule.scanner is not None:
        assert [example for example in rule.do.examples if catches(rule, example)] == []
        assert [example for example in rule.dont.examples if not catches(rule, example)] == []


def test_most_rules_of_story_bot_can_be_run() -> None:
    rules = all_rules()
    assert sum(rule.scanner is not None for rule in rules) >= 0.8 * len(rules)


@pytest.mark.parametrize("name", BEHAVIORS)
def test_everything_a_behavior_and_an_action_say_fits_into_the_budget(name: str) -> None:
    definition = story_bot()
    behavior = definition.behavior(name)
    files = [path for path in definition.digests if path.startswith((behavior.folder, "rules/"))]
    texts = [(STORY_BOT / path).read_text(encoding="utf-8") for path in files]
    longest = max(count_tokens(" ".join(action.instructions)) for action in definition.actions)
    whole = sum(map(count_tokens, texts)) + longest + count_tokens(" ".join(definition.instructions))
    assert whole <= min(definition.gates[at(f"{name}.{action.name}")].budget_tokens for action in definition.actions)


def test_a_definition_finds_its_parts_by_name() -> None:
    definition = story_bot()
    assert definition.behavior("arrange").name == "arrange"
    assert definition.action("correct_bot").workflow is False
    with pytest.raises(KeyError):
        definition.behavior("none")
    with pytest.raises(KeyError):
        definition.action("none")


def test_no_name_of_story_bot_is_reserved() -> None:
    definition = story_bot()
    assert not RESERVED & {*(each.name for each in definition.behaviors), *(each.name for each in definition.actions)}


def test_two_readings_of_one_folder_are_equal(tmp_path: Path) -> None:
    write_bot(tmp_path)
    assert load_bot(tmp_path) == load_bot(tmp_path)
    assert not changed_parts(load_bot(tmp_path), load_bot(tmp_path))


def test_a_reload_tells_which_parts_changed_by_which_files(tmp_path: Path) -> None:
    before = load_bot(write_bot(tmp_path, {"behaviors/2_code/trigger_words.json": {"patterns": ["code it"]}}))
    write_bot(
        tmp_path,
        {
            "behaviors/1_shape/instructions.json": {"goal": "A better map."},
            "base_actions/2_gather_context/trigger_words.json": {"patterns": ["ask"]},
            "rules/exact.json": {"description": "Be exact."},
            "trigger_words.json": {"patterns": ["go on"]},
        },
    )
    (tmp_path / "behaviors" / "2_code" / "trigger_words.json").unlink()
    after = load_bot(tmp_path)
    changes = changed_parts(before, after)
    assert changes.parts == ("action gather_context", "behavior shape", "behavior code", "rules", "bot")
    assert changes.added == (
        "base_actions/2_gather_context/trigger_words.json",
        "rules/exact.json",
        "trigger_words.json",
    )
    assert changes.changed == ("behaviors/1_shape/instructions.json",)
    assert changes.removed == ("behaviors/2_code/trigger_words.json",)
    assert before.digest != after.digest


def test_files_that_belong_to_nothing_do_not_change_the_digest(tmp_path: Path) -> None:
    before = load_bot(write_bot(tmp_path))
    after = load_bot(write_bot(tmp_path, {"README.md": "About this bot.", "notes/x.json": {}}))
    assert before.digest == after.digest


@pytest.mark.parametrize("name", [name for name in BEHAVIORS if name != "prioritization"])
def test_the_stories_in_a_template_hold_the_rules_that_the_behavior_has_for_stories(name: str) -> None:
    behavior = story_bot().behavior(name)
    epics = json.loads(behavior.content.knowledge[0].template_text or "")["epics"]
    stories = [story for epic in epics for sub in epic["sub_epics"] for story in sub["stories"]]
    rules = [(str(rule.scanner.target), rule) for rule in behavior.rules if rule.scanner]
    assert stories
    for target, rule in rules:
        if target == "story":
            assert [story for story in stories if catches(rule, story)] == []
        elif target == "story.name":
            assert [story for story in stories if catches(rule, story["name"])] == []
