"""Where a failure stops and what is seen there: the user's frame, and values that can be read."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.debug.calling import Tools, find_toolchains, line_of, opened, status_of
from tests.support import missing_component, node_program
from trysquare.debug.adapters.registry import check_packages, find_language

RUST = """\
use std::collections::HashMap;
struct Point { x: i32, y: i32 }
struct Item { name: String, tags: Vec<String>, at: Option<Point> }
fn cost(items: &Vec<Item>, limit: Option<i32>) -> i32 {
    let mut counts: HashMap<String, i32> = HashMap::new();
    counts.insert("a".to_string(), 1);
    let nums = vec![1, 2, 3];
    let none: Option<i32> = None;
    let boxed = Box::new(Point { x: 5, y: 6 });
    let index = nums.len() + items.len() + boxed.x as usize;
    if none.is_some() || limit.is_none() { return boxed.y; }
    nums[index] + items[0].at.as_ref().unwrap().x + items[0].at.as_ref().unwrap().y
}
fn main() {
    let items = vec![Item { name: "pen".into(), tags: vec!["x".into()], at: Some(Point { x: 1, y: 2 }) }];
    println!("{} {} {}", items[0].name, items[0].tags[0], cost(&items, Some(3)));
}
"""
CPP = """\
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
struct Point { int x; int y; };
struct Item { std::string name; std::vector<std::string> tags; };
static int cost(const std::vector<Item>& items) {
    std::map<std::string, int> counts = {{"a", 1}, {"b", 2}};
    std::unordered_map<std::string, int> hashed = {{"k", 7}};
    std::unique_ptr<Point> owned(new Point{5, 6});
    Point plain{1, 2};
    Point* none = nullptr;
    std::vector<int> nums = {1, 2, 3};
    if (nums.size() == 3 && none == nullptr && plain.x) throw std::runtime_error("too much");
    return counts["a"] + hashed["k"] + owned->x + (int) items.size();
}
int main() {
    std::vector<Item> items = {{"pen", {"x"}}};
    return cost(items);
}
"""
GO = """\
package main

import "fmt"

type Point struct{ X, Y int }

func cost(names []string) int {
	counts := map[string]int{"a": 1}
	at := &Point{5, 6}
	index := len(names) + len(counts)
	fmt.Println(at)
	return len(names[index])
}

