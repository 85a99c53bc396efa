"""Ways to run code, or to change something, through a debugger's session that only reads. A marker tells if one did."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.debug.calling import Tools, opened
from tests.support import node_program

PROGRAM = """\
import enum, functools, json, os, sys

RAN = []


def touch(what="ran", *more, **named):
    RAN.append(str(what))
    return True


def ran(name):
    def method(self, *given, **named):
        touch(name)
        return NotImplemented if name == "__eq__" else 1
    return method


METHODS = ["__eq__", "__ne__", "__lt__", "__gt__", "__bool__", "__len__", "__hash__", "__iter__", "__next__",
           "__getitem__", "__contains__", "__add__", "__radd__", "__mul__", "__index__", "__int__", "__float__",
           "__str__", "__repr__", "__format__", "__call__", "__neg__", "__invert__", "__abs__", "__round__",
           "__missing__",
           "__getattr__", "__dir__", "__del__", "__reversed__", "__bytes__", "__complex__", "__enter__", "__or__"]
Loud = type("Loud", (), {name: ran(name) for name in METHODS})


class Meta(type):
    def __eq__(cls, other):
        touch("Meta.__eq__")
        return True

    def __hash__(cls):
        touch("Meta.__hash__")
        return 1

    def __instancecheck__(cls, other):
        touch("Meta.__instancecheck__")
        return True

    def __getattr__(cls, name):
        touch("Meta.__getattr__")
        return 1


class Sly(metaclass=Meta):
    pass


class Descriptor:
    def __get__(self, instance, owner):
        touch("__get__")
        return 1


class Holder:
    slot = Descriptor()

    def __init__(self):
        self.kept = 1

    @property
    def p(self):
        touch("property")
        return 1

    @functools.cached_property
    def cached(self):
        touch("cached")
        return 1

    @property
    def __class__(self):
        touch("__class__")
        return int

    def __getattribute__(self, name):
        touch("__getattribute__")
        return object.__getattribute__(self, name)


class LoudList(list):
    def __len__(self):
        touch("len")
        return 3

    def __iter__(self):
        touch("iter")
        return iter([])

    def __getitem__(self, index):
        touch("getitem")
        return 1

    def __contains__(self, what):
        touch("contains")
        return True


class LoudInt(int):
    def __add__(self, other):
        touch("int.add")
        return 1

    __radd__ = __eq__ = __lt__ = __mul__ = __pow__ = __index__ = __bool__ = __add__

    def __hash__(self):
        touch("int.hash")
        return 1


class LoudStr(str):
    def __format__(self, spec):
        touch("format")
        return ""

    __str__ = __eq__ = __mod__ = __add__ = __format__

    def __hash__(self):
        touch("str.hash")
        return hash("x")


def numbers():
    for each in range(3):
        touch("generator")
        yield each


def main():
    loud, holder, sly = Loud(), Holder(), Sly()
    louds, loud_list, loud_int, loud_str = [loud], LoudList([1, 2]), LoudInt(3), LoudStr("x")
    keyed = {loud_str: 1}
    conf = {"port": 80, "user": "ann"}
    xs = [1, 2, 3]
    g = numbers()
    len = touch
    password = "tiger"
    del RAN[:]
    for i in range(10**6):
        last = i
    return loud, holder, sly


