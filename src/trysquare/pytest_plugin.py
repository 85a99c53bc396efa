"""pytest plugin: a client of your tools, a scripted person, and `async def` tests.

Nothing but pytest is imported until a test asks for a fixture. The names `client` and `person` exist only where
`trysquare_tools` is set, since other plugins have a `client` too; the long names always do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trysquare.client import Client
    from trysquare.testing import Person

_TOOLS, _VERSIONS = "trysquare_tools", "trysquare_versions"
_CLIENT: pytest.StashKey[Client] = pytest.StashKey()
_PERSON: pytest.StashKey[Person] = pytest.StashKey()
_MARKER = (
    "trysquare(tools, version=..., overrides=...): the tools of the `client` fixture, as a source or an object, its "
    "protocol, and the values that stand for their dependencies"
)
_NO_TOOLS = (
    "Which tools does `client` serve? Set `trysquare_tools` in pytest's configuration, such as `server.py`, mark the "
    'test with @pytest.mark.trysquare("server.py"), or define a fixture `trysquare_tools` that returns them.'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_TOOLS, "tools of the `client` fixture: server.py, server.py:tools or package.module", default="")
    parser.addini(_VERSIONS, "protocol versions to run each test of `client` in", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getini(_TOOLS):
        config.pluginmanager.register(_ShortNames(), "trysquare-short-names")


class _ShortNames:
    """The fixtures under names that a test likes to read."""

    @pytest.fixture
    def client(self, trysquare_client: Client) -> Client:
        """A client of the project's tools, connected while an `async def` test runs."""
        return trysquare_client

    @pytest.fixture
    def person(self, trysquare_person: Person) -> Person:
        """Whoever answers the questions that tools ask: `person.approve()`, `person.answer({...})`."""
        return trysquare_person


@pytest.fixture
def trysquare_tools(request: pytest.FixtureRequest) -> Any:
    """The tools under test: those of the marker, or of `trysquare_tools` in pytest's configuration."""
    marker = request.node.get_closest_marker("trysquare")
    named = marker.args[0] if marker is not None and marker.args else request.config.getini(_TOOLS)
    if not named:
        pytest.fail(_NO_TOOLS, pytrace=False)
    if not isinstance(named, str):
        return named
    from trysquare.core.errors import ConfigurationError
    from trysquare.sources import load_tools

    try:
        return load_tools(named, project=request.config.rootpath)
    except ConfigurationError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def trysquare_version(request: pytest.FixtureRequest) -> str | None:
    """The protocol version; None for the newest."""
    marker = request.node.get_closest_marker("trysquare")
    return None if marker is None else marker.kwargs.get("version")


@pytest.fixture
def trysquare_person(request: pytest.FixtureRequest) -> Person:
    """A scripted human at the other end, who answers as the test says."""
    from trysquare.testing import Person

    person = request.node.stash[_PERSON] = Person()
    return person


@pytest.fixture
def trysquare_client(
    request: pytest.FixtureRequest, trysquare_tools: Any, trysquare_person: Person, trysquare_version: str | None
) -> Generator[Client]:
    """A client of the tools in memory, with every middleware and consent."""
    from trysquare.client import Client
    from trysquare.testing import override

    client = Client(trysquare_tools, elicitation_handler=trysquare_person, protocol_version=trysquare_version)
    request.node.stash[_CLIENT] = client
    # The nearest marker wins for each function.
    markers = reversed(list(request.node.iter_markers("trysquare")))
    overrides = {name: value for each in markers for name, value in each.kwargs.get("overrides", {}).items()}
    if not overrides:
        yield client
        return
    with override(trysquare_tools, overrides):
        yield client


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once in each configured protocol version."""
    versions = metafunc.config.getini(_VERSIONS)
    own = next(metafunc.definition.iter_markers("trysquare"), None)
    if versions and "trysquare_version" in metafunc.fixturenames and not (own is not None and "version" in own.kwargs):
        metafunc.parametrize("trysquare_version", versions)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Connect the client around an `async def` test, in whichever event loop runs it."""
    client = item.stash.get(_CLIENT, None)
    if client is None or not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        return (yield)
    test = item.obj
    item.obj = _connected(test, client)
    try:
        result = yield
    finally:
        item.obj = test
    item.stash[_PERSON].require_all_asked()
    return result


def _connected(test: Callable[..., Any], client: Client) -> Callable[..., Any]:
    @functools.wraps(test)
    async def connected(*args: Any, **kwargs: Any) -> Any:
        async with client:
            return await test(*args, **kwargs)

    return connected


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test that no other plugin runs: anyio's and pytest-asyncio's have been asked before."""
    is_ours = _CLIENT in pyfuncitem.stash or bool(pyfuncitem.config.getini(_TOOLS))
    if not is_ours or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    import asyncio

    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}))
    return True
