"""Failing tests of compiled languages: the failing check, values of the user's frames, and the faulty line first."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.debug.calling import find_toolchains, opened
from tests.support import missing_component

STARTS_PROCESSES = True  # test runners of other languages

GO = {
    "go.mod": "module example.com/shop\n\ngo 1.18\n",
    "shop/price.go": """\
        package shop

        type Item struct {
            Name  string
            Price float64
        }

        func Discount(total, rate float64) (float64, bool) {
            if rate > 1 {
                return 0, false
            }
            if rate == 0 {
                return total, true
            }
            return total - total*rate + 1, true
        }

        func Third(items []Item) Item {
            return items[2]
        }
        """,
    "shop/price_test.go": """\
        package shop

        import "testing"

        func TestDiscount(t *testing.T) {
            for _, c := range []struct {
                name              string
                total, rate, want float64
            }{{"none", 10, 0, 10}, {"half off", 10, 0.5, 5}, {"too much", 10, 2, 0}} {
                t.Run(c.name, func(t *testing.T) {
                    if got, _ := Discount(c.total, c.rate); got != c.want {
                        t.Errorf("got %v,\\nwant %v", got, c.want)
                    }
                })
            }
        }

        func TestThird(t *testing.T) {
            items := []Item{{"a", 1}}
            if Third(items).Name != "c" {
                t.Fatal("not c")
            }
        }
        """,
}
RUST = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """\
        pub struct Item {
            pub name: String,
        }

        pub fn discount(total: f64, rate: f64) -> Option<f64> {
            if rate > 1.0 {
                return None;
            }
            if rate == 0.0 {
                return Some(total);
            }
            Some(total - total * rate + 1.0)
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn no_discount() {
                assert_eq!(discount(10.0, 0.0), Some(10.0));
            }

            #[test]
            fn half_off() {
                let item = Item { name: String::from("lamp") };
                let got = discount(10.0, 0.5);
                assert_eq!(got, Some(5.0), "for {}", item.name);
            }
        }
        """,
    "tests/rates.rs": """\
        #[test]
        fn is_too_much() {
            assert!(shop::discount(10.0, 2.0).is_none());
        }
        """,
}


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> None:
    find_toolchains(monkeypatch)


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            missing_component(program, "run scripts/system-packages.sh")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")


async def explained(folder: Path, target: str, **more: Any) -> tuple[list[str], dict[str, Any]]:
    """The lines of an explanation, and the whole answer."""
    async with opened(folder) as tools:
        found = await tools.call("explain", target=target, timeout=240, **more)
    return str(found["value"]).splitlines(), found


async def test_a_subtest_of_go_has_its_message_its_values_and_the_faulty_line(tmp_path: Path) -> None:
    need("go", "dlv")
    write(tmp_path, GO)
    lines, found = await explained(tmp_path, "go test -run TestDiscount ./...")
    assert lines[0].startswith("got 6,  [shop/price_test.go:12 in shop.TestDiscount.func1: t.Errorf("), lines
    assert lines[1] == "  want 5"
    assert 'c = {name: "half off", total: 10, rate: 0.5, want: 5}' in lines[2], lines
    assert "got = 6" in lines[2]
    assert found["suspects"][0]["location"] == "shop/price.go:15", lines
    assert found["suspects"][0]["function"] == "Discount"


async def test_a_panic_of_go_has_the_users_frames_and_is_no_fault_of_the_tests_after_it(tmp_path: Path) -> None:
    need("go", "dlv")
    write(tmp_path, GO)
    lines, found = await explained(tmp_path, "shop/price_test.go::TestThird")
    assert lines[0] == (
        "panic: runtime error: index out of range [2] with length 1  [shop/price.go:19 in shop.Third: return items[2]]"
    )
    assert 'items = [{Name: "a", Price: 1}]' in lines[1], lines
    assert "only the lines of its stack" in lines[-1], lines
    assert found["suspects"][0]["location"] == "shop/price.go:19"


async def test_tests_of_go_that_pass_or_do_not_compile_say_so(tmp_path: Path) -> None:
    need("go")
    write(tmp_path, GO)
    lines, _ = await explained(tmp_path, "go test -run TestDiscount/none ./...")
    assert lines == ["`go test -run TestDiscount/none ./...` did not fail: it ended with exit code 0."]
    (tmp_path / "shop" / "price.go").write_text("package shop\n\nfunc Discount() { return 1 }\n", encoding="utf-8")
    lines, _ = await explained(tmp_path, "go test ./...")
    assert lines[0].startswith("The tests do not compile: "), lines
    assert "shop/price.go:3" in lines[0]


@pytest.mark.parametrize("target", ["cargo test --lib", "src/lib.rs::half_off"])
async def test_a_panic_of_rust_has_its_values_and_the_faulty_line(target: str, tmp_path: Path) -> None:
    need("cargo", "lldb-dap-19")
    write(tmp_path, RUST)
    lines, found = await explained(tmp_path, target)
    assert lines[0].startswith("panic: assertion `left == right` failed: for lamp  [src/lib.rs:28 in "), lines
    assert lines[1:3] == ["  left: Some(6.0)", "  right: Some(5.0)"]
    assert 'item = {name: "lamp"}' in lines[3], lines
    assert "got = Some(6)" in lines[3], lines
    assert "left_val" not in lines[3]
    assert found["suspects"][0]["location"] == "src/lib.rs:12", lines
    assert all(int(each["location"].rpartition(":")[2]) < 15 for each in found["suspects"]), "no line of a test"


async def test_tests_of_rust_that_pass_or_do_not_compile_say_so(tmp_path: Path) -> None:
    need("cargo")
    write(tmp_path, RUST)
    lines, _ = await explained(tmp_path, "tests/rates.rs::is_too_much")
    assert lines == ["`tests/rates.rs::is_too_much` did not fail: it ended with exit code 0."]
    (tmp_path / "tests" / "rates.rs").write_text("#[test]\nfn x() { let y: u8 = true; }\n", encoding="utf-8")
    lines, _ = await explained(tmp_path, "cargo test --test rates")
    assert lines[0] == ("The tests do not compile: mismatched types  [tests/rates.rs:2: fn x() { let y: u8 = true; }]")
