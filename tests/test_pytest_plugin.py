"""The pytest plugin, as a project that uses it meets it: in runs of pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

SERVER = """
from trysquare import CallContext, Consent, Tools

tools = Tools("demo")


@tools.tool(consent=Consent(question="Wipe {what}?"))
def wipe(what: str) -> str:
    return f"wiped {what}"


@tools.tool
async def paint(context: CallContext) -> str:
    answer = await context.ask("Colour?", {"type": "object", "properties": {"c": {"type": "string"}}})
    return f"{answer.action} {answer.content.get('c')}"
"""
TESTS = """
import asyncio

import pytest


async def test_everything(client, person):
    person.approve().decline().answer({"c": "red"})
    assert (await client.call_tool("wipe", {"what": "it"})).text == "wiped it"
    assert (await client.call_tool("wipe", {"what": "it"}, raise_on_error=False)).code == "CONSENT_REFUSED"
    assert (await client.call_tool("paint")).text == "accept red"
    assert person.questions[2] == "Colour?"


async def test_without_a_client():
    await asyncio.sleep(0)


@pytest.mark.anyio
async def test_of_another_plugin(client):
    assert len(await client.list_tools()) == 3


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.trysquare("server.py:tools", version="2025-11-25")
async def test_marked(client):
    assert client.server_info.version == "2025-11-25"


def test_sync(client):
    async def count():
        async with client:
            return len(await client.list_tools())

    assert asyncio.run(count()) == 3
"""


def run_pytest(folder: Path, tests: str, ini: str, *options: str) -> tuple[int, str]:
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "test_server.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n", encoding="utf-8")
    # Known to pytest where the package was installed since it has the plugin.
    is_known = any(entry.name == "trysquare" for entry in entry_points(group="pytest11"))
    named = () if is_known else ("-p", "trysquare.pytest_plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *named, *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    return ran.returncode, ran.stdout + ran.stderr


def test_async_tests_have_a_client_and_a_person_in_each_version_beside_other_plugins(tmp_path: Path) -> None:
    ini = "trysquare_tools = server.py\ntrysquare_versions = 2025-11-25 2026-07-28\nfilterwarnings = error"
    code, printed = run_pytest(tmp_path, TESTS, ini)
    assert (code, "8 passed" in printed) == (0, True), printed


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("    person.approve()\n    await client.list_tools()\n", "1 scripted answers were not asked for"),
        ('    await client.call_tool("wipe", {"what": "it"})\n', "A tool asks, and the test has no answer: Wipe it?"),
        ("    assert False, 'its own'\n", "its own"),
    ],
)
def test_a_script_that_does_not_fit_fails_the_test(tmp_path: Path, test: str, said: str) -> None:
    code, printed = run_pytest(tmp_path, f"async def test_it(client, person):\n{test}", "trysquare_tools = server.py")
    assert (code, said in printed) == (1, True), printed


def test_without_the_setting_only_the_long_names_exist_and_say_what_is_missing(tmp_path: Path) -> None:
    tests = "async def test_it(trysquare_client):\n    pass\n\n\ndef test_short(client):\n    pass\n"
    code, printed = run_pytest(tmp_path, tests, "")
    assert code == 1
    assert "Set `trysquare_tools` in pytest's configuration" in printed
    assert "fixture 'client' not found" in printed


def test_the_plugin_alone_imports_nothing_of_what_it_tests_with() -> None:
    code = (
        "import sys, trysquare.pytest_plugin; print(sorted(name for name in sys.modules if name[:10] == 'trysquare.'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['trysquare.core', 'trysquare.core.lazy', 'trysquare.pytest_plugin']\n"
