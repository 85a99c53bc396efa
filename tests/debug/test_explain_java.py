"""Failing tests of Java: the failing check, values of the user's frames, and the faulty line first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.debug.calling import opened
from tests.support import missing_component

STARTS_PROCESSES = True  # compilers, build tools and test runners

JUNIT_5 = Path("/usr/share/java/junit-platform-console-standalone.jar")
JUNIT_4 = [Path(f"/usr/share/java/{name}.jar") for name in ("junit4", "hamcrest")]
MAVEN_REPOSITORY = Path("/usr/share/maven-repo")
SUREFIRE = MAVEN_REPOSITORY / "org/apache/maven/plugins/maven-surefire-plugin"

CART = """\
    package shop;

    import java.util.ArrayList;
    import java.util.List;

    public class Cart {
        private final List<Integer> prices = new ArrayList<>();

        public void add(int price) {
            prices.add(price);
        }

        public int total(int percent) {
            int whole = 0;
            for (int price : prices) {
                whole += price;
            }
            if (percent > 0) {
                whole = discounted(whole, percent);
            }
            return whole;
        }

        static int discounted(int whole, int percent) {
            int off = whole * percent / 10;
            return whole - off;
        }

        public int parsed(String text) {
            try {
                return Integer.parseInt(text);
            } catch (NumberFormatException error) {
                return text.charAt(5);
            }
        }
    }
    """
CART_TEST = """\
    package shop;

    import static org.junit.jupiter.api.Assertions.assertEquals;
    import static org.junit.jupiter.api.Assertions.assertThrows;

    import java.math.BigDecimal;
    import java.util.*;
    import java.util.concurrent.CompletableFuture;
    import java.util.stream.Stream;
    import org.junit.jupiter.api.*;
    import org.junit.jupiter.params.ParameterizedTest;
    import org.junit.jupiter.params.provider.CsvSource;

    class CartTest {
        enum Color { RED, GREEN }

        record Point(int x, int y) {}

        private Cart cart;

        @BeforeEach
        void fill() {
            cart = new Cart();
            cart.add(100);
            cart.add(50);
        }

        @Test
        void addsUp() {
            assertEquals(150, cart.total(0));
        }

        @Test
        @DisplayName("takes ten percent off")
        void discounts() {
            int total = cart.total(10);
            assertEquals(135, total, "the total");
        }

        @ParameterizedTest
        @CsvSource({"0,150", "20,120"})
        void table(int percent, int expected) {
            assertEquals(expected, cart.total(percent));
        }

        @TestFactory
        Stream<DynamicTest> dynamic() {
            return Stream.of(150, 2).map(n ->
                DynamicTest.dynamicTest("case " + n, () -> assertEquals(n, cart.total(0))));
        }

        @Test
        void async() throws Exception {
            CompletableFuture.supplyAsync(() -> Integer.parseInt("x1")).get();
        }

        @Test
        void shapes() {
            var tree = new TreeMap<>(Map.of("b", 2, "a", 1));
            var fixed = Map.of("k", List.of(1, 2));
            var frozen = Collections.unmodifiableList(new LinkedList<>(List.of("q")));
            var price = new BigDecimal("12.50");
            var color = Color.GREEN;
            var point = new Point(1, 2);
            assertEquals(new Point(1, 3), point);
        }

        @Test
        @Disabled
        void skipped() {
            Assertions.fail();
        }

        @Nested
        class Parsing {
            @Test
            void reads() {
                assertEquals(3, cart.parsed("x"));
            }

            @Test
            void readsNumbers() {
                assertEquals(3, cart.parsed("3"));
            }
        }
    }
    """
ACCOUNT = """\
    import java.util.ArrayDeque;
    import java.util.Deque;

    public class Account {
        private int left;
        private final Deque<String> log = new ArrayDeque<>();

        void put(int amount) {
            left += amount;
            log.add("put " + amount);
        }

        void take(int amount) {
            if (amount < left) {
                throw new IllegalArgumentException("too much");
            }
            left -= amount;
        }

        int left() {
            return left;
        }
    }
    """
ACCOUNT_TEST = """\
    import static org.junit.Assert.assertEquals;

    import org.junit.Before;
    import org.junit.Test;

    public class AccountTest {
        private final Account account = new Account();

        @Before
        public void fill() {
            account.put(10);
        }

        @Test
        public void takes() {
            account.take(3);
            assertEquals("left", 7, account.left());
        }

        @Test(expected = IllegalArgumentException.class)
        public void refuses() {
            account.take(30);
        }

        @Test
        public void puts() {
            account.put(5);
            assertEquals(15, account.left());
        }
    }
    """
POM = """\
    <project xmlns="http://maven.apache.org/POM/4.0.0">
      <modelVersion>4.0.0</modelVersion>
      <groupId>shop</groupId><artifactId>shop</artifactId><version>1</version>
      <properties>
        <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
        <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
      </properties>
      <dependencies><dependency>
        <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.9.2</version>
        <scope>test</scope>
      </dependency></dependencies>
    </project>
    """
MAIN = """\
    import java.util.HashMap;
    import java.util.Map;

    public class Main {
        static int total(Map<String, Integer> stock, String name) {
            return stock.get(name) + 1;
        }

        public static void main(String[] words) {
            Map<String, Integer> stock = new HashMap<>();
            stock.put("tea", 3);
            System.out.println(total(stock, words[0]));
        }
    }
    """


def require(path: Path, how: str) -> None:
    if not path.exists():
        missing_component(path.name, how)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project of JUnit 5 without a build tool."""
    require(JUNIT_5, "apt-get install junit5")
    if shutil.which("javac") is None:
        missing_component("javac", "apt-get install default-jdk-headless")
    write(tmp_path / "src/main/java/shop/Cart.java", CART)
    write(tmp_path / "src/test/java/shop/CartTest.java", CART_TEST)
    return tmp_path


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """Tests of JUnit 4 in the default package."""
    for jar in JUNIT_4:
        require(jar, "apt-get install junit5")
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib" / jar.name).symlink_to(jar)
    write(tmp_path / "Account.java", ACCOUNT)
    write(tmp_path / "AccountTest.java", ACCOUNT_TEST)
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text), encoding="utf-8")


