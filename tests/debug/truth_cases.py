"""Programs that fail in ways which are easily told wrong. Comments such as `# RAISES` mark the lines tests ask for."""

from __future__ import annotations

CASES = {
    "context": """
def first(row):
    try:
        return int(row["a"])  # CONTEXT
    except ValueError:
        return row["missing"]  # RAISES
def test_it():
    first({"a": "x"})
""",
    "cause": """
class ConfigError(Exception): pass
def read(text):
    return int(text)  # CAUSE
def load(text):
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError("bad config") from error  # RAISES
def test_it():
    load("x")
""",
    "hidden_context": """
def load(text):
    try:
        return int(text)
    except ValueError:
        raise KeyError("port") from None  # RAISES
def test_it():
    load("x")
""",
    "swallowed": """
def parse(text):
    try:
        return int(text)  # SWALLOWED
    except ValueError:
        return -1
def total(texts):
    return sum(parse(text) for text in texts)
def test_it():
    assert total(["1", "x"]) == 3  # RAISES
""",
    "finally": """
done = []
def work(value):
    try:
        return 10 / value  # RAISES
    finally:
        done.append(value)
def test_it():
    work(0)
""",
    "with_block": """
import contextlib
def work(value):
    with contextlib.nullcontext():
        return 10 / value  # RAISES
def test_it():
    work(0)
""",
    "repr_of_pytest": """
class Box:
    def __init__(self, size):
        self.size = size
    def __eq__(self, other):
        return self.size == other.size + 1
    def __repr__(self):
        text = helper(self.size)
        return f"Box({text})"  # REPR
def helper(size):
    return str(size)
def make(size):
    return Box(size)
def test_it():
    assert make(2) == Box(2)  # RAISES
""",
    "repr_that_raises": """
class Box:
    def __repr__(self):
        raise RuntimeError("no text")  # REPR
def make():
    return Box()
def test_it():
    assert make() == 3  # RAISES
""",
    "repr_of_logging": """
import logging
class Box:
    def __str__(self):
        return "a box"  # REPR
def make():
    logging.getLogger("x").warning("%s", Box())
    return 2
def test_it():
    assert make() == 3  # RAISES
""",
    "text_under_test": """
class Money:
    def __init__(self, cents):
        self.cents = cents
    def __str__(self):
        return f"{self.cents / 10:.2f}"  # MADE
def test_it():
    assert str(Money(250)) == "2.50"  # RAISES
""",
    "frozen": """
import pathlib
def read(path):
    return open(path, encoding="utf-8").read()  # RAISES
def test_it(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"\\xff\\xfe\\xfa")
    read(file)
""",
    "standard_library": """
import json
def load(text):
    return json.loads(text)  # RAISES
def test_it():
    load("{")
""",
    "generator": """
def numbers(limit):
    n = 0
    while n < limit - 1:
        n += 1
        yield n  # MADE
def test_it():
    assert list(numbers(4)) == [1, 2, 3, 4]  # RAISES
""",
    "generator_in_function": """
def kept(values):
    for value in values:
        if value > 1:
            yield value
def take(values):
    return list(kept(values))
def test_it():
    found = take([1, 2, 3])
    assert found == [1, 2, 3]  # RAISES
""",
    "decorator": """
import functools
def cached(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner
@cached
def add(a, b):
    return a - b  # MADE
def test_it():
    assert add(1, 2) == 3  # RAISES
""",
    "closure": """
def grouped(key):
    def of(row):
        return row[key]  # RAISES
    return of
def test_it():
    by = grouped(None)
    by({"a": 1})
""",
    "property": """
class Cart:
    def __init__(self, prices):
        self.prices = prices
    @property
    def total(self):
        return sum(self.prices[1:])  # MADE
def test_it():
    cart = Cart([1, 2])
    assert cart.total == 3  # RAISES
""",
    "two_sides": """
def up(n):
    return n + 2
def other(n):
    return n + 1
def test_it():
    expected = other(1)
    result = up(1)
    assert expected == result  # RAISES
""",
    "stated": """
def up(n):
    return n + 2  # MADE
def test_it():
    expected = 2
    result = up(1)
    assert expected == result  # RAISES
""",
    "context_manager_returns": """
import contextlib
def half(n):
    with contextlib.nullcontext():
        return n // 2  # MADE
    return None
def test_it():
    assert half(5) == 2.5  # RAISES
""",
    "default_given": """
def add(tag, tags=[]):
    return [*tags, tag]
def test_it():
    assert add("a", ["b"]) == ["a"]  # RAISES
""",
    "group": """
def one():
    raise ValueError("one")  # ONE
def two():
    raise KeyError("two")  # TWO
def test_it():
    found = []
    for each in (one, two):
        try:
            each()
        except Exception as error:
            found.append(error)
    raise ExceptionGroup("both", found)  # RAISES
""",
    "task_group": """
import asyncio
async def child():
    await asyncio.sleep(0)
    raise ValueError("in a task")  # ONE
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(child())
def test_it():
    asyncio.run(main())
""",
    "thread": """
import threading
def work(data, out):
    out.append(data["b"])  # ASIDE
def test_it():
    out = []
    thread = threading.Thread(target=work, args=({"a": 1}, out), name="worker-7")
    thread.start()
    thread.join()
    assert out == [1]  # RAISES
""",
    "callback": """
import asyncio
def on_ready(store):
    store["value"] = 1 / 0  # ASIDE
async def main():
    store = {}
    asyncio.get_running_loop().call_soon(on_ready, store)
    await asyncio.sleep(0)
    return store
def test_it():
    assert asyncio.run(main()) == {"value": 1}  # RAISES
""",
    "pool": """
from concurrent.futures import ThreadPoolExecutor
def read(data, key):
    return data[key]  # RAISES
def test_it():
    with ThreadPoolExecutor(1) as pool:
        out = list(pool.map(read, [{"a": 1}], ["b"]))
""",
    "await": """
import asyncio
async def price(item):
    await asyncio.sleep(0)
    return item["cost"]  # RAISES
async def total(items):
    return sum([await price(item) for item in items])
def test_it():
    asyncio.run(total([{"price": 1}]))
""",
    "child": """
import subprocess, sys
def test_it():
    run = subprocess.run([sys.executable, "child.py"], capture_output=False)
    assert run.returncode == 0  # RAISES
""",
    "checked_child": """
import subprocess, sys
def start():
    subprocess.run([sys.executable, "child.py"], capture_output=True, check=True)  # RAISES
def test_it():
    start()
""",
    "process_pool": """
import multiprocessing
def work(n):
    return 10 // n  # CHILD
def test_it():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(work, [0])  # RAISES
""",
    "fixture": """
import pytest
@pytest.fixture
def rows():
    return open("no-such-file")  # RAISES
def test_it(rows):
    pass
""",
    "teardown": """
import pytest
@pytest.fixture
def rows():
    yield []
    raise OSError("cannot clean")  # RAISES
def test_it(rows):
    pass
""",
    "mock": """
from unittest.mock import Mock
def send(client):
    client.post("a", 1)
def test_it():
    client = Mock()
    send(client)
    client.post.assert_called_once_with("b", 2)  # RAISES
""",
    "did_not_raise": """
import pytest
def parse(text):
    try:
        return int(text)  # SWALLOWED
    except ValueError:
        return None
def test_it():
    with pytest.raises(ValueError):  # RAISES
        parse("x")
""",
    "syntax": """
def test_it(:  # RAISES
    pass
""",
    "import": """
import no_such_module  # RAISES
def test_it():
    pass
""",
    "recursion": """
def down(n):
    return down(n + 1)  # RAISES
def test_it():
    down(0)
""",
    "message_that_raises": """
class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")
def test_it():
    raise Odd("x", 1)  # RAISES
""",
    "loop": """
def kept(n):
    return n
def test_it():
    for n in (1, 2, 3):
        assert kept(n) + kept(0) < 3  # RAISES
""",
    "helper": """
def check(value):
    assert value > 3, "too small"  # RAISES
def test_it():
    check(2)
""",
}
"""Tests of pytest, one failing test in each."""

CHILD = """
def main():
    return {}["colour"]
main()
"""

PROGRAMS = {
    "exit": "import sys\ndef main():\n    print('wrong usage')\n    sys.exit(2)  # RAISES\nmain()\n",
    "hard_exit": "import os\ndef main():\n    print('giving up')\n    os._exit(3)  # RAISES\nmain()\n",
    "crash": ("import ctypes\ndef main():\n    print('so far')\n    ctypes.string_at(0)  # RAISES\nmain()\n"),
    "abort": "import os\ndef main():\n    os.abort()  # RAISES\nmain()\n",
    "plain": "def main():\n    print('begins')\n    return {}['a']  # RAISES\nmain()\n",
    "generator_expression": "items = [{'a': 1}, {}]\ntotal = sum(x['a'] for x in items)  # RAISES\n",
}
