"""Frameworks: how a program of a kind is started under the debugger, as the call to send."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """An entry point that many projects share."""

    name: str
    language: str
    target: str
    note: str = ""

    def call(self) -> JsonObject:
        """The arguments of session_start for it."""
        return {"target": self.target}


FRAMEWORKS = (
    Framework(name="pytest", language="python", target="tests/test_x.py::test_y", note="explain says why it fails"),
    Framework(name="unittest", language="python", target="python -m unittest tests.test_x"),
    Framework(name="django", language="python", target="python manage.py runserver --noreload"),
    Framework(name="flask", language="python", target="python -m flask --app app run --no-reload"),
    Framework(name="fastapi", language="python", target="python -m uvicorn app:app"),
    Framework(
        name="jest",
        language="javascript",
        target="node node_modules/jest/bin/jest.js --runInBand --testTimeout=600000 x.test.js",
    ),
    Framework(
        name="vitest",
        language="javascript",
        target="node node_modules/vitest/vitest.mjs run --pool=threads --no-file-parallelism --testTimeout=0 x",
        note="tests run in a thread, which `session list` shows as a session of its own",
    ),
    Framework(
        name="junit",
        language="java",
        target="java -cp .:junit-platform-console-standalone.jar org.junit.platform.console.ConsoleLauncher -c XTest",
        note="the classes have to be compiled, with `javac -g`",
    ),
)


def framework(name: str) -> Framework | None:
    """A framework by its name."""
    return next((each for each in FRAMEWORKS if each.name == name.lower()), None)
