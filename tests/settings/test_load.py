"""Settings from file, environment and options: which one wins, and what is said about a wrong one."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import size
from trysquare import ConfigurationError
from trysquare.settings import Origin, load_settings
from trysquare.settings.keys import Given, all_keys
from trysquare.settings.load import MASK, Loaded


def option(flag: str, value: Any) -> Given:
    return Given(value=value, origin=Origin(source="option", location=flag))


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
    locations = {one.key.name: one.origin.location for one in loaded.effective()}
    assert locations["prefix"] == "--prefix"
    assert locations["http.port"] == "$TRYSQUARE_HTTP_PORT"
    assert locations["log_level"] == f"{tmp_path}/trysquare.toml:2"


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
    assert loaded.origins["strict"].location == f"{tmp_path}/pyproject.toml:5"


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
    ("text", "line", "shown"),
    [
        ('prefx = "a"', 1, ("`prefx`", "`prefix`")),
        ("[http]\n\nprt = 3", 3, ("`http.prt`", "`http.port`")),
        ("port = 3", 1, ("`port`", "`http.port`")),
        ("[htp]\nport = 3", 1, ("`htp`", "`http`")),
        ("zzzz = 3", 1, ("`zzzz`", "`trysquare config`")),
        ("[http]\nport = 'x'", 2, ("http.port", "integer", "'x'")),
        ("http = { port = 70000 }", 1, ("http.port", "65535", "70000")),
        ("strict = 3", 1, ("strict", "boolean", "3")),
        ('log_level = "debg"', 1, ("log_level", "'TRACE', 'DEBUG', 'INFO', 'WARNING' or 'ERROR'", "'debg'", "DEBUG?")),
        ('tools = [\n  "a:b",\n  "a-b",\n]', 1, ("tools", "FILE.py or MODULE", "'a-b'")),
        ('profile = "bots=lev"', 1, ("profile", "full, levels, gateway, search", "'bots=lev'")),
        ("tools = 3", 1, ("tools", "list", "3")),
        ('project = "nope"', 1, ("project", "nope", "directory")),
        ("http = 3", 1, ("`http`", "[http]")),
        ("a = 1\nb", 2, ("TOML", "'='")),
        ('a = """', 1, ("TOML", "unterminated")),
        ("a = 1\na = 2\n", 2, ("TOML", "overwrite")),
    ],
)
def test_a_wrong_file_names_the_line_what_was_expected_and_the_nearest_key(
    tmp_path: Path, text: str, line: int, shown: tuple[str, ...]
) -> None:
    where, _, said = refusal(tmp_path, text).partition(": ")
    assert where == f"trysquare.toml:{line}"
    assert [part for part in shown if part not in said] == []


def test_all_wrong_values_are_reported_at_once(tmp_path: Path) -> None:
    first, second = refusal(tmp_path, "strict = 3\n[limits]\ntimeout = -1\n").splitlines()
    assert first.startswith("trysquare.toml:1: strict: ")
    assert second.startswith("trysquare.toml:3: limits.timeout: ")


def test_a_file_that_is_no_text_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "trysquare.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    where, _, said = refusal(tmp_path).partition(": ")
    assert where == "trysquare.toml:2"
    assert "UTF-8" in said


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "trysquare.toml").touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    where, _, said = refusal(tmp_path).partition(": ")
    assert where == "trysquare.toml"
    assert "Permission denied" in said


def test_a_folder_in_place_of_the_named_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Is a directory"):
        load_settings({}, {}, tmp_path, config=tmp_path)


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_settings({}, {"TRYSQUARE_CONFIG": "other.toml"}, tmp_path)
    assert str(raised.value.where).endswith("other.toml")


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("TRYSQUARE_PREFX", "a", ("$TRYSQUARE_PREFIX",)),
        ("TRYSQUARE_HTTP_PORT", "x", ("http.port", "integer", "'x'")),
        ("TRYSQUARE_STRICT", "perhaps", ("strict", "boolean", "'perhaps'")),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, value: str, shown: tuple[str, ...]) -> None:
    where, _, said = refusal(tmp_path, env={variable: value}).partition(": ")
    assert where == f"${variable}"
    assert [part for part in shown if part not in said] == []


