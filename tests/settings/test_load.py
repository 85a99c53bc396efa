"""Settings from file, environment and options: which one wins, and what is said about a wrong one."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import ConfigurationError
from trysquare.settings.keys import all_keys
from trysquare.settings.load import MASK, Loaded, load_settings
from trysquare.settings.origin import Given, Origin


def option(flag: str, value: Any) -> Given:
    return Given(value=value, origin=Origin(source="option", place=flag))


def load(
    folder: Path, text: str | None = None, env: Mapping[str, str] | None = None, cli: Mapping[str, Given] | None = None
) -> Loaded:
    if text is not None:
        (folder / "trysquare.toml").write_text(text, encoding="utf-8")
    return load_settings(cli or {}, env or {}, folder)


def refusal(folder: Path, text: str | None = None, env: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load(folder, text, env)
    return str(raised.value).replace(str(folder) + "/", "")


def test_without_any_source_every_value_is_its_default_and_the_project_is_the_working_directory(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.settings.project == tmp_path
    assert {one.origin.source for one in loaded.effective()} == {"default"}


def test_options_win_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    text = 'prefix = "file"\nlog_level = "info"\n[http]\nport = 1\n'
    env = {"TRYSQUARE_PREFIX": "env", "TRYSQUARE_HTTP_PORT": "2"}
    loaded = load(tmp_path, text, env, {"prefix": option("--prefix", "cli")})
    assert (loaded.settings.prefix, loaded.settings.http.port, loaded.settings.log_level) == ("cli", 2, "INFO")
    places = {one.key.name: one.origin.place for one in loaded.effective()}
    assert places["prefix"] == "--prefix"
    assert places["http.port"] == "$TRYSQUARE_HTTP_PORT"
    assert places["log_level"] == f"{tmp_path}/trysquare.toml:2"


@given(st.sets(st.sampled_from(["file", "env", "cli"])))
def test_the_highest_source_that_says_something_wins(tmp_path_factory: pytest.TempPathFactory, said: set[str]) -> None:
    folder = tmp_path_factory.mktemp("project")
    loaded = load(
        folder,
        'prefix = "file"\n' if "file" in said else None,
        {"TRYSQUARE_PREFIX": "env"} if "env" in said else {},
        {"prefix": option("--prefix", "cli")} if "cli" in said else {},
    )
    expected = next((source for source in ("cli", "env", "file") if source in said), None)
    assert loaded.settings.prefix == expected


def test_a_table_in_pyproject_is_read_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.trysquare]\nstrict = true\n', "utf-8")
    loaded = load(tmp_path)
    assert loaded.settings.strict
    assert loaded.origins["strict"].place == f"{tmp_path}/pyproject.toml:5"


def test_trysquare_toml_wins_over_pyproject_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.trysquare]\nprefix = "b"\n', "utf-8")
    loaded = load(tmp_path, 'prefix = "a"\n')
    assert loaded.settings.prefix == "a"
    assert loaded.notes == (
        f"{tmp_path}/trysquare.toml is used; [tool.trysquare] in {tmp_path}/pyproject.toml is not read.",
    )


def test_a_pyproject_that_is_not_about_us_is_left_alone_even_when_it_is_broken(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("this is no TOML", "utf-8")
    assert load(tmp_path).file is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('prefx = "a"', "trysquare.toml:1: there is no setting `prefx`. The nearest is `prefix`."),
        ("[http]\n\nprt = 3", "trysquare.toml:3: there is no setting `http.prt`. The nearest is `http.port`."),
        ("port = 3", "trysquare.toml:1: there is no setting `port`. The nearest is `http.port`."),
        ("[htp]\nport = 3", "trysquare.toml:1: there is no setting `htp`. The nearest is `http`."),
        (
            "zzzz = 3",
            "trysquare.toml:1: there is no setting `zzzz`. `trysquare config` shows all there are.",
        ),
        ("[http]\nport = 'x'", "trysquare.toml:2: http.port: expected a whole number; got 'x'."),
        ("http = { port = 70000 }", "trysquare.toml:1: http.port: expected less than or equal to 65535; got 70000."),
        ("strict = 3", "trysquare.toml:1: strict: expected true or false; got 3."),
        (
            'log_level = "debg"',
            "trysquare.toml:1: log_level: expected 'TRACE', 'DEBUG', 'INFO', 'WARNING' or 'ERROR'; got 'debg'. "
            "Did you mean DEBUG?",
        ),
        (
            'tools = [\n  "a:b",\n  "a-b",\n]',
            "trysquare.toml:1: tools: expected MODULE:NAME, such as my_module:tools; got 'a-b'.",
        ),
        (
            'profile = "bots=lev"',
            "trysquare.toml:1: profile: expected [ROOM=] and one of full, levels, gateway, search; got 'bots=lev'.",
        ),
        ("tools = 3", "trysquare.toml:1: tools: expected a list; got 3."),
        ('project = "nope"', "trysquare.toml:1: project: nope is no folder."),
        ("http = 3", "trysquare.toml:1: `http` must be a table: write [http]."),
        ("a = 1\nb", "trysquare.toml:2: no valid TOML: expected '=' after a key in a key/value pair."),
        ('a = """', "trysquare.toml:1: no valid TOML: unterminated string."),
        ("a = 1\na = 2\n", "trysquare.toml:2: no valid TOML: cannot overwrite a value."),
    ],
)
def test_a_wrong_file_names_the_line_what_was_expected_and_the_nearest_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert refusal(tmp_path, text) == expected


