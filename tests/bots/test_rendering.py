"""Rendered files: made by templates and builders, and read back into the graph."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.bots.graph_strategies import graphs
from tests.support import size
from trysquare.bots import load_bot
from trysquare.bots.definition.model import RenderConfig
from trysquare.bots.documents.edits import Merged
from trysquare.bots.graph import GraphConflict, all_stories, walk
from trysquare.bots.rendered import render_to, synchronize, synchronize_from
from trysquare.bots.rendering.mustache import TemplateError, render_template
from trysquare.bots.rendering.pages import grid_of, lay_out, story_map_html, story_map_svg, width_of, wrap
from trysquare.bots.rendering.template import view_of
from trysquare.core.errors import InvalidArguments
from trysquare.files.root import DirectoryRoot

STORY_BOT = Path(__file__).parents[2] / "examples" / "bots" / "story_bot"
MANY = settings(max_examples=size(40, 500), deadline=None)
PLAIN = st.text(alphabet="abcdefgh", min_size=4, max_size=10)


def story_bot_templates() -> dict[str, str]:
    renders = [each for behavior in load_bot(STORY_BOT).behaviors for each in behavior.content.renders]
    return {each.name: each.template_text for each in renders if each.template_text is not None}


TEMPLATES = story_bot_templates()


def story(name: str, order: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "users": ["Cook"], "sequential_order": order, "connector": "then", **more}


def kitchen() -> dict[str, Any]:
    excluding = story(
        "Cook excludes an ingredient",
        1,
        acceptance_criteria=[
            {"when": "walnuts are excluded", "then": "no suggestion has walnuts"},
            {"when": "too few recipes remain", "then": "the cook sees how many are missing"},
        ],
        scenarios=[
            {
                "name": "Walnuts disappear",
                "type": "main",
                "steps": ["Given 40 recipes, 6 of them with walnuts", "When Mina excludes walnuts", "Then 34 are left"],
                "test_method": "test_walnuts_disappear",
            }
        ],
        test_file="tests/test_excluding.py",
        code_files=["src/exclusions.py"],
    )
    return {
        "schema": 1,
        "product": "Family Table",
        "goal": "A household knows what it eats.",
        "epics": [
            {
                "name": "Plan the week",
                "outcome": "Seven meals are chosen.",
                "sub_epics": [
                    {
                        "name": "Choose recipes",
                        "stories": [excluding, story("Cook takes a suggestion", 2, connector="or")],
                    },
                    {"name": "Fill the calendar", "stories": [story("Cook picks seven recipes", 1)]},
                ],
            },
            {"name": "Shop", "stories": [story("Cook prints the list", 1), story("Partner ticks off an item", 2)]},
        ],
        "increments": [
            {
                "name": "Plan by hand",
                "outcome": "20 of 30 households shop from the list.",
                "priority": 1,
                "stories": ["Cook picks seven recipes", "Cook prints the list"],
            },
            {"name": "Shop together", "priority": 2, "stories": ["Partner ticks off an item"]},
        ],
    }


def rendered(name: str, graph: dict[str, Any]) -> str:
    return render_template(TEMPLATES[name], view_of(graph))


def edit(name: str, *replacements: tuple[str, str], graph: dict[str, Any] | None = None) -> Merged:
    text = rendered(name, graph or kitchen())
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return synchronize(graph or kitchen(), TEMPLATES[name], text, confirm_deletion=True)


def found(done: Merged, name: str) -> dict[str, Any]:
    return next(node.value for node in all_stories(done.value) if node.name == name)


def test_the_story_map_is_an_outline_that_people_can_edit() -> None:
    assert rendered("story_map", kitchen()) == snapshot("""\
# Family Table

A household knows what it eats.

## Plan the week

*Seven meals are chosen.*

### Choose recipes

- Cook excludes an ingredient
- Cook takes a suggestion

### Fill the calendar

- Cook picks seven recipes

## Shop

