"""VS Code's launch.json: read as people write it, variables filled in, and what only an editor knows refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.debug.adapters.launch_json import LaunchConfiguration, find_configuration, read_configurations


def written(root: Path, text: str) -> Path:
    (root / ".vscode").mkdir(exist_ok=True)
    (root / ".vscode" / "launch.json").write_text(text, encoding="utf-8")
    return root


def found(root: Path, **given: Any) -> LaunchConfiguration:
    whole = {"version": "0.2.0", "configurations": [{"name": "one", "type": "debugpy", "request": "launch", **given}]}
    return find_configuration(written(root, json.dumps(whole)), "one", {"HOME": "/home/ada", "WHO": "ada"})


def test_comments_and_trailing_commas_are_read_over_and_texts_that_look_like_them_are_kept(tmp_path: Path) -> None:
    text = '{ // ours\n "configurations": [ /* the\n only one */ {"name": "a // b, ]", "program": "x.py",},],}'
    assert read_configurations(written(tmp_path, text)) == [{"name": "a // b, ]", "program": "x.py"}]


def test_a_workspace_without_the_file_has_no_configurations(tmp_path: Path) -> None:
    assert read_configurations(tmp_path) == []


def test_a_file_that_is_no_json_is_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"launch\.json: line 2, column ") as error:
        read_configurations(written(tmp_path, '{"configurations": [\n {"name": }]}'))
    assert error.value.code == ErrorCode.CONFIG_INVALID


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    whole = {"configurations": [{"name": "run server", "type": "python", "program": "x.py"}]}
    with pytest.raises(ToolError, match="`run server`") as error:
        find_configuration(written(tmp_path, json.dumps(whole)), "run servr", {})
    assert error.value.code == ErrorCode.CONFIG_NOT_FOUND


def test_variables_are_filled_in_wherever_they_stand(tmp_path: Path) -> None:
    configuration = found(
        tmp_path,
        program="${workspaceFolder}/app.py",
        args=["--home", "${userHome}", "${env:WHO}", "${env:NONE:nobody}"],
        cwd="${workspaceFolder}",
        env={"NAME": "${workspaceFolderBasename}"},
    )
    assert configuration.target == f"{tmp_path}/app.py --home /home/ada ada nobody"
    assert (configuration.cwd, configuration.env) == (str(tmp_path), {"NAME": tmp_path.name})


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        ("file", "open in the editor"),
        ("fileDirname", "open in the editor"),
        ("config:python.path", "setting of the editor"),
        ("command:pickProcess", "command of the editor"),
        ("input:port", "would ask for it"),
        ("nonsense", "unknown"),
    ],
)
def test_what_only_an_editor_knows_is_refused_with_the_reason(tmp_path: Path, variable: str, why: str) -> None:
    with pytest.raises(ToolError, match=why) as error:
        found(tmp_path, program=f"${{{variable}}}")
    assert error.value.code == ErrorCode.CAPABILITY_NOT_SUPPORTED


def test_a_type_that_no_debugger_of_ours_knows_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="`chrome`") as error:
        found(tmp_path, type="chrome", url="http://localhost")
    assert "debugpy" in (error.value.instruction or "")


@pytest.mark.parametrize(
    ("given", "target", "runtime"),
    [
        ({"module": "pytest", "args": "-k 'a b'"}, "python -m pytest -k 'a b'", None),
        ({"program": "my app.py", "python": "/usr/bin/python3"}, "'my app.py'", "/usr/bin/python3"),
        ({"type": "java", "mainClass": "Main", "javaExec": ["java17"]}, "Main", "java17"),
        ({"request": "attach", "connect": {"host": "there", "port": 5678}}, "", None),
    ],
)
def test_programs_modules_and_runtimes_become_one_target(
    tmp_path: Path, given: dict[str, Any], target: str, runtime: str | None
) -> None:
    configuration = found(tmp_path, **given)
    assert (configuration.target, configuration.runtime) == (target, runtime)
    if given.get("request") == "attach":
        assert (configuration.request, configuration.host, configuration.port) == ("attach", "there", 5678)