kept = main()
"""
LINES = PROGRAM.splitlines()
AT = LINES.index("        last = i") + 1
UNTOUCHED = "[[], {'port': 80, 'user': 'ann'}, [1, 2, 3], False]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """A program that stands, and how to see whether anything ran or changed in it."""

    tools: Tools
    folder: Path

    async def require_untouched(self) -> None:
        """Nothing ran, nothing was written, no file was made."""
        told = await self.tools.call("inspect", target="expression", expression="[RAN, conf, xs, g.gi_frame is None]")
        assert told["data"]["value"] == UNTOUCHED, told
        assert not list(self.folder.glob("marker*"))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def scene(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Scene]:
    folder = tmp_path_factory.mktemp("guard")
    async with opened(folder) as tools:
        await tools.start(tools.write("guard.py", PROGRAM), AT)
        yield Scene(tools=tools, folder=folder)


EXPRESSIONS = [
    "min(['touch marker1'], key=os.system)", "max(['a'], key=touch)", "sorted(['a'], key=touch)",
    "f'{max([1], key=touch)}'", "[0 for conf['port'] in [9999]]", "[0 for xs[0] in [9]]",
    "[0 for holder.kept in [9]]",
    "max([7, 8], key=xs.append)", "min([xs], key=list.clear)", "len('shadowed')", "list(g)", "2 in g", "[*g]",
    "[x for x in g]", "sum(g)", "any(g)", "dict(a=touch())", "(conf := 3)", "(lambda: touch())()", "touch", "touch()",
    "__import__('os').system('touch marker2')", "eval('touch()')", "getattr(holder, 'p')", "holder.p",
    "holder.cached",
    "holder.slot", "holder.nothing", "holder.kept.__class__", "isinstance(holder, int)", "loud.anything",
    "loud == 1", "1 == loud", "loud != loud", "louds == [1]", "1 in louds", "loud in louds and 1", "not loud",
    "loud and 1", "1 if loud else 2", "loud[0]", "loud + 1", "1 + loud", "-loud", "~loud", "loud < 1", "abs(loud)",
    "round(loud)", "int(loud)", "float(loud)", "str(loud)", "repr(loud)", "f'{loud}'", "f'{loud!r:>10}'",
    "'%s' % loud",
    "'{}'.format(loud)", "format(loud)", "{loud: 1}", "{loud}", "set(louds)", "frozenset(louds)", "sorted(louds * 2)",
    "max(louds * 2)", "sum(louds)", "all(louds)", "bool(loud)", "list(loud)", "tuple(loud)", "reversed(loud)",
    "zip(loud)",
    "hash(loud)", "dir(loud)", "vars(loud)", "conf[loud]", "xs[loud]", "xs[loud:]", "loud_list[0]", "1 in loud_list",
    "[x for x in loud_list]", "list(loud_list)", "loud_list + []", "loud_list == []", "loud_int + 1", "1 + loud_int",
    "loud_int == 3", "xs[loud_int]", "xs * loud_int", "2 ** loud_int", "conf[loud_int]", "f'{loud_str}'",
    "loud_str == 'x'", "loud_str + 'x'", "keyed['x']", "'x' in keyed", "loud_str in conf", "conf.get(loud_str)",
    "isinstance(1, Sly)", "Sly == 1", "type(sly) == 1", "type(sly) in [1]", "{type(sly): 1}", "Sly.nothing",
    "sly.nothing",
    "conf.pop('port')", "conf.update(port=1)", "conf.setdefault('z', 1)", "xs.append(4)", "xs.sort()", "xs.clear()",
    "''.join(loud_list)", "conf.__setitem__('port', 1)", "conf.items().__class__.__subclasses__()",
    "touch.__globals__['RAN'].append(1)", "RAN.append(1)", "(RAN.append)(1)", "[RAN.append][0](1)",
    "print('x', file=sys.stderr)",
    "open('marker3', 'w')", "os.system('touch marker4')", "os.environ['HOME']", "json.dumps(conf, default=touch)",
    "functools.partial(touch)()", "holder.__init__()", "type(holder)()", "type('X', (), {})", "Loud()",
    "exec('touch()')",
    "(yield)", "await touch()", "[await touch() for x in xs]", "next(g)", "iter(g)", "enumerate(g)", "map(touch, xs)",
    "filter(touch, xs)", "breakpoint()", "input()", "exit()", "globals()['touch']()", "locals().clear()",
    "touch if touch() else 1", "xs[touch()]", "{**conf, 'a': touch()}", "xs[0:touch()]", "[touch(x) for x in xs]",
    "print", "10**10**9", "2**99999999", "'a'*10**12", "[0]*10**10", "1<<10**10", "range(10**18)[::2]",
    "list(range(10**12))",
    "[a for a in range(10**5) for b in range(10**5)]", "sum(range(10**9))", "f'{1:1000000000}'", "'%1000000000d' % 1",
    "((((((((1))))))))" + "+1" * 900, "-" * 1500 + "1", "[" * 150 + "]" * 150, "int('9' * 10**6)", "str(10**100000)",
    "bytes(10**12)", "pow(10, 10**9)", "xs @ xs", "touch('x') # comment", "1), touch('x'", "1\ntouch()", "\ttouch()",
    "holder.p@LINE@touch()", "self.__touch", "holder.__kept", "loud.__class__.__init__.__globals__['touch']()",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
async def test_an_expression(scene: Scene, attack: Attack, expression: str) -> None:
    attack(door="debug inspect, variable get, watch", attempt=expression[:60])
    for tool, arguments in (
        ("inspect", {"target": "expression"}),
        ("variable", {"action": "get"}),
        ("watch", {"action": "set"}),
    ):
        await scene.tools.send(tool, expression=expression, **arguments)
    await scene.tools.call("context", detail_level="full")
    await scene.tools.send("watch", action="remove", expression=expression)
    await scene.require_untouched()


CODE = [
    "touch()", "holder.p", "loud", "loud == 1", "max([1], key=touch)", "len('x')", "2 in g",
    "[0 for conf['port'] in [9]]",
    "not loud", "touch() or 1", "(xs := [])", "__import__('os').system('touch marker5')", "keyed['x']",
    "louds == [1]",
]  # fmt: skip


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("door", ["condition", "log_message", "run_until", "function"])
async def test_code_at_a_breakpoint(attack: Attack, scene: Scene, door: str, code: str) -> None:
    attack(door=f"debug breakpoint {door}", attempt=code)
    place = f"guard.py:{AT}"
    # The loop's head stops in any case, so that what is set is reached before that.
    await scene.tools.call("breakpoint", location=f"guard.py:{AT - 1}")
    if door == "run_until":
        await scene.tools.send("run_until", location=place, condition=code)
    elif door == "function":
        await scene.tools.send("breakpoint", action="function", name="main", condition=code)
    else:
        text = f"value {{{code}}}" if door == "log_message" else code
        await scene.tools.send("breakpoint", location=place, **{door: text})
    for _ in range(2):
        stopped = await scene.tools.call("execute")
        assert stopped["data"]["location"].endswith("in main"), stopped
    await scene.tools.call("breakpoint", action="clear_all")
    await scene.require_untouched()


async def test_a_hit_condition_is_never_code(scene: Scene, attack: Attack) -> None:
    attack(door="debug breakpoint function hit_condition", attempt="code after a comparison")
    for text in ("touch()", ">= touch()", "1 or touch()", "%2 == touch()", "3.5", "abc"):
        for arguments in ({"location": f"guard.py:{AT}"}, {"action": "function", "name": "touch"}):
            refused = await scene.tools.refused("breakpoint", hit_condition=text, **arguments)
            assert refused["error"]["code"] == "VALIDATION_INVALID_PARAM"
    await scene.require_untouched()


async def test_values_are_shown_without_their_own_code(scene: Scene, attack: Attack) -> None:
    attack(door="debug inspect locals, globals, all, context, diff", attempt="values with code in every method")
    for target in ("locals", "globals", "all", "stack", "threads"):
        await scene.tools.call("inspect", target=target, detailed=True, budget=5000)
    for name in ("loud", "holder", "sly", "louds", "loud_list", "loud_int", "loud_str", "keyed", "g", "kept"):
        await scene.tools.send("inspect", target="expression", expression=name)
    await scene.tools.call("context", detail_level="full")
    await scene.require_untouched()


async def test_a_secret_is_not_read_piece_by_piece(scene: Scene, attack: Attack) -> None:
    attack(door="debug inspect expression", attempt="a secret turned round, cut, put into a list, as numbers")
    pieces = [
        "password", "password[::-1]", "[password]", "password[0]", "ord(password[0])", "f'{password}'",
        "{'x': password}",
              "password + ''", "list(password)", "[c for c in password]", "str(password)", "(password, 1)[0]",
              "password.upper()", "sorted(password)", "bytes(password, 'ascii')"]  # fmt: skip
    for expression in pieces:
        told = json.dumps(await scene.tools.send("inspect", target="expression", expression=expression))
        shown = told.replace("tiger", "FOUND").replace("TIGER", "FOUND").replace("regit", "FOUND")
        assert "FOUND" not in shown.split('"data"')[-1], told
        assert not {"'t'", "116"} & set(told.replace(",", " ").replace("]", " ").replace("[", " ").split()), told


@pytest.mark.parametrize("door", ["probe", "trace", "who_wrote"])
async def test_a_recorded_run(tmp_path: Path, attack: Attack, door: str) -> None:
    attack(door=f"debug {door}", attempt="code in an expression or a condition")
    async with opened(tmp_path) as tools:
        tools.write("run.py",
        "import os\nRAN = []\nlen = RAN.append\n\n\ndef work(n):\n    m = n + 1\n    return m\n\n\n"
                    "work(1)\nopen('result', 'w').write(str(RAN))\n")  # fmt: skip
        for code in ("len(1)", "max([1], key=RAN.append)", "[0 for RAN[:] in [[1]]]", "RAN.append(1)"):
            arguments: dict[str, Any] = {
                "probe": {"probes": [{"location": "run.py:7", "expressions": [code]}]},
                "trace": {"function": "work", "when": code},
                "who_wrote": {"value": "m", "when": code},
            }[door]
            await tools.send(door, target="run.py", **arguments)
        result = tmp_path / "result"
        assert not result.exists() or result.read_text(encoding="utf-8") == "[]"


SCRIPT = """\
const RAN = [];
class A {
  get p() { RAN.push("p"); return 1; }
  valueOf() { RAN.push("valueOf"); return 1; }
  toString() { RAN.push("toString"); return "a"; }
}
const a = new A(), items = [1, 2];
function main() {
  for (let i = 0; i < 3; i++) {
    items.length;
  }
}
main();
"""
SCRIPTED = [
    "a.p", "items.push(3)", "`${items.push({})}`", "console.log`pwn`", "a == 1", "a + 1", "`${a}`", "new A().p", "i++",
    "RAN.length = 3", "delete items[0]", "eval('RAN.push(1)')", "Function('RAN.push(1)')()", "a.q = 1", "(() => a.p)()",
    "[...(function* () { RAN.push(1); })()]", "import('fs')", "process.exit(3)", "await a.p", "globalThis.x = 1",
]  # fmt: skip


async def test_a_program_of_javascript(tmp_path: Path, attack: Attack) -> None:
    attack(
        door="debug inspect, watch, breakpoint of JavaScript", attempt="getters, templates, conversions, assignments"
    )
    async with opened(tmp_path) as tools:
        await tools.start(tools.write("guard.js", SCRIPT), 10, runtime_path=node_program())
        for expression in SCRIPTED:
            await tools.send("inspect", target="expression", expression=expression)
            await tools.send("variable", action="get", expression=expression)
            await tools.send("watch", action="set", expression=expression)
            for door in ({"condition": expression}, {"log_message": f"v {{{expression}}}"}):
                refused = await tools.refused("breakpoint", location="guard.js:10", **door)
                assert refused["error"]["code"] == "EXECUTION_NOT_ALLOWED", refused
        await tools.call("context", detail_level="full")
        for name, value in (("RAN", "[]"), ("items", "[1, 2]"), ("i", "0")):
            told = await tools.call("inspect", target="expression", expression=name)
            assert told["data"]["value"] == value, told
