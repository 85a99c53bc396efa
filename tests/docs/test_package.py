"""The package as a stranger gets it: sdist and wheel, installed where there is no repository, walked by the pages."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, read_page
from tests.docs.runner import PageRun, first_line, reader_environment

pytestmark = [pytest.mark.xdist_group("package"), pytest.mark.timeout(600)]
PAGES = ("README.md", "docs/start/first-server.md")
# What a wheel must not lack: its types, its pages, its parts that are not Python, and the templates for authors.
FILES = (
    "trysquare/py.typed",
    "trysquare/reference/errors/COMMAND_FAILED.md",
    "trysquare/guide/tools/README.md",
    "trysquare/guide/prompts/README.md",
)


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """What was built, and all that installing it needs."""

    sdist: Path
    wheel: Path
    wheels: Path
    """A folder with the wheel and those of its dependencies."""


def _run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **environment}, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """Build the sdist from the repository, and the wheel from the sdist alone."""
    folder = tmp_path_factory.mktemp("package")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], ROOT)
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], folder / sdist.name[:-7])
    [wheel] = folder.glob("*.whl")
    pins = folder / "pins.txt"
    pinned = (ROOT / "constraints" / "runtime.txt").read_text(encoding="utf-8").splitlines()
    pins.write_text("\n".join(line.rstrip(" \\") for line in pinned if line[:1].isalnum()), encoding="utf-8")
    wheels = folder / "wheels"
    _run([sys.executable, "-m", "pip", "download", "-q", "-d", wheels, "-c", pins, wheel], folder)
    return Distribution(sdist=sdist, wheel=wheel, wheels=wheels)


@pytest.fixture
def stranger(distribution: Distribution, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody with an empty virtual environment and nothing of the repository."""
    _run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path)
    environment = reader_environment(tmp_path / "venv" / "bin")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("uv", "uvx"):
        (tools / name).symlink_to(Path(sys.executable).parent / name)
    (tmp_path / "home").mkdir()
    return {
        **{name: value for name, value in environment.items() if not name.startswith(("PIP_", "PYTHON", "XDG_"))},
        "PATH": os.pathsep.join([str(tmp_path / "venv" / "bin"), str(tools), "/usr/bin", "/bin"]),
        "HOME": str(tmp_path / "home"),
        # Everything that installing needs is in the folder, so nothing depends on what an index has today.
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(distribution.wheels),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(distribution.wheels),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_PYTHON": sys.executable,
    }


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_the_wheel_has_all_parts_and_no_tests(distribution: Distribution) -> None:
    with zipfile.ZipFile(distribution.wheel) as archive:
        names = set(archive.namelist())
    assert [file for file in FILES if file not in names] == []
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"trysquare"}
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    assert sorted(source for source in sources - names if "__pycache__" not in source) == []


def test_the_metadata_says_what_it_is(distribution: Distribution) -> None:
    metadata = metadata_of(distribution.wheel)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()) == (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_sdist_has_what_its_tests_need(distribution: Distribution) -> None:
    with tarfile.open(distribution.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("pyproject.toml", "Makefile", "constraints/dev.txt", "scripts/lock.sh", "tests/test_house.py", *PAGES)
    assert [name for name in wanted if name not in names] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_can_follow_the_page_byte_by_byte(page: str, stranger: dict[str, str], tmp_path: Path) -> None:
    def leaves_out(block: Block) -> bool:
        return first_line(block) == "$ make demo"

    project = tmp_path / "project"
    project.mkdir()
    PageRun(read_page(ROOT / page), project, environment=stranger, leaves_out=leaves_out).run()


def test_uv_adds_and_runs_the_package(stranger: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "server.py").write_text(read_page(ROOT / "README.md").blocks[1].text, encoding="utf-8")

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=project, env=stranger, capture_output=True, text=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("uv", "init", "--quiet", "--bare", "--name", "mine")
    run("uv", "add", "--quiet", "trysquare")
    assert run("uv", "run", "--quiet", "trysquare", "call", "server.py", "greet", "name=Ada") == "Hello, Ada\n"
    assert run("uvx", "--quiet", "trysquare", "--version").startswith("trysquare ")
