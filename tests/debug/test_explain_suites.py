"""Failing tests of other languages: the failing check, values of the frames, and the faulty line first by coverage."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.debug.calling import opened
from tests.support import NODE_PROJECT, missing_component, node_program

STARTS_PROCESSES = True  # test runners of other languages

CART = """\
    function discount(total, rate) {
      if (rate > 1) {
        return total;
      }
      return total - total * rate + 1;
    }
    function total(items) {
      let sum = 0;
      for (const item of items) {
        sum += item.price * item.count;
      }
      return sum;
    }
    module.exports = { discount, total };
    """
TESTS = """\
    IMPORTS
    test("total adds", () => { expect(total([{ price: 2, count: 3 }])).toBe(6); });
    describe("prices", () => {
      test("no discount", () => { expect(discount(10, 2)).toBe(10); });
      test("half price", () => {
        const price = discount(10, 0.5);
        expect(price).toBe(5);
      });
    });
    """
NODE_IMPORTS = """const { test, describe } = require("node:test");
    const assert = require("node:assert");
    const { discount, total } = require("./cart");"""
SWALLOWED = """\
    import test from "node:test";
    import assert from "node:assert/strict";
    function read(text) {
      try {
        return JSON.parse(text);
      } catch {
        return readOld(text);
      }
    }
    function readOld(text) {
      const found = { name: text.split("=")[0] };
      return found.value.length;
    }
    test("reads it", async () => {
      await null;
      assert.equal(read("a=b"), 1);
    });
    """


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")


async def explained(folder: Path, target: str, **more: Any) -> dict[str, Any]:
    async with opened(folder) as tools:
        return await tools.call("explain", target=target, timeout=240, **more)


def project(folder: Path, *packages: str) -> None:
    """A project with installed packages of the tests' own."""
    (folder / "node_modules").mkdir()
    for package in packages:
        if not (NODE_PROJECT / "node_modules" / package).is_dir():
            missing_component(package, "run `make node`")
        (folder / "node_modules" / package).symlink_to(NODE_PROJECT / "node_modules" / package)


def lines_of(envelope: dict[str, Any]) -> list[str]:
    return str(envelope["value"]).splitlines()


@pytest.mark.parametrize("target", ["node --test cart.test.js", "cart.test.js::half price"])
async def test_a_test_of_node_has_its_check_its_values_and_the_faulty_line(target: str, tmp_path: Path) -> None:
    text = TESTS.replace("IMPORTS", NODE_IMPORTS).replace("expect(", "same(")
    text = text.replace(").toBe(", ", ").replace("same(", "assert.strictEqual(")
    write(tmp_path, cart_DOT_js=CART, cart_DOT_test_DOT_js=text)
    found = await explained(tmp_path, target, runtime_path=node_program())
    assert lines_of(found)[:4] == [
        "AssertionError: Expected values to be strictly equal: 6 !== 5  "
        "[cart.test.js:9 in prices > half price: assert.strictEqual(price, 5);]",
        "  expected: 5",
        "  actual: 6",
        "values at cart.test.js:9 in prices > half price: price = 6",
    ]
    assert found["suspects"][0]["location"] == "cart.js:5"
    assert found["suspects"][0]["function"] == "discount"
    assert [each["location"] for each in found["suspects"]] == ["cart.js:5", "cart.js:2"], "no head of a function"


async def test_a_test_of_jest_keeps_the_setup_files_of_its_project(tmp_path: Path) -> None:
    project(tmp_path, "jest")
    text = TESTS.replace(
        "IMPORTS", 'const { discount, total } = require("./cart");\n    const expect = global.checked;'
    )
    write(tmp_path, cart_DOT_js=CART, cart_DOT_test_DOT_js=text, setup_DOT_js="global.checked = expect;\n")
    write(tmp_path, package_DOT_json='{"jest": {"setupFilesAfterEnv": ["./setup.js"]}, "scripts": {"test": "jest"}}')
    found = await explained(tmp_path, "npm test -- -t 'half price'", runtime_path=node_program())
    text = str(found["value"])
    assert "Received: 6" in text, text
    assert "price = 6" in text, text
    assert found["suspects"][0]["location"] == "cart.js:5", text