func main() {
	fmt.Println(cost([]string{"pen"}))
}
"""
JS = """\
const rate = 2;
function outer(items) {
  let sum = 0;
  const scaled = (item) => {
    const cost = item.price * rate;
    return cost + sum;
  };
  for (const item of items) {
    const cost = scaled(item);
    if (cost > 1) {
      let inner = cost + 1;
      try { JSON.parse('{'); } catch (error) {
        sum += inner;
      }
    }
  }
  return sum;
}
console.log(outer([{ price: 1, at: { x: 1 } }, { price: 2 }]));
"""


@pytest.fixture
async def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Tools]:
    find_toolchains(monkeypatch)
    async with opened(tmp_path) as tools:
        yield tools


async def _require(language: str) -> None:
    package = find_language(language).package
    [found] = await check_packages([package])
    if found.path is None:
        missing_component(package.name, package.install_command)


async def test_a_rust_panic_stops_in_the_users_frame_with_readable_values(tools: Tools) -> None:
    await _require("rust")
    tools.write("app.rs", RUST)
    stop = await tools.call("session_start", target="app.rs", timeout=120)
    assert status_of(stop) == "stopped_at_exception"
    assert line_of(stop) == 12
    assert "rust_panic" in stop["data"]["raised_in"]
    assert stop["data"]["exception"]["type"] == "panic"
    assert stop["data"]["exception"]["message"] == "index out of bounds: the len is 3 but the index is 9"
    found = stop["data"]["locals"]
    assert found["nums"] == "[1, 2, 3]"
    assert found["counts"] == '[("a", 1)]'
    assert (found["limit"], found["none"]) == ("Some(3)", "None")
    assert found["boxed"] == "&{x: 5, y: 6}"
    assert found["items"] == '&[{name: "pen", tags: ["x"], at: Some({x:1, y:2})}]'
    # Without a frame, it is the one that was shown.
    value = await tools.call("inspect", target="expression", expression="index")
    assert value["data"]["value"] == "9"
    ended = await tools.call("execute")
    assert ended["data"]["exit_code"] == 101
    assert "lldb" not in (await tools.call("inspect", target="output"))["data"]["output"]


async def test_a_rust_panic_is_passed_over_where_it_is_not_wanted(tools: Tools) -> None:
    await _require("rust")
    tools.write("app.rs", RUST)
    ended = await tools.call("session_start", target="app.rs", exceptions=[], timeout=120)
    assert ended["data"]["exit_code"] == 101


@pytest.mark.parametrize(("file", "text", "first"), [("app.rs", RUST, 14), ("app.cpp", CPP, 19), ("app.go", GO, 15)])
async def test_a_compiled_program_stops_in_its_own_main(tools: Tools, file: str, text: str, first: int) -> None:
    await _require({"app.rs": "rust", "app.cpp": "cpp", "app.go": "go"}[file])
    tools.write(file, text)
    stop = await tools.call("session_start", target=file, stop_on_entry=True, timeout=120)
    assert stop["data"]["execution_state"]["stop_reason"] == "entry"
    assert first <= line_of(stop) <= first + 3
    assert status_of(await tools.call("execute")) == "stopped_at_exception"


async def test_an_uncaught_cpp_exception_stops_where_it_was_thrown_with_its_text(tools: Tools) -> None:
    await _require("cpp")
    tools.write("app.cpp", CPP)
    stop = await tools.call("session_start", target="app.cpp", timeout=120)
    assert line_of(stop) == 16
    assert stop["data"]["exception"] == {"type": "std::runtime_error", "message": "too much"}
    found = stop["data"]["locals"]
    assert found["counts"] == '{"a": 1, "b": 2}'
    assert found["owned"] == "{x: 5, y: 6}"
    assert found["plain"] == "{x: 1, y: 2}"
    assert found["none"] == "null"
    assert found["nums"] == "[1, 2, 3]"
    assert found["items"] == '[{name: "pen", tags: ["x"]}]'
    assert found["hashed"] != "[]"
    parts = await tools.call("inspect", target="expression", expression="items")
    assert parts["data"]["parts"] == {"[0]": '{name: "pen", tags: ["x"]}'}


async def test_a_native_program_reads_its_input(tools: Tools) -> None:
    await _require("c")
    tools.write(
        "echo.c", '#include <stdio.h>\nint main() { int n = 0; scanf("%d", &n); printf("n=%d\\n", n); return n; }\n'
    )
    ended = await tools.call("session_start", target="echo.c", stdin="7\n", timeout=120)
    assert ended["data"]["exit_code"] == 7
    waiting = await tools.call("session_start", target="echo.c", timeout=3)
    assert status_of(waiting) == "running"
    ended = await tools.call("execute", action="wait", stdin="5\n")
    assert ended["data"]["exit_code"] == 5


async def test_a_go_panic_stops_in_the_users_frame(tools: Tools) -> None:
    await _require("go")
    tools.write("app.go", GO)
    stop = await tools.call("session_start", target="app.go", timeout=120)
    assert line_of(stop) == 12
    assert stop["data"]["raised_in"].endswith("in runtime.fatalpanic")
    assert "index out of range [2]" in stop["data"]["exception"]["message"]
    assert stop["data"]["locals"]["index"] == "2"
    assert stop["data"]["locals"]["at"] == "*main.Point {X: 5, Y: 6}"


async def test_a_python_exception_of_a_library_is_seen_from_the_users_line(tools: Tools) -> None:
    stop = await tools.start(tools.write("reads.py", 'import json\n\ntext = "{"\njson.loads(text)\n'))
    assert line_of(stop) == 4
    assert "json/decoder.py" in stop["data"]["raised_in"]
    assert stop["data"]["locals"]["text"] == "'{'"
    inner = await tools.call("inspect", target="locals", frame=0)
    assert "idx" in inner["data"]["locals"]


async def test_variables_of_all_blocks_and_of_the_closure_are_seen(tools: Tools) -> None:
    program = tools.write("app.js", JS)
    found = (await tools.start(program, 6, 13, runtime_path=node_program()))["data"]["locals"]
    assert (found["cost"], found["sum"], found["rate"]) == ("2", "0", "2")
    assert found["item"] == "{price: 1, at: {x: 1}}"
    assert "exports" not in found
    found = (await tools.call("execute"))["data"]["locals"]
    assert (found["inner"], found["cost"], found["sum"]) == ("3", "2", "0")
    assert found["items"] == "[{price: 1, at: Object}, {price: 2}]"
    assert found["error"].startswith("SyntaxError")
    changed = await tools.call("step")
    assert changed["data"]["changed"]["sum"] == "0 -> 3"


RUBY = """\
class Cart
  def total
    sum = [1, 2].sum
    begin; Integer("x"); rescue ArgumentError; end
    raise ArgumentError, "bad total"
  end
