"""Programs that are hard on a recorder, each failing by a plain assertion or error of its own."""

from __future__ import annotations

HARD = {
    "threads": """
import threading
def work(results, number):
    total = sum(range(number))
    results[number] = total
def test_it():
    results = {}
    threads = [threading.Thread(target=work, args=(results, n)) for n in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    wrong = results[3]
    assert wrong == 4
""",
    "asyncio": """
import asyncio
async def half(value):
    await asyncio.sleep(0)
    return value / 2
async def main():
    parts = await asyncio.gather(*(half(n) for n in range(5)))
    wrong = sum(parts)
    assert wrong == 10
def test_it():
    asyncio.run(main())
""",
    "generators": """
def numbers(limit):
    n = 0
    while n < limit:
        n += 1
        yield n
def test_it():
    abandoned = numbers(3); next(abandoned)
    wrong = sum(numbers(4))
    assert wrong == 11
""",
    "decorators": """
import functools
def twice(function):
    @functools.wraps(function)
    def inner(*args):
        function(*args)
        return function(*args)
    return inner
@twice
def add(a, b):
    return a - b
def test_it():
    wrong = add(1, 2)
    assert wrong == 3
""",
    "representations": """
import time
class Raises:
    def __repr__(self): raise RuntimeError("repr was called")
class Hangs:
    def __repr__(self): time.sleep(1000)
class Huge:
    def __repr__(self): return "x" * 50_000_000
class Sly:
    def __getattribute__(self, name): raise RuntimeError("an attribute was read")
def test_it():
    things = [Raises(), Hangs(), Huge(), Sly()]
    things.append(things)
    wrong = len(things)
    if wrong != 4:
        raise ValueError("five things")
""",
    "recursion": """
import sys
sys.setrecursionlimit(20_000)
def depth(n):
    if n == 0:
        raise ValueError("the bottom")
    return depth(n - 1)
def test_it():
    depth(10_000)
""",
    "endless_recursion": """
def forever(n):
    return forever(n + 1)
def test_it():
    forever(0)
""",
    "fixtures": """
import pytest
@pytest.fixture
def price():
    base = 10
    return base * 2
@pytest.mark.parametrize("factor", [1, 2])
def test_it(price, factor):
    wrong = price * factor
    assert wrong == 20
""",
    "workers": """
def test_it():
    wrong = 1 + 1
    assert wrong == 3
""",
    "unittest": """
import unittest
def double(value):
    return value + value + 1
class Test(unittest.TestCase):
    def test_it(self):
        wrong = double(2)
        self.assertEqual(wrong, 4)
""",
    "flood": """
import sys
def test_it(capfd):
    with capfd.disabled():
        for _ in range(2000):
            sys.stdout.write("x" * 1000)
    wrong = 1
    assert wrong == 2
""",
}
