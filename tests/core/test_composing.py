"""Tools in parts: one `Tools` mounted in another one, and parts that are switched off, through a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trysquare import CallContext, Client, DeclarationError, Text, ToolError, Tools


def stock() -> Tools:
    tools = Tools("stock")

    @tools.tool(tags=frozenset({"safe"}))
    def count(item: str) -> int:
        """Count."""
        return len(item)

    @tools.tool
    async def twice(item: str, context: CallContext) -> int:
        """Count twice."""
        found = await context.call_tool("count", {"item": item})
        assert found.value is not None
        return 2 * found.value

    @tools.tool
    def fail() -> str:
        """Fail."""
        raise ToolError("no", next={"tool": "count", "arguments": {"item": "tea"}})

    @tools.resource("stock://all", tags=frozenset({"safe"}))
    def everything() -> str:
        """All."""
        return "tea"

    @tools.resource("stock://{item}")
    def one(item: str) -> str:
        """One."""
        return item

    @tools.prompt(tags=frozenset({"safe"}))
    def order(item: str) -> str:
        """Order."""
        return f"Order {item}."

    return tools


async def names(tools: Tools) -> set[str]:
    """What a client sees of the tools, beside what every server adds."""
    async with Client(tools) as client:
        listed = {each.name for each in await client.list_tools()} - {"read_more"}
        prompts = {each.name for each in await client.list_prompts()}
        resources = {each.uri for each in await client.list_resources()}
        return listed | prompts | {uri for uri in resources if uri.startswith("stock:")}


async def test_mounted_tools_and_prompts_have_the_prefix() -> None:
    shop = Tools("shop")
    shop.mount(stock(), "stock")
    assert await names(shop) == {"stock_count", "stock_twice", "stock_fail", "stock_order", "stock://all"}
    async with Client(shop) as client:
        assert (await client.call_tool("stock_count", {"item": "tea"})).data == 3
        assert (await client.read_resource("stock://milk")).text == "milk"


async def test_mounted_tools_find_each_other_by_the_names_they_know() -> None:
    street, shop = Tools("street"), Tools("shop")
    shop.mount(stock(), "stock")
    street.mount(shop, "shop")
    async with Client(street) as client:
        assert (await client.call_tool("shop_stock_twice", {"item": "tea"})).data == 6
        failed = await client.call_tool("shop_stock_fail", raise_on_error=False)
        assert failed.next == {"tool": "shop_stock_count", "arguments": {"item": "tea"}}
        wrong = await client.call_tool("shop_stock_count", {"itm": "tea"}, raise_on_error=False)
        assert wrong.next == {"tool": "shop_stock_count", "arguments": {"item": "tea"}}


async def test_a_mount_brings_its_lifespans_and_middleware_and_what_is_declared_later() -> None:
    shop, part, order = Tools("shop"), Tools("part"), list[str]()
    shop.mount(part, "part")

    @part.lifespan
    def opened() -> Iterator[None]:
        order.append("open")
        yield
        order.append("closed")

    part.tool(lambda: "here", name="late")

    async with Client(shop) as client:
        assert (await client.call_tool("part_late")).text == "here"
    assert order == ["open", "closed"]


async def test_two_mounts_of_one_name_are_refused_and_so_is_a_circle() -> None:
    shop, one, other = Tools("shop"), stock(), Tools("other")
    other.tool(lambda: "x", name="count")
    shop.mount(one)
    shop.mount(other)
    with pytest.raises(DeclarationError, match="`count`"):
        shop.toolset()
    with pytest.raises(DeclarationError, match="themselves"):
        one.mount(shop)


async def test_what_is_disabled_is_neither_listed_nor_callable() -> None:
    tools = stock()
    tools.disable("fail", "stock://all", "order")
    assert await names(tools) == {"count", "twice"}
    async with Client(tools) as client:
        with pytest.raises(ToolError, match="Unknown tool"):
            await client.call_tool("fail")
        with pytest.raises(ToolError):
            await client.get_prompt("order", {"item": "tea"})


async def test_tags_choose_tools_prompts_and_resources_alike() -> None:
    tools = stock()
    tools.enable(tags={"safe"}, only=True)
    assert await names(tools) == {"count", "order", "stock://all"}
    tools.disable("count")
    tools.enable("twice")
    assert await names(tools) == {"twice", "order", "stock://all"}
    async with Client(tools) as client:
        listed = {each.name for each in await client.list_prompts()}
    assert listed == {"order"}


def test_a_name_that_nothing_has_is_refused() -> None:
    tools = stock()
    tools.disable("fial")
    with pytest.raises(DeclarationError, match="Did you mean `fail`"):
        tools.toolset()
    with pytest.raises(DeclarationError, match="Say what to disable"):
        tools.disable()


async def test_a_tool_renders_a_prompt_of_its_server() -> None:
    tools = stock()

    @tools.tool
    async def ordered(item: str, context: CallContext) -> str:
        """Order it."""
        [message] = await context.get_prompt("order", {"item": item})
        assert isinstance(message.content, Text)
        return message.content.text

    @tools.tool
    async def wrong(context: CallContext) -> str:
        """Order what is not there."""
        await context.get_prompt("odrer")
        return "never"

    async with Client(tools) as client:
        assert (await client.call_tool("ordered", {"item": "tea"})).text == "Order tea."
        with pytest.raises(ToolError, match="Did you mean `order`"):
            await client.call_tool("wrong")
