"""Apps: pages that clients show beside a tool (MCP Apps, the extension `io.modelcontextprotocol/ui`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ToolError
from trysquare.core.hints import location_of
from trysquare.core.json import JsonObject
from trysquare.core.metadata import APP_MIME_TYPE, ToolMetadata
from trysquare.core.resources import ListedExtras, Resource
from trysquare.core.text import closest_names, encodable
from trysquare.core.tool import Tool

SCHEME: Final = "ui://"
META_KEY: Final = "ui"
"""The key of `_meta` that links a tool to its page, and says what a page needs."""
APPROVAL_PAGE: Final = "ui://trysquare/approval"
"""The page of tools that need consent: what the call is, and how it stands."""
MAX_PAGE: Final = 4 * 1024 * 1024
"""Bytes of a page."""

Audience: TypeAlias = Literal["model", "app"]
Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
ChartKind: TypeAlias = Literal["bar", "line"]

_PAGES: Final = Path(__file__).parent / "pages"
_ORIGIN: Final = re.compile(r"(?:https|wss)://(?:\*\.)?[A-Za-z0-9.-]+(?::\d{1,5})?")
_LOOPBACK: Final = re.compile(r"(?:http|ws)://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_HEAD: Final = re.compile(r"<head(?:\s[^>]*)?>|<html(?:\s[^>]*)?>|<!doctype[^>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AppPage:
    """A page for a tool: a file, a text that begins with `<`, `AppPage.form()` or `AppPage.chart()`.

    It may load and reach what it names here, and nothing else; clients hold it to that.
    """

    source: str | Path
    connect: Sequence[str] = field(default=(), kw_only=True)
    """Origins that its scripts may send requests to: `https://api.example.com`."""
    load: Sequence[str] = field(default=(), kw_only=True)
    """Origins of its scripts, styles, pictures and fonts."""
    frames: Sequence[str] = field(default=(), kw_only=True)
    """Origins of pages inside it."""
    base: Sequence[str] = field(default=(), kw_only=True)
    """Origins that its `<base>` may name."""
    permissions: Iterable[Permission] = field(default=(), kw_only=True)
    border: bool | None = field(default=None, kw_only=True)
    """Whether the client draws a border around it; None leaves that to the client."""
    domain: str | None = field(default=None, kw_only=True)
    """An origin of its own, in the form that the client wants."""
    script: bool = field(default=True, kw_only=True)
    """Whether the page gets the object `app`. False for one that brings its own library for MCP Apps."""
    settings: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """Values that the page's scripts read as `settings`; `tool`, `title` and `schema` are added."""

    def __post_init__(self) -> None:
        for name in ("connect", "load", "frames", "base"):
            for origin in (given := getattr(self, name)):
                if isinstance(given, str) or not (_ORIGIN.fullmatch(origin) or _LOOPBACK.fullmatch(origin)):
                    shown = given if isinstance(given, str) else origin
                    raise DeclarationError(
                        f"`{name}` of a page cannot be `{shown}`. Give a list of origins such as "
                        "`https://api.example.com` or `https://*.example.com`."
                    )
        for name in self.permissions:
            if name not in get_args(Permission):
                raise DeclarationError(
                    f"A page cannot ask for `{name}`: permissions are {', '.join(get_args(Permission))}."
                )

    @classmethod
    def form(cls) -> AppPage:
        """The form of the tool: a field for each argument, filled in with those of the call, and a button to run it."""
        return _own("form", {}, border=True)

    @classmethod
    def chart(
        cls,
        kind: ChartKind = "bar",
        *,
        x: str | None = None,
        y: str | Sequence[str] = (),
        title: str | None = None,
    ) -> AppPage:
        """A chart of what the tool returns: a list of objects, of numbers, or an object of numbers.

        `x` names the field below the chart, `y` those that are drawn; without them the first text and all numbers.
        """
        if kind not in get_args(ChartKind):
            near = closest_names(kind, get_args(ChartKind))
            hint = f" Did you mean `{near[0]}`?" if near else f" It is one of {', '.join(get_args(ChartKind))}."
            raise DeclarationError(f"There is no chart of the kind `{kind}`.{hint}")
        columns = [y] if isinstance(y, str) else list(y)
        return _own("chart", {"kind": kind, "x": x, "y": columns, "title": title}, border=False)

    def meta(self) -> JsonObject:
        """What `_meta.ui` of the resource says."""
        origins = {
            "connectDomains": list(self.connect),
            "resourceDomains": list(self.load),
            "frameDomains": list(self.frames),
            "baseUriDomains": list(self.base),
        }
        about: JsonObject = {
            "csp": {name: given for name, given in origins.items() if given},
            "permissions": {name: {} for name in self.permissions},
            "domain": self.domain,
        }
        found = {name: value for name, value in about.items() if value}
        return found if self.border is None else {**found, "prefersBorder": self.border}

    def html(self, about: Mapping[str, Any]) -> str:
        """The page as it is sent. A file is read each time, so that an edit shows at once."""
        text = self.source if isinstance(self.source, str) else _read(self.source)
        if not self.script:
            return text
        values = {**about, **(self.settings or {})}
        # `<` would let a value end the script.
        written = json.dumps(values, ensure_ascii=True).replace("<", "\\u003c")
        script = f"<script>\n{_part('runtime.js')}const settings = {written};\n</script>"
        found = _HEAD.search(text)
        at = 0 if found is None else found.end()
        return f"{text[:at]}{script}{text[at:]}"