end
Cart.new.total
"""
JAVA = """\
import java.util.*;
public class App {
    public static void main(String[] words) {
        Map<String, Integer> counts = new HashMap<>(Map.of("a", 1));
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) counts.put(input.nextLine(), 2);
        try { Integer.parseInt("x"); } catch (Exception error) { counts.put("caught", 3); }
        String none = null;
        System.out.println(none.length());
    }
}
"""


async def test_an_uncaught_ruby_exception_stops_where_it_was_raised(tools: Tools) -> None:
    await _require("ruby")
    program = tools.write("cart.rb", RUBY)
    stop = await tools.call("session_start", target="cart.rb")
    assert status_of(stop) == "stopped_at_exception"
    assert line_of(stop) == 5
    assert stop["data"]["exception"] == {"type": "ArgumentError", "message": "bad total"}
    assert stop["data"]["locals"]["sum"] == "3"
    assert (await tools.call("execute"))["data"]["exit_code"] == 1
    ended = await tools.call("session_start", target="cart.rb", exceptions=[])
    assert ended["data"]["exit_code"] == 1
    entry = await tools.start(program, stop_on_entry=True)
    assert line_of(entry) == 1
    assert line_of(await tools.call("step")) == 2


async def test_a_ruby_program_that_exits_is_not_stopped(tools: Tools) -> None:
    await _require("ruby")
    tools.write("exits.rb", "puts gets.to_i + 1\nexit 3\n")
    ended = await tools.call("session_start", target="exits.rb", stdin="4\n")
    assert ended["data"]["exit_code"] == 3
    assert ended["data"]["output"] == "5\n"


async def test_a_java_program_has_an_entry_input_maps_and_the_text_of_a_null_pointer(tools: Tools) -> None:
    await _require("java")
    tools.write("App.java", JAVA)
    given = {"target": "App.java", "stdin": "b\n", "timeout": 120}
    entry = await tools.call("session_start", **given, stop_on_entry=True, exceptions=["raised"])
    assert line_of(entry) == 4
    raised = await tools.call("execute")
    assert line_of(raised) == 7
    assert raised["data"]["exception"]["type"] == "java.lang.NumberFormatException"
    await tools.call("breakpoint", action="exceptions", filters=["uncaught"])
    stop = await tools.call("execute")
    assert line_of(stop) == 9
    assert "String.length()" in stop["data"]["exception"]["message"]
    assert json.loads(stop["data"]["locals"]["counts"]) == {"a": 1, "b": 2, "caught": 3}
    ended = await tools.call("session_start", **given, exceptions=[])
    assert ended["data"]["exit_code"] == 1
