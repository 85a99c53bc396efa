"""A model is chosen by what a person writes for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.choosing import open_model
from trysquare.models.options import ModelOptions, Prices, model_options


@pytest.mark.parametrize("spec", ["", "gpt", "openai:", "cloud:x", ":x"])
def test_a_name_of_no_model_is_told_with_the_forms_there_are(spec: str) -> None:
    with pytest.raises(ToolError) as caught:
        open_model(spec)
    assert f"`{spec}` names no model." in caught.value.message
    assert "openai:NAME@URL" in str(caught.value.instruction)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_an_address_without_its_scheme_is_told(kind: str) -> None:
    with pytest.raises(ToolError, match="`localhost:8080` is no address") as caught:
        open_model(f"{kind}:m@localhost:8080")
    assert "http://" in str(caught.value.instruction)


async def test_a_local_model_that_is_not_installed_is_told_with_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        async with open_model("local:smollm2-135m", env={"XDG_DATA_HOME": str(tmp_path)}):
            pass
    assert caught.value.code == ErrorCode.MODEL_NOT_INSTALLED
    assert "trysquare models" in str(caught.value.instruction)


async def test_a_misspelt_local_model_is_told_with_the_nearest() -> None:
    with pytest.raises(ToolError, match="The nearest is `smollm2-135m`"):
        async with open_model("local:smolm2-135m"):
            pass


def test_options_are_read_as_settings_have_them() -> None:
    assert model_options(threads=2, prompt_price=None, completion_price=None) == ModelOptions(threads=2)
    assert model_options(completion_price=3.0).prices == Prices(prompt=0.0, completion=3.0)