def _own(name: str, settings: Mapping[str, Any], *, border: bool) -> AppPage:
    """One of the pages that come with Trysquare: a single file, with nothing from elsewhere."""
    html = _part("page.html").replace("/* style */", _part("style.css")).replace("<main></main>", _part(f"{name}.html"))
    html = html.replace("/* script */", f"{_part('result.js')}\n{_part(f'{name}.js')}")
    return AppPage(html, settings=settings, border=border)


def framed_page(settings: Mapping[str, Any], *, permissions: Iterable[Permission] = (), **reach: Any) -> AppPage:
    """The page of another server in a frame: labelled, with its messages checked. `settings` has both."""
    written = encodable(json.dumps(settings, ensure_ascii=False)).replace("<", "\\u003c")
    script = f"const settings = {written};\n{_part('framed.js')}"
    html = _part("framed.html").replace("/* script */", script)
    return AppPage(html, permissions=permissions, border=True, script=False, **reach)


@cache
def _part(name: str) -> str:
    return (_PAGES / name).read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolError(f"The page `{path.name}` cannot be read: {error.strerror}.") from None
    if len(data) > MAX_PAGE:
        raise ToolError(f"The page `{path.name}` has {len(data):,} bytes; {MAX_PAGE:,} is the limit.")
    return data.decode("utf-8", "replace")


def page_of(given: AppPage | str | Path | None, function: object) -> AppPage:
    """The page that an author named: a relative file is beside the one that declares it."""
    page = given if isinstance(given, AppPage) else AppPage.form() if given is None else AppPage(given)
    if isinstance(page.source, str) and page.source.lstrip().startswith("<"):
        return page
    path = Path(page.source).expanduser()
    if not path.is_absolute():
        place, _, _ = (location_of(function) or "").rpartition(":")
        path = Path(place).parent / path
    if not path.is_file():
        raise DeclarationError(
            f"There is no page `{path}`. Give the path of an HTML file, or a text that begins with `<`."
        )
    return replace(page, source=path)


def page_address(tool: str, module: str) -> str:
    """Where the page of a tool is: `ui://<server or module>/<tool>`."""
    return f"{SCHEME}{_UNSAFE.sub('-', module).strip('-') or 'tools'}/{tool}"


def tool_meta(address: str, audience: Sequence[Audience]) -> JsonObject:
    """What `_meta.ui` of a tool says."""
    named = list(audience)
    if isinstance(audience, str) or not named or any(one not in get_args(Audience) for one in named):
        raise DeclarationError(f'`audience` cannot be {audience!r}: it is ["model", "app"] or one of the two.')
    link: JsonObject = {"resourceUri": address}
    return link if len(set(named)) == len(get_args(Audience)) else {**link, "visibility": named}


def page_resource(page: AppPage, address: str, tool: Tool) -> Resource:
    """The resource that a client reads to show the page of a tool."""
    about = {"tool": tool.name, "title": tool.title, "schema": tool.input_schema}
    return html_resource(
        address, name=f"{tool.name}-app", title=tool.title, page=page, about=about, description=f"Page of `{tool.name}`"
    )


def html_resource(
    address: str,
    *,
    name: str,
    page: AppPage,
    about: Mapping[str, Any],
    title: str | None = None,
    description: str | None = None,
) -> Resource:
    """A page at an address."""
    meta = page.meta()

    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        shown = {META_KEY: meta} if meta else None
        return (ResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=page.html(about), meta=shown),)

    extra = ListedExtras(meta={META_KEY: meta} if meta else {})
    return Resource(
        uri=address, name=name, title=title, description=description, read=read, mime_type=APP_MIME_TYPE, extra=extra
    )


@cache
def approval_resource() -> Resource:
    """The page of calls that need consent. It shows them, and decides nothing."""
    return html_resource(
        APPROVAL_PAGE, name="approval", title="A call that needs agreement", page=_own("approval", {}, border=True),
        about={}, description="What a call that needs consent is, and how it stands",
    )  # fmt: skip


def has_page(metadata: ToolMetadata) -> bool:
    """Whether clients may show a page for a tool: one of its own, or that of calls which need consent."""
    return metadata.consent is not None or META_KEY in metadata.meta