- Cook prints the list
- Partner ticks off an item
""")


@pytest.mark.parametrize("name", sorted(TEMPLATES))
@MANY
@given(graphs())
def test_a_rendered_file_that_nobody_edited_changes_nothing(name: str, graph: dict[str, Any]) -> None:
    text = rendered(name, graph)
    untouched = synchronize(graph, TEMPLATES[name], text)
    spaced = synchronize(graph, TEMPLATES[name], text.replace("\n", "  \n\n"))
    for done in (untouched, spaced):
        assert (done.value, done.changes, done.conflicts) == (graph, (), ())


@MANY
@given(graphs(names=PLAIN), st.data())
def test_a_renamed_story_keeps_all_that_belongs_to_it(graph: dict[str, Any], data: st.DataObject) -> None:
    stories = all_stories(graph)
    if not stories:
        return
    name = data.draw(st.sampled_from(stories)).name
    # What is expected is made by its text, in which another value of a story that equals the name is renamed too.
    assume(all(f'"{name}"' not in json.dumps({**node.value, "name": ""}) for node in stories))
    text = rendered("story_map", graph)
    done = synchronize(graph, TEMPLATES["story_map"], re.sub(f"^- {name}$", f"- {name} anew", text, flags=re.M))
    expected = json.loads(re.sub(f'"{name}"', f'"{name} anew"', json.dumps(graph)))
    changed = {node.name: node.value for node in all_stories(done.value)}
    assert changed == {node.name: node.value for node in all_stories(expected)}
    assert done.value["increments"] == expected["increments"]
    assert done.conflicts == ()


@MANY
@given(graphs(names=PLAIN), st.data())
def test_a_removed_line_removes_that_story_alone(graph: dict[str, Any], data: st.DataObject) -> None:
    stories = all_stories(graph)
    if not stories:
        return
    name = data.draw(st.sampled_from(stories)).name
    text = re.sub(f"^- {name}\n", "", rendered("story_map", graph), flags=re.M)
    done = synchronize(graph, TEMPLATES["story_map"], text, confirm_deletion=True)
    assert sorted(node.name for node in all_stories(done.value)) == sorted(s.name for s in stories if s.name != name)
    assert done.conflicts == ()


def test_an_edited_outline_renames_adds_moves_and_removes() -> None:
    done = edit(
        "story_map",
        ("- Cook takes a suggestion\n", ""),
        ("- Cook picks seven recipes", "- Cook picks seven recipes\n- Cook swaps two days"),
        ("## Shop\n", "## Buy the food\n"),
        ("- Partner ticks off an item\n", ""),
        ("### Fill the calendar\n", "### Fill the calendar\n\n- Partner ticks off an item"),
        ("*Seven meals are chosen.*", "*Everybody knows what comes.*"),
    )
    assert done.conflicts == ()
    assert [" > ".join(node.address) for node in walk(done.value) if node.kind in ("epic", "sub_epic", "story")] == [
        "Plan the week",
        "Plan the week > Choose recipes",
        "Plan the week > Choose recipes > Cook excludes an ingredient",
        "Plan the week > Fill the calendar",
        "Plan the week > Fill the calendar > Partner ticks off an item",
        "Plan the week > Fill the calendar > Cook picks seven recipes",
        "Plan the week > Fill the calendar > Cook swaps two days",
        "Buy the food",
        "Buy the food > Cook prints the list",
    ]
    assert done.value["epics"][0]["outcome"] == "Everybody knows what comes."
    assert len(found(done, "Cook excludes an ingredient")["acceptance_criteria"]) == 2
    assert done.value["increments"][1]["stories"] == ["Partner ticks off an item"]


def test_a_heading_of_another_level_moves_an_epic_with_everything_below_it() -> None:
    done = edit("story_map", ("## Shop", "### Shop"))
    assert [epic["name"] for epic in done.value["epics"]] == ["Plan the week"]
    assert [each["name"] for each in done.value["epics"][0]["sub_epics"]][-1] == "Shop"
    assert found(done, "Cook prints the list")["users"] == ["Cook"]


def test_another_order_in_the_flow_numbers_the_stories_anew() -> None:
    one, two = "1. Cook prints the list [then]", "2. Partner ticks off an item [then]"
    done = edit("story_flow", (one, "@"), (two, one), ("@", "1. Partner ticks off an item [or]"))
    assert found(done, "Partner ticks off an item")["sequential_order"] == 1
    assert found(done, "Partner ticks off an item")["connector"] == "or"
    assert found(done, "Cook prints the list")["sequential_order"] == 2


def test_a_story_moves_between_increments() -> None:
    done = edit("increments", ("- Cook prints the list\n", ""), ("- Partner", "- Cook prints the list\n- Partner"))
    assert [each["stories"] for each in done.value["increments"]] == [
        ["Cook picks seven recipes"],
        ["Cook prints the list", "Partner ticks off an item"],
    ]
    assert done.conflicts == ()


def test_increments_in_another_order_get_priorities_by_it() -> None:
    text = rendered("increments", kitchen())
    title, first, second = re.split(r"(?=^## )", text, flags=re.M)
    done = synchronize(kitchen(), TEMPLATES["increments"], title + second + "\n" + first)
    assert {each["name"]: each["priority"] for each in done.value["increments"]} == {
        "Shop together": 1,
        "Plan by hand": 2,
    }


def test_an_unknown_story_in_an_increment_is_a_conflict() -> None:
    done = edit("increments", ("- Cook prints the list\n", "- Cook prints the list\n- Cook flies to the moon\n"))
    (conflict,) = done.conflicts
    assert conflict.startswith("Plan by hand: ")
    assert "`Cook flies to the moon`" in conflict
    assert done.value == kitchen()


def test_criteria_are_reworded_added_and_removed() -> None:
    done = edit(
        "acceptance_criteria",
        ("no suggestion has walnuts", "no suggestion of the week has walnuts"),
        ("- **When** too few recipes remain\n  **then** the cook sees how many are missing\n", ""),
        (
            "## Cook takes a suggestion\n\nNot",
            "## Cook takes a suggestion\n\n- **When** it rains\n  **then** soup\n\nNot",
        ),
    )
    assert done.conflicts == ()
    assert found(done, "Cook excludes an ingredient")["acceptance_criteria"] == [
        {"when": "walnuts are excluded", "then": "no suggestion of the week has walnuts"}
    ]
    assert found(done, "Cook takes a suggestion")["acceptance_criteria"] == [{"when": "it rains", "then": "soup"}]


def test_a_criterion_without_a_result_is_a_conflict() -> None:
    done = edit("acceptance_criteria", ("## Cook takes a suggestion\n", "## Cook takes a suggestion\n\n- **When** x\n"))
    (conflict,) = done.conflicts
    assert conflict.startswith("Cook takes a suggestion: `x` ")


def test_scenarios_steps_tests_and_code_files_come_back() -> None:
    graph = kitchen()
    for name, old, new in [
        ("scenarios", "### Walnuts disappear (main)", "### Walnuts disappear at once (alternative)"),
        ("scenarios", "- Then 34 are left", "- Then 34 are left\n- And none has walnuts"),
        ("test_plan", "`test_walnuts_disappear`", "`test_walnuts_disappear_at_once`"),
        ("traceability", "- Code: `src/exclusions.py`", "- Code: `src/excluding.py`\n- Code: `src/week.py`"),
        (
            "increment_stories",
            "- Cook excludes an ingredient\n  - with Cook",
            "- Cook excludes an ingredient\n  - with Mina",
        ),
    ]:
        done = edit(name, (old, new), graph=graph)
        assert done.conflicts == ()
        graph = copy.deepcopy(dict(done.value))
    story = found(Merged(value=graph), "Cook excludes an ingredient")
    assert story["scenarios"] == [
        {
            "name": "Walnuts disappear at once",
            "type": "alternative",
            "steps": [
                "Given 40 recipes, 6 of them with walnuts",
                "When Mina excludes walnuts",
                "Then 34 are left",
                "And none has walnuts",
            ],
            "test_method": "test_walnuts_disappear_at_once",
        }
    ]
    assert (story["code_files"], story["users"]) == (["src/excluding.py", "src/week.py"], ["Mina"])


def test_a_line_that_is_not_understood_is_named_and_the_rest_is_carried() -> None:
    done = edit(
        "story_map", ("## Shop\n", "## Shop\n\n> who pays?\n"), ("- Cook prints the list", "- Cook prints a list")
    )
    (conflict,) = done.conflicts
    assert conflict.startswith("line 20: `> who pays?` ")
    assert found(done, "Cook prints a list")["sequential_order"] == 1


def test_what_changed_in_the_graph_meanwhile_stays_and_a_clash_is_a_conflict() -> None:
    text = rendered("story_map", kitchen())
    graph = kitchen()
    graph["epics"][0]["outcome"] = "So says the graph."
    graph["epics"][1]["stories"].append(story("Cook pays", 3))
    edited = text.replace("*Seven meals are chosen.*", "*The file says that.*").replace(
        "Cook prints the", "Cook saves the"
    )
    done = synchronize(graph, TEMPLATES["story_map"], edited, rendered=text)
    (conflict,) = done.conflicts
    for token in ("Plan the week: ", "`outcome`", "`So says the graph.`", "`The file says that.`"):
        assert token in conflict
    assert [each["name"] for each in done.value["epics"][1]["stories"]] == [
        "Cook saves the list",
        "Partner ticks off an item",
        "Cook pays",
    ]


def test_edits_that_would_break_the_graph_change_nothing() -> None:
    done = edit("story_map", ("- Cook prints the list", "- Cook picks seven recipes"))
    assert done.value == kitchen()
    assert done.conflicts


def test_a_file_that_lost_most_of_its_lines_needs_confirmation() -> None:
    with pytest.raises(GraphConflict, match="removes"):
        synchronize(kitchen(), TEMPLATES["story_map"], "# Family Table\n")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("a\n{{#stories}}\nb", "Line 2: the section `stories` is not closed"),
        ("a\n{{/stories}}", "Line 2: `stories` is closed"),
        ("{{a b}}", "Line 1: `a b`"),
        ("{{a.__class__}}{{}}", "valid name"),
    ],
)
def test_a_wrong_template_is_refused_with_its_line(template: str, said: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(said)):
        render_template(template, {})


def test_a_template_that_grows_without_end_is_stopped() -> None:
    values = {"a": [{"b": [{"c": ["x" * 1000] * 300}] * 300}] * 300}
    with pytest.raises(TemplateError, match="longer than"):
        render_template("{{#a}}{{#b}}{{#c}}{{.}}{{/c}}{{/b}}{{/a}}", values)


def config(builder: str | None = None) -> RenderConfig:
    template = None if builder else TEMPLATES["story_map"]
    return RenderConfig(
        name="story_map", file="r.json", input="docs/graph.json", output="docs/map.md", template_text=template,
        template=None if builder else "story-map.md", builder=builder,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Any:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/graph.json").write_text(json.dumps(kitchen()), encoding="utf-8")
    with DirectoryRoot(tmp_path) as folder:
        yield folder


def written(project: DirectoryRoot) -> dict[str, Any]:
    (done,) = render_to(project, config())
    return done


def test_a_file_is_rendered_edited_synchronized_and_rendered_again(project: DirectoryRoot) -> None:
    assert written(project)["changed"]
    assert not written(project)["changed"]
    text = project.read_text("docs/map.md")
    project.write_bytes("docs/map.md", text.replace("Cook prints the list", "Cook prints a list").encode())
    assert "edited since" in written(project)["problem"]
    ((_, done),) = synchronize_from(project, config())
    assert done.changes
    assert not done.conflicts
    assert "Cook prints a list" in project.read_text("docs/graph.json")
    assert not written(project)["changed"]
    assert not synchronize_from(project, config())[0][1].changes


def test_a_story_that_a_file_of_unknown_age_lacks_is_not_removed_without_asking(project: DirectoryRoot) -> None:
    render_to(project, config())
    project.remove(".trysquare/rendered/docs/map.md")
    text = project.read_text("docs/map.md").replace("- Cook prints the list\n", "")
    project.write_bytes("docs/map.md", text.encode())
    with pytest.raises(GraphConflict, match="removes"):
        synchronize_from(project, config())
    assert synchronize_from(project, config(), confirm_deletion=True)[0][1].changes
    assert "Cook prints the list" not in project.read_text("docs/graph.json")


def test_a_picture_is_not_read_back(project: DirectoryRoot) -> None:
    render_to(project, config("story_map_svg"))
    with pytest.raises(InvalidArguments, match="is an image"):
        synchronize_from(project, config("story_map_svg"))


@MANY
@given(graphs(names=st.text(min_size=1, max_size=30).map(str.strip).filter(bool)))
def test_the_story_map_is_well_formed_and_shows_every_story(graph: dict[str, Any]) -> None:
    svg = story_map_svg(graph)
    root = ElementTree.fromstring(svg.encode("utf-8", "replace"))
    assert root.tag.endswith("svg")
    assert len(lay_out(graph).stories) == len(all_stories(graph))
    assert story_map_html(graph).count("<article ") == len(all_stories(graph))


@MANY
@given(graphs())
def test_nothing_on_the_map_lies_on_anything_else(graph: dict[str, Any]) -> None:
    found = lay_out(graph)
    boxes = [*found.epics, *found.steps, *found.stories]
    for index, one in enumerate(boxes):
        assert one.x >= 0
        assert one.x + one.width <= found.width
        assert one.y + one.height <= found.height
        for other in boxes[index + 1 :]:
            apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
            apart_y = one.y + one.height <= other.y or other.y + other.height <= one.y
            assert apart_x or apart_y


def test_the_map_is_safe_and_says_in_words_what_it_shows() -> None:
    graph = kitchen()
    graph["product"] = "<script>alert(1)</script>"
    graph["epics"][1]["stories"][0]["story_type"] = "technical"
    svg, page = story_map_svg(graph), story_map_html(graph)
    assert "<script" not in svg + page
    assert 'role="img"' in svg
    assert "<title>Cook prints the list (technical story): a name so far</title>" in svg
    assert "2 epics, 5 stories, 2 increments." in svg
    assert not re.search(r"(?:src|href)=[\"'](?!#)", page)
    assert 'href="#story-1"' in page


def test_a_card_tells_how_far_its_story_is_and_an_increment_how_far_its_stories_are() -> None:
    graph = kitchen()
    story = graph["epics"][1]["stories"][0]
    story["acceptance_criteria"] = [{"when": "the list is empty", "then": "nothing is printed"}]
    story["scenarios"] = [{"name": "Two pages", "steps": ["Given a long list", "When it is printed"]}]
    story["test_file"] = "tests/test_printing.py"
    svg, page = story_map_svg(graph), story_map_html(graph)
    assert "Cook prints the list (user story): 1 criterion, 1 scenario, a test file</title>" in svg
    assert 'title="Cook prints the list: 1 criterion, 1 scenario, a test file"' in page
    assert "5 stories, 2 with criteria, 2 with scenarios, 2 with tests, 1 with code" in page
    assert '<b class="word">Given</b> a long list' in page
    assert "<code>tests/test_printing.py</code>" in page


@MANY
@given(graphs())
def test_the_page_has_a_card_for_every_story_that_leads_to_its_details(graph: dict[str, Any]) -> None:
    page = story_map_html(graph)
    cards = re.findall(r'<a class="card \w+" href="#(story-\d+)"', page)
    assert sorted(cards) == sorted(re.findall(r'<article id="(story-\d+)"', page))
    assert len(set(cards)) == len(all_stories(graph))
    for row in re.findall(r"<tr class=.*?</tr>", page, flags=re.DOTALL):
        assert row.count('<td class="cell">') == len(grid_of(graph).columns)


def test_a_graph_without_epics_says_so() -> None:
    assert "No epics" in story_map_html({"epics": []})


@given(st.text(max_size=80), st.integers(40, 300))
def test_wrapped_lines_fit_and_keep_every_letter(text: str, width: int) -> None:
    lines = wrap(text, width, 13, lines=100)
    assert "".join(lines).replace(" ", "") == "".join(text.split()) or len(lines) == 100
    assert all(width_of(line, 13) <= width or len(line) == 1 for line in lines)
