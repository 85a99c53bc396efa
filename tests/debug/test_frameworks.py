"""Frameworks: the very call that `init` proposes stops inside a test or a request, shows its values and ends."""

from __future__ import annotations

import os
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.debug.calling import Tools, line_of, opened, status_of
from tests.support import NODE_PROJECT, missing_component, node_program

DEBIAN_PYTHON = "/usr/bin/python3"
"""The Python that Debian's web frameworks are installed for."""
PATIENCE = 200
"""Seconds to wait for a program to come to its stop on a machine that is busy."""
JUNIT = Path("/usr/share/java/junit-platform-console-standalone.jar")

pytestmark = pytest.mark.timeout(2 * PATIENCE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A small project of a framework, its files named as the proposed call names them."""

    framework: str
    language: str
    files: Mapping[str, str]
    line: int
    """A line of the first file at which `total` is 3."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def file(self) -> str:
        return next(iter(self.files))

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(dedent(text).lstrip(), encoding="utf-8")


RUNNERS = (
    Project(
        framework="pytest",
        language="python",
        files={"tests/test_x.py": "def test_y():\n    total = 1 + 2\n    assert total == 3\n"},
        line=3,
    ),
    Project(
        framework="unittest",
        language="python",
        files={
            "tests/test_x.py": """
                import unittest
                class TestX(unittest.TestCase):
                    def test_y(self):
                        total = 1 + 2
                        self.assertEqual(total, 3)
                """,
            "tests/__init__.py": "",
        },
        line=5,
    ),
    Project(
        framework="jest",
        language="javascript",
        files={
            "x.test.js": """
                const { sum } = require("./sum");

                test("adds", () => {
                  const total = sum(1, 2);
                  expect(total).toBe(3);
                });
                """,
            "sum.js": "exports.sum = (a, b) => a + b;\n",
            "package.json": '{"private": true}',
        },
        line=5,
    ),
    Project(
        framework="vitest",
        language="javascript",
        files={
            "x.test.ts": """
                import { expect, test } from "vitest";

                interface Sum {
                  total: number;
                }

                test("adds", () => {
                  const { total }: Sum = { total: 1 + 2 };
                  expect(total).toBe(3);
                });
                """,
            "package.json": '{"private": true, "type": "module"}',
        },
        line=9,
    ),
    Project(
        framework="junit",
        language="java",
        files={
            "XTest.java": """
                import static org.junit.jupiter.api.Assertions.assertEquals;

                import org.junit.jupiter.api.Test;

                class XTest {
                    @Test
                    void adds() {
                        int total = 1 + 2;
                        assertEquals(3, total);
                    }
                }
                """
        },
        line=9,
    ),
)

SERVERS = (
    Project(
        framework="django",
        language="python",
        files={
            "pages.py": """
                from django.http import HttpResponse
                from django.urls import path
                def home(request):
                    total = 1 + 2
                    return HttpResponse(f"total {total}")
                urlpatterns = [path("", home)]
                """,
            "manage.py": """
                import sys
                from django.conf import settings
                from django.core.management import execute_from_command_line
                settings.configure(DEBUG=True, ROOT_URLCONF="pages", SECRET_KEY="x", ALLOWED_HOSTS=["*"])
                execute_from_command_line(sys.argv)
                """,
        },
        line=5,
        more={"args": ["127.0.0.1:{port}"]},
    ),
    Project(
        framework="flask",
        language="python",
        files={
            "app.py": """
                from flask import Flask
                app = Flask(__name__)
                @app.get("/")
                def home():
                    total = 1 + 2
                    return f"total {total}"
                """
        },
        line=6,
        more={"args": ["--port", "{port}"]},
    ),
    Project(
        framework="fastapi",
        language="python",
        files={
            "app.py": """
                from fastapi import FastAPI
                app = FastAPI()
                @app.get("/")
                async def home() -> str:
                    total = 1 + 2
                    return f"total {total}"
                """
        },
        line=6,
        more={"args": ["--port", "{port}"]},
    ),
)


@pytest.fixture
async def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Tools]:
    monkeypatch.setenv("PATH", f"{Path(node_program()).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(tmp_path) as tools:
        yield tools


@pytest.mark.parametrize("project", RUNNERS, ids=lambda project: project.framework)
async def test_a_test_runner_stops_inside_the_test_and_tells_its_exit_code(project: Project, tools: Tools) -> None:
    await _prepare(project, tools.folder)
    stop = await _start(project, tools, timeout=PATIENCE)
    assert (status_of(stop), line_of(stop)) == ("stopped_at_breakpoint", project.line), stop
    assert stop["data"]["locals"]["total"] == "3"
    # Vitest runs its tests in a thread, which is a session of its own while the program's runs on.
    program, is_child, _ = stop["session_id"].partition(".")
    await tools.call("execute", session_id=stop["session_id"], wait_for_stop=not is_child, timeout=PATIENCE)
    ended = await tools.call("execute", action="wait", session_id=program, timeout=PATIENCE)
    assert (status_of(ended), ended["data"]["exit_code"]) == ("terminated", 0), ended


@pytest.mark.parametrize("project", SERVERS, ids=lambda project: project.framework)
async def test_a_web_server_stops_inside_a_request_and_answers_it_after(project: Project, tools: Tools) -> None:
    await _prepare(project, tools.folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answers: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_ask, port, answers)
        args = [each.format(port=port) for each in project.more["args"]]
        stop = await _start(project, tools, args=args, runtime_path=DEBIAN_PYTHON, timeout=PATIENCE)
        assert (status_of(stop), line_of(stop)) == ("stopped_at_breakpoint", project.line), stop
        assert stop["data"]["locals"]["total"] == "3"
        await tools.call("execute", wait_for_stop=False)
    assert "total 3" in answers[0]
    assert "ended" in (await tools.call("session", action="stop"))["summary"].lower()


async def _start(project: Project, tools: Tools, **more: Any) -> dict[str, Any]:
    """Send the call that `init` proposes, with a breakpoint."""
    init = await tools.call("init", language=project.language, framework=project.framework)
    proposed = init["next_steps"][0]["arguments"]
    breakpoints = [{"file": project.file, "line": project.line}]
    return await tools.call("session_start", **proposed, **more, breakpoints=breakpoints)


async def _ask(port: int, answers: list[str]) -> None:
    """Ask a server for its page, once it listens."""
    answers.append(await anyio.to_thread.run_sync(_page, port))


def _page(port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with opener.open(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "the server never listened"
            time.sleep(0.05)


async def _prepare(project: Project, folder: Path) -> None:
    project.write(folder)
    if project.language == "javascript":
        _require(NODE_PROJECT / "node_modules" / project.framework, "run `make node`")
        (folder / "node_modules").symlink_to(NODE_PROJECT / "node_modules")
    if project.framework == "junit":
        _require(JUNIT, "apt-get install junit5")
        javac = shutil.which("javac") or missing_component("javac", "apt-get install default-jdk-headless")
        (folder / JUNIT.name).symlink_to(JUNIT)
        await anyio.run_process([str(javac), "-g", "-cp", JUNIT.name, project.file], cwd=folder)
    if project in SERVERS:
        module = "uvicorn, fastapi" if project.framework == "fastapi" else project.framework
        found = await anyio.run_process([DEBIAN_PYTHON, "-c", f"import {module}"], check=False)
        if found.returncode:
            missing_component(module, f"apt-get install python3-{project.framework}")


def _require(path: Path, how: str) -> None:
    if not path.exists():
        missing_component(str(path), how)