def files_below(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


async def explained(folder: Path, target: str, **more: Any) -> dict[str, Any]:
    async with opened(folder) as tools:
        return await tools.call("explain", target=target, timeout=240, **more)


TEST_FILE = "src/test/java/shop/CartTest.java"


async def test_a_test_of_junit_5_has_its_check_its_values_and_the_faulty_lines(shop: Path) -> None:
    found = await explained(shop, f"{TEST_FILE}::discounts")
    lines = str(found["value"]).splitlines()
    assert lines[0] == (
        f"AssertionFailedError: the total ==> expected: <135> but was: <0>  [{TEST_FILE}:37 in CartTest.discounts: "
        'assertEquals(135, total, "the total");]'
    )
    assert lines[1] == (
        f"values at {TEST_FILE}:37 in CartTest.discounts: total = 0, this = CartTest{{cart=Cart{{prices=[100, 50]}}}}"
    )
    first = [each["location"] for each in found["suspects"][:3]]
    assert first == [f"src/main/java/shop/Cart.java:{line}" for line in (19, 25, 26)]
    assert found["suspects"][1]["function"] == "Cart.discounted"
    assert found.get("failed_count", 1) == 1, "other tests that fail are not asked for"
    assert not [each for each in files_below(shop) if each.suffix == ".class"], "nothing is left in the project"


async def test_shapes_of_tests_and_values_are_readable(shop: Path) -> None:
    found = await explained(shop, TEST_FILE, full=True)
    text = str(found["value"])
    assert set(found["failed"]) == {
        "CartTest.discounts", "CartTest.table [2] 20, 120", "CartTest.dynamic case 2", "CartTest.async",
        "CartTest.shapes", "CartTest.Parsing.reads",
    }  # fmt: skip
    found = await explained(shop, f"{TEST_FILE}::shapes")
    text = str(found["value"])
    for value in (
        'tree = {"a": 1, "b": 2}', 'fixed = {"k": [1, 2]}', 'frozen = ["q"]', "price = 12.50",
        "color = CartTest.Color.GREEN", "point = CartTest.Point{x=1, y=2}",
    ):  # fmt: skip
        assert value in text, text


async def test_what_was_caught_on_the_way_and_causes_are_named(shop: Path) -> None:
    found = await explained(shop, f"{TEST_FILE}::Parsing::reads")
    text = str(found["value"])
    assert text.startswith("StringIndexOutOfBoundsException: "), text
    assert "[src/main/java/shop/Cart.java:33 in Cart.parsed: return text.charAt(5);]" in text
    assert (
        'swallowed on the way: NumberFormatException: For input string: "x" at src/main/java/shop/Cart.java:31' in text
    )
    assert found["suspects"][0]["location"] == "src/main/java/shop/Cart.java:33"
    found = await explained(shop, f"{TEST_FILE}::async", budget=0)
    text = str(found["value"])
    assert text.startswith("ExecutionException: "), text
    assert f'caused by NumberFormatException: For input string: "x1" at {TEST_FILE}:54' in text


def compiled(bank: Path) -> str:
    """The class path of the tests, compiled."""
    path = ":".join(["classes", *(str(jar) for jar in JUNIT_4)])
    build = [str(bank / name) for name in ("Account.java", "AccountTest.java")]
    subprocess.run(["javac", "-g", "-cp", path, "-d", str(bank / "classes"), *build], check=True)
    return path


@pytest.mark.parametrize("target", ["AccountTest.java::takes", "CLASSES org.junit.runner.JUnitCore AccountTest"])
async def test_a_test_of_junit_4(bank: Path, target: str) -> None:
    if target.startswith("CLASSES"):
        target = target.replace("CLASSES", f"java -cp {compiled(bank)}")
    found = await explained(bank, target)
    text = str(found["value"])
    assert "IllegalArgumentException: too much  [Account.java:15 in Account.take: " in text
    assert 'values at Account.java:15 in Account.take: amount = 3, this = Account{left=10, log=["put 10"]}' in text
    taken = [each["location"] for each in found["suspects"][:2]]
    assert sorted(taken) == ["Account.java:14", "Account.java:15"]
    missed = await explained(bank, "AccountTest.java::refuses", budget=0)
    assert "[AccountTest.java:22 in AccountTest.refuses: account.take(30);]" in str(missed["value"])


async def test_maven_runs_its_own_tests(shop: Path) -> None:
    require(SUREFIRE, "apt-get install maven libsurefire-java libmaven-compiler-plugin-java")
    write(shop / "pom.xml", POM)
    options = f"-q -o -Dmaven.repo.local={MAVEN_REPOSITORY}"
    found = await explained(shop, f"mvn {options} test -Dtest=CartTest#table")
    text = str(found["value"])
    assert text.startswith("AssertionFailedError: expected: <120> but was: <-150>"), text
    assert "percent = 20, expected = 120" in text
    assert found["suspects"][0]["location"] == "src/main/java/shop/Cart.java:19"
    write(shop / "src/main/java/shop/Cart.java", CART.replace("return whole - off;", "return whole - of;"))
    refused = await explained(shop, f"mvn {options} test -Dtest=CartTest#table")
    text = str(refused["value"])
    assert text.startswith("The tests do not compile: "), text
    assert "[src/main/java/shop/Cart.java:26: return whole - of;]" in text


async def test_a_program_that_throws_has_its_values(tmp_path: Path) -> None:
    write(tmp_path / "Main.java", MAIN)
    found = await explained(tmp_path, "java Main.java coffee")
    text = str(found["value"])
    assert text.startswith("NullPointerException: "), text
    assert 'values at Main.java:6 in Main.total: stock = {"tea": 3}, name = "coffee"' in text
    fine = await explained(tmp_path, "Main.java tea")
    assert fine["outcome"] == "passed"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a JDK alone."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("java", "javac"):
        (folder / name).symlink_to(Path(shutil.which(name) or "").resolve())
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def refused(folder: Path, target: str) -> dict[str, Any]:
    async with opened(folder) as called:
        return await called.send("explain", target=target, timeout=240, budget=0)


async def test_what_cannot_be_run_says_what_to_do(shop: Path, tools: Path) -> None:
    found = await refused(shop, f"{TEST_FILE}::discount")
    assert "CartTest.discounts" in found["instruction"]
    found = await refused(shop, "mvn -q test")
    assert found["error"]["code"] == "ADAPTER_NOT_FOUND"
    assert found["instruction"].endswith("apt-get install maven")
    (tools / "javac").unlink()
    found = await refused(shop, f"{TEST_FILE}::discounts")
    assert found["error"]["code"] == "ADAPTER_NOT_FOUND"
    assert "default-jdk-headless" in found["instruction"]