def test_lists_in_variables_are_separated_by_commas_and_empty_variables_count_as_unset(tmp_path: Path) -> None:
    env = {"TRYSQUARE_TOOLS": "a:b, c:d", "TRYSQUARE_HTTP_PORT": "", "TRYSQUARE_PREFIX": ""}
    found = load(tmp_path, env=env).settings
    assert (found.tools, found.http.port, found.prefix) == (("a:b", "c:d"), 8000, "")


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
    found = load_settings(cli, {}, tmp_path).settings
    assert found.bot == (project / "bots",)
    assert found.guide == (project / "a", Path("/b"))
    assert found.workbench == (tmp_path / "here",)


def test_secrets_are_masked_wherever_they_are_shown(tmp_path: Path) -> None:
    loaded = load(tmp_path, env={"TRYSQUARE_HTTP_TOKENS": "very-secret,other"})
    shown = {one.key.name: one.shown for one in loaded.effective()}
    assert shown["http.tokens"] == [MASK, MASK]
    assert "very-secret" not in repr(loaded)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    said = refusal(tmp_path, "[http]\nstate_keys = [1234567]\n")
    assert said.startswith("trysquare.toml:2: http.state_keys: ")
    assert "1234567" not in said


def test_every_setting_is_described_and_has_a_variable_of_its_own() -> None:
    keys = all_keys().values()
    assert all(key.description for key in keys)
    assert len({key.variable for key in keys}) == len(keys)


def complaint(env: Mapping[str, str], folder: Path, config: Path | None = None) -> str | None:
    """What is said about wrong settings, or None where they can be used."""
    try:
        assert load_settings({}, env, folder, config=config).effective()
    except ConfigurationError as error:
        return str(error)
    return None


TOML_LIKE = st.text(st.sampled_from("abhtpor=[]{}.\"'#\\\n\r \t,0123\x00\u00e9\ud800"), max_size=60)
FRAGMENTS = st.lists(
    st.sampled_from(
        ["http", "tools", "[http]", "[[http]]", "port", " = ", "1", '"x"', "\n", "{", "}", "[", "]", ".", "'", '"""',
         "true", "nan", "inf", "1979-05-27", "oauth", "project", "..", ",", "\r\n", "#"]
    ),
    max_size=25,
).map("".join)  # fmt: skip
FILES = st.one_of(
    st.binary(max_size=60),
    TOML_LIKE.map(lambda text: text.encode("utf-8", "surrogatepass")),
    FRAGMENTS.map(str.encode),
)


@given(FILES)
@settings(max_examples=size(300, 5000), deadline=None)
def test_no_file_whatever_is_in_it_brings_more_than_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "any.toml").write_bytes(content)
    said = complaint({}, folder, Path("any.toml"))
    assert said is None or said.startswith(str(folder))


@given(st.sampled_from(sorted(all_keys())), st.text(st.characters(exclude_characters="\x00"), max_size=30))
@settings(max_examples=size(200, 2000), deadline=None)
def test_no_variable_whatever_its_value_brings_more_than_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str
) -> None:
    variable = all_keys()[name].variable
    said = complaint({variable: value}, tmp_path_factory.getbasetemp())
    assert said is None or said.startswith(f"${variable}: ")


@pytest.mark.parametrize("folder", ["x" * 300, "a\x00b", "~nobody-of-this-name", "~\x00"])
def test_a_project_that_no_file_system_could_hold_is_not_a_directory(tmp_path: Path, folder: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a directory"):
        load_settings({"project": option("--project", folder)}, {}, tmp_path)
