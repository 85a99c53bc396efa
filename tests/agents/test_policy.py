"""Policy: deny stands over ask and ask over allow, whatever a call says; and what is denied is not even offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from trysquare import ErrorCode, ToolArguments, ToolError, tool
from trysquare.agents.definition import known_definitions, load_definition
from trysquare.agents.policy import Effect, Policy, Rule, allowed_offer
from trysquare.agents.toolbox import offer_of
from trysquare.files.globs import path_matches

ROOT = Path("/srv/project")


def effect(policy: Policy, name: str, **arguments: Any) -> Effect:
    return policy.decide(name, arguments).effect


def test_deny_stands_over_ask_and_ask_over_allow_in_whatever_order_they_are_written() -> None:
    rules = [
        Rule(effect="allow", tool="file"),
        Rule(effect="ask", tool="file", actions=("delete",)),
        Rule(effect="deny", paths=("secret/**",)),
    ]
    for ordered in (rules, rules[::-1]):
        policy = Policy(rules=tuple(ordered))
        assert effect(policy, "file", action="read", path="a.py") == "allow"
        assert effect(policy, "file", action="delete", path="a.py") == "ask"
        assert effect(policy, "file", action="delete", path="secret/key") == "deny"


def test_what_no_rule_names_is_as_the_default_says() -> None:
    assert effect(Policy(), "anything") == "deny"
    assert effect(Policy(default="ask"), "anything") == "ask"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "/srv/project2/x", "..", "a\0b", "..\\x", "/srv"])
def test_a_path_that_leads_out_is_denied_whatever_the_rules_say(path: str) -> None:
    policy = Policy(default="allow", rules=(Rule(effect="allow", paths=("**",)),), root=ROOT)
    assert effect(policy, "file", action="read", path=path) == "deny"
    assert effect(policy, "git", files=["ok.py", path]) == "deny"
    assert effect(policy, "edit", edits=[{"path": path}]) == "deny"


@pytest.mark.parametrize("path", ["a.py", "./a.py", "x/../a.py", "/srv/project/a.py", "x//..//a.py"])
def test_a_path_is_the_same_however_it_is_written(path: str) -> None:
    policy = Policy(default="allow", rules=(Rule(effect="deny", paths=("a.py",)),), root=ROOT)
    assert effect(policy, "file", path=path) == "deny"


def test_every_path_has_to_fit_to_allow_and_one_is_enough_to_deny() -> None:
    allowed = Policy(rules=(Rule(effect="allow", paths=("docs/**",)),))
    assert effect(allowed, "git", files=["docs/a.md"]) == "allow"
    assert effect(allowed, "git", files=["docs/a.md", "src/a.py"]) == "deny"
    assert effect(allowed, "git") == "deny", "a call without a path is not one about the docs"
    denied = Policy(default="allow", rules=(Rule(effect="deny", paths=("src/**",)),))
    assert effect(denied, "git", files=["docs/a.md", "src/a.py"]) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git push", "git push origin main", "/usr/bin/git push", "cd x && git push", "true; git push", "ls | git push",
        "FORCE=1 git push", "sudo git push", "env A=b git push", "timeout 5 git push", "sh -c 'git push'",
        "xargs git push", "(git push)", "echo a\ngit push", "$(git push)", "`git push`", "bash -c \"x; git push\"",
        "git push 'unclosed", "find . -exec git push ;",
    ],
)  # fmt: skip
def test_a_denied_command_is_found_wherever_it_stands_in_the_line(command: str) -> None:
    policy = Policy(default="allow", rules=(Rule(effect="deny", tool="bash", commands=("git push*",)),))
    assert effect(policy, "bash", command=command) == "deny"


@pytest.mark.parametrize("command", ["pytest", "pytest -q", "pytest 'tests/a b.py' --maxfail=1", "cd src"])
def test_a_command_is_allowed_where_it_is_simple_and_a_pattern_fits(command: str) -> None:
    policy = Policy(rules=(Rule(effect="allow", tool="bash", commands=("pytest*", "cd *")),))
    assert effect(policy, "bash", command=command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "pytest $(rm -rf .)",
        "pytest `id`",
        "pytest; rm x",
        "pytest | sh",
        "pytest <(id)",
        "pytest 'x",
        "",
        "' pytest'",
        "pytest -q && pytest tests",
        "cd x; pytest",
        "pytester",
        "'pytest -q'",
    ],
)
def test_a_command_that_hides_another_is_never_allowed_by_a_rule(command: str) -> None:
    policy = Policy(rules=(Rule(effect="allow", tool="bash", commands=("pytest*",)),))
    assert effect(policy, "bash", command=command) == "deny"


@pytest.mark.parametrize(
    "command", ["ls; (x)", "ls $(x)", "A=b ls", "eval `x`", "ls <<X\nX", "if x; then y; fi", "{ls,x}"]
)
def test_a_line_that_is_not_understood_is_asked_about_where_a_rule_looks_for_commands(command: str) -> None:
    asking = Policy(default="allow", rules=(Rule(effect="ask", tool="bash", commands=("rm *",)),))
    assert effect(asking, "bash", command=command) == "ask"
    assert effect(Policy(default="allow"), "bash", command=command) == "allow", "no rule is about commands"


@pytest.mark.parametrize(
    "command", ["ls -l | head -3", "cd src && pytest -q 2>&1", "ls *.py > out.txt", "make; ls ~/x"]
)
def test_simple_commands_in_a_row_are_understood(command: str) -> None:
    asking = Policy(default="allow", rules=(Rule(effect="ask", tool="bash", commands=("rm *",)),))
    assert effect(asking, "bash", command=command) == "allow"


@pytest.mark.parametrize(
    "command", ["rm x", "! rm x", "if true; then rm x; fi", "git -C . push", "r'm' x", "\\rm x", "./rm x", "nice rm x"]
)
def test_a_command_is_asked_about_however_it_is_written(command: str) -> None:
    asking = Policy(default="allow", rules=(Rule(effect="ask", tool="bash", commands=("rm *", "git push*")),))
    assert effect(asking, "bash", command=command) == "ask"


def test_a_rule_that_names_a_tool_finds_its_command_whatever_the_argument_is_called() -> None:
    policy = Policy(default="allow", rules=(Rule(effect="deny", tool="shell", commands=("rm *",)),))
    assert effect(policy, "shell", cmdline="rm x") == "deny"
    assert effect(policy, "shell", steps=[{"run": "cd y; rm x"}]) == "deny"
    assert effect(policy, "shell", cmdline="$(x)") == "ask"
    assert effect(policy, "shell", cmdline="ls") == "allow"


def test_an_action_that_is_not_named_is_not_allowed_by_a_rule_for_some_actions() -> None:
    policy = Policy(rules=(Rule(effect="allow", tool="file", actions=("read",)),))
    assert effect(policy, "file", path="a") == "deny"
    asking = Policy(default="allow", rules=(Rule(effect="ask", tool="file", actions=("delete",)),))
    assert effect(asking, "file", path="a") == "ask"


def test_a_refused_call_says_why_and_what_to_do() -> None:
    policy = Policy(rules=(Rule(effect="deny", tool="bash", why="nothing is run here"),))
    with pytest.raises(ToolError, match="nothing is run here") as raised:
        policy.require("bash", {"command": "ls"})
    assert raised.value.code == ErrorCode.POLICY_DENIED


class ReadIt(ToolArguments):
    """Arguments of read."""

    action: Literal["read"]
    path: str


class WriteIt(ToolArguments):
    """Arguments of write."""

    action: Literal["write"]
    path: str
    content: str


def both(args: ReadIt | WriteIt) -> str:
    """Read or write."""
    return args.path


def test_a_denied_action_is_neither_in_the_exact_nor_in_the_flat_schema() -> None:
    policy = Policy(rules=(Rule(effect="allow", tool="both", actions=("read",)),))
    offer = allowed_offer(offer_of(tool(both)), policy)
    assert offer is not None
    assert [option["properties"]["action"]["const"] for option in offer.schema["oneOf"]] == ["read"]
    assert offer.flat["properties"]["action"]["enum"] == ["read"]
    assert "content" not in offer.flat["properties"]


def test_a_denied_tool_is_not_offered_at_all() -> None:
    assert allowed_offer(offer_of(tool(both)), Policy()) is None
    denied = Policy(default="allow", rules=(Rule(effect="deny", tool="bo*"),))
    assert allowed_offer(offer_of(tool(both)), denied) is None
    partly = Policy(default="allow", rules=(Rule(effect="deny", tool="both", paths=("x",)),))
    assert allowed_offer(offer_of(tool(both)), partly) is not None


@pytest.mark.parametrize("name", [definition.name for definition in known_definitions()])
def test_no_agent_of_ours_may_approve_a_call_or_touch_the_state(name: str) -> None:
    policy = load_definition(name).policy
    for command in ("trysquare approve 1234", "python3 -m trysquare approve 1234", "echo yes | trysquare approve 1"):
        assert effect(policy, "bash", command=command) == "deny"
    assert effect(policy, "file", action="write", path=".trysquare/state.db", content="") == "deny"
    assert effect(policy, "file", action="write", path="sub/.trysquare/x", content="") == "deny"


@pytest.mark.parametrize("name", ["reviewer", "triager"])
def test_agents_that_only_look_are_offered_no_action_that_changes_anything(name: str) -> None:
    policy = load_definition(name).policy
    assert not policy.may_offer("code_edit")
    assert not policy.may_offer("bash")
    for action in ("write", "replace", "append", "delete", "undo"):
        assert not policy.may_offer("file", action)
    for action in ("add", "commit", "push", "checkout", "create_branch"):
        assert not policy.may_offer("git", action)


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", False),
        ("src/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("docs/a/b.md", "docs/**", True),
        ("docs", "docs/**", True),
        ("docs2/a", "docs/**", False),
        ("a+b.py", "a+b.py", True),
        ("aab.py", "a+b.py", False),
        ("x" * 5_000, "**/" * 20 + "y", False),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, fits: bool) -> None:
    assert path_matches(path, pattern) is fits


def test_the_triager_debugs_tests_and_files_of_its_copy_and_no_command() -> None:
    policy = load_definition("triager").policy
    for target in ("test_a.py", "tests/test_a.py::test_b"):
        assert effect(policy, "debug_explain", target=target) == "allow"
    for target in ("python a.py", "python -c \"open('/x', 'w')\" a.py", "tests/a b/c.py", "/etc/x.py", "sh -c 'a/b c'"):
        assert effect(policy, "debug_explain", target=target) == "deny"
    assert effect(policy, "debug_session_start", target="a.py") == "deny"