async def test_a_test_of_vitest_in_typescript_is_told_by_its_own_lines(tmp_path: Path) -> None:
    project(tmp_path, "vitest")
    head = "interface Unused { name: string }\n\n\n    export function discount(total: number, rate: number): number {"
    typed = CART.replace("function discount(total, rate) {", head)
    typed = typed.replace("function total(items)", "export function total(items: any[])").replace(
        "    module.exports = { discount, total };\n", ""
    )
    imports = 'import { describe, expect, test } from "vitest";\n    import { discount, total } from "./cart";'
    write(tmp_path, cart_DOT_ts=typed, cart_DOT_test_DOT_ts=TESTS.replace("IMPORTS", imports), package_DOT_json="{}")
    found = await explained(tmp_path, "npx vitest run cart.test.ts", runtime_path=node_program())
    text = str(found["value"])
    assert lines_of(found)[0].startswith("AssertionError: expected 6 to be 5"), text
    assert "price = 6" in text, text
    assert "__vite" not in text, text
    assert found["suspects"][0]["location"] == "cart.ts:8", text


THROWN = """\
    import { describe, it } from "node:test";
    import assert from "node:assert/strict";
    import { sum, open } from "./shop.mjs";
    describe("shop", () => {
      it("sums", () => assert.equal(sum([1, 2]), 4));
      it("opens", async (t) => {
        await t.test("with a bad key", async () => { await open(-1); });
      });
    });
    """
SHOP = """\
    export function sum(numbers) {
      return numbers.reduce((all, each) => all + each, 0);
    }
    export async function open(key) {
      await null;
      if (key < 0) throw { code: 7, why: "key" };
      return key;
    }
    """


async def test_a_thrown_object_has_its_parts_and_other_faults_do_not_blur_it(tmp_path: Path) -> None:
    write(tmp_path, shop_DOT_mjs=SHOP, shop_DOT_test_DOT_mjs=THROWN)
    target = "shop.test.mjs::shop > opens > with a bad key"
    found = await explained(tmp_path, target, runtime_path=node_program())
    assert lines_of(found)[0].startswith('thrown: {code: 7, why: "key"}  [shop.mjs:6 in open: '), found
    both = await explained(tmp_path, "node --test", runtime_path=node_program())
    assert both["failed_count"] == 2, "the test around the failing one is not counted"
    assert both["suspects"][0]["location"] == "shop.mjs:2", both


async def test_the_framework_that_the_project_names_is_used_and_a_snapshot_is_compared(tmp_path: Path) -> None:
    project(tmp_path, "jest", "vitest")
    write(
        tmp_path,
        package_DOT_json='{"devDependencies": {"jest": "*"}}',
        some_DOT_test_DOT_js="test('has one', () => { expect({ a: 1 }).toMatchInlineSnapshot(`{}`); });\n",
    )
    found = await explained(tmp_path, "some.test.js", runtime_path=node_program())
    assert "toMatchInlineSnapshot(snapshot)" in lines_of(found)[0], found
    assert '  +   "a": 1,' in lines_of(found), found
    write(
        tmp_path,
        package_DOT_json='{"devDependencies": {"vitest": "*"}}',
        some_DOT_test_DOT_js="import { expect, test } from 'vitest';\n"
        "test('has one', () => { expect({ a: 1 }).toMatchInlineSnapshot(`{ }`); });\n",
    )
    found = await explained(tmp_path, "some.test.js::has one", runtime_path=node_program())
    assert "  expected: { }" in lines_of(found), found
    assert '      "a": 1,' in lines_of(found), found


async def test_an_error_that_was_caught_on_the_way_is_told(tmp_path: Path) -> None:
    write(tmp_path, old_DOT_test_DOT_mjs=SWALLOWED)
    found = await explained(tmp_path, "old.test.mjs", runtime_path=node_program())
    text = str(found["value"])
    assert lines_of(found)[0].endswith("[old.test.mjs:12 in readOld: return found.value.length;]"), text
    assert 'values at old.test.mjs:12 in readOld: text = "a=b", found = {name: "a"}' in text, text
    assert "swallowed on the way: SyntaxError: " in text, text
    assert "old.test.mjs:5" in text, text


async def test_tests_that_pass_and_tests_that_cannot_load_are_told(tmp_path: Path) -> None:
    write(tmp_path, ok_DOT_test_DOT_mjs='import test from "node:test";\ntest("fine", () => {});\n')
    found = await explained(tmp_path, "ok.test.mjs", runtime_path=node_program())
    assert "did not fail" in str(found["value"]), found
    write(
        tmp_path, bad_DOT_test_DOT_mjs='import test from "node:test";\nimport "./missing.mjs";\ntest("x", () => {});\n'
    )
    found = await explained(tmp_path, "bad.test.mjs", runtime_path=node_program())
    assert "bad.test.mjs" in str(found["value"]), found
