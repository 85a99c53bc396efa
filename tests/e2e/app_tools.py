"""Tools with pages: a chart, a form, a page of the author's own, and one that needs consent."""

from __future__ import annotations

from trysquare import AppPage, Consent, Tools

tools = Tools("shop")
GREETING = """<!doctype html><title>Greeting</title><p data-testid="greeting">nobody yet</p>
<script>app.onResult((r) => { document.querySelector("p").textContent = r.structuredContent.result; });</script>"""


@tools.app(AppPage.chart("bar", x="month", y="sold"))
def sales(year: str) -> list[dict[str, str | int]]:
    """Sales of a year by month."""
    return [{"month": month, "sold": sold} for month, sold in (("Jan", 3), ("Feb", 8), ("Mar", 5))]


@tools.app
def order(article: str, count: int = 1) -> str:
    """Order an article."""
    return f"{count} x {article}"


@tools.app(GREETING)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


@tools.tool(consent=Consent(question="Delete {path}?"), destructive=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"