def test_all_wrong_values_are_told_at_once(tmp_path: Path) -> None:
    assert refusal(tmp_path, "strict = 3\n[limits]\ntimeout = -1\n").splitlines() == [
        "trysquare.toml:1: strict: expected true or false; got 3.",
        "trysquare.toml:3: limits.timeout: expected greater than 0; got -1.",
    ]


def test_a_file_that_is_no_text_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "trysquare.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    assert refusal(tmp_path) == "trysquare.toml:2: not UTF-8 (byte 11). Save it as UTF-8."


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "trysquare.toml").touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert refusal(tmp_path) == "trysquare.toml: cannot be read: Permission denied."


def test_a_folder_in_place_of_the_named_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read: Is a directory\."):
        load_settings({}, {}, tmp_path, config=tmp_path)


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"other\.toml: there is no such file\."):
        load_settings({}, {"TRYSQUARE_CONFIG": "other.toml"}, tmp_path)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TRYSQUARE_PREFX": "a"}, "$TRYSQUARE_PREFX: there is no such setting. The nearest is $TRYSQUARE_PREFIX."),
        ({"TRYSQUARE_HTTP_PORT": "x"}, "$TRYSQUARE_HTTP_PORT: http.port: expected a whole number; got 'x'."),
        ({"TRYSQUARE_STRICT": "perhaps"}, "$TRYSQUARE_STRICT: strict: expected true or false; got 'perhaps'."),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, env: dict[str, str], expected: str) -> None:
    assert refusal(tmp_path, env=env) == expected


def test_lists_in_variables_are_separated_by_commas_and_empty_variables_count_as_unset(tmp_path: Path) -> None:
    env = {"TRYSQUARE_TOOLS": "a:b, c:d", "TRYSQUARE_HTTP_PORT": "", "TRYSQUARE_PREFIX": ""}
    settings = load(tmp_path, env=env).settings
    assert (settings.tools, settings.http.port, settings.prefix) == (("a:b", "c:d"), 8000, "")


@pytest.mark.parametrize(("text", "included"), [("true", True), ("false", False), ("1", False), ("", False)])
def test_example_tools_are_included_only_by_the_word_true(tmp_path: Path, text: str, included: bool) -> None:
    loaded = load(tmp_path, env={"MCP_INCLUDE_EXAMPLE_TOOLS": text})
    assert loaded.settings.include_example_tools is included


def test_the_shared_prefix_variable_is_read_and_our_own_wins(tmp_path: Path) -> None:
    assert load(tmp_path, env={"MCP_TOOL_PREFIX": "a"}).settings.prefix == "a"
    assert load(tmp_path, env={"MCP_TOOL_PREFIX": "a", "TRYSQUARE_PREFIX": "b"}).settings.prefix == "b"


def test_relative_paths_are_taken_from_where_they_were_written(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "trysquare.toml").write_text('bot = "bots"\nguide = ["a", "/b"]\n', "utf-8")
    cli = {"project": option("--project", "project"), "workbench": option("--workbench", ["here"])}
    settings = load_settings(cli, {}, tmp_path).settings
    assert settings.bot == (project / "bots",)
    assert settings.guide == (project / "a", Path("/b"))
    assert settings.workbench == (tmp_path / "here",)


def test_secrets_are_masked_wherever_they_are_shown(tmp_path: Path) -> None:
    loaded = load(tmp_path, env={"TRYSQUARE_HTTP_TOKENS": "very-secret,other"})
    shown = {one.key.name: one.shown for one in loaded.effective()}
    assert shown["http.tokens"] == [MASK, MASK]
    assert "very-secret" not in repr(loaded)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path, "[http]\nstate_keys = [1234567]\n") == "trysquare.toml:2: http.state_keys: expected a text."
    )


def test_every_setting_is_described_and_has_a_variable_of_its_own() -> None:
    keys = all_keys().values()
    assert all(key.description for key in keys)
    assert len({key.variable for key in keys}) == len(keys)
