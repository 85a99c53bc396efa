"""A model is chosen by what a person writes for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.models import ModelOptions, model_options, open_model
from trysquare.models.base import Prices


@pytest.mark.parametrize("spec", ["", "gpt", "openai:", "cloud:x", ":x"])
def test_an_unknown_model_is_refused_with_the_supported_forms(spec: str) -> None:
    with pytest.raises(ToolError) as caught:
        open_model(spec)
    assert f"`{spec}`" in caught.value.message
    assert "openai:NAME@URL" in str(caught.value.instruction)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_an_address_without_its_scheme_is_refused(kind: str) -> None:
    with pytest.raises(ToolError, match="`localhost:8080`") as caught:
        open_model(f"{kind}:m@localhost:8080")
    assert "http://" in str(caught.value.instruction)


async def test_a_local_model_that_is_not_installed_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        async with open_model("local:smollm2-135m", env={"XDG_DATA_HOME": str(tmp_path)}):
            pass
    assert caught.value.code == ErrorCode.MODEL_NOT_INSTALLED
    assert "trysquare models" in str(caught.value.instruction)


async def test_a_misspelt_local_model_is_refused_with_the_nearest() -> None:
    with pytest.raises(ToolError, match="`smollm2-135m`"):
        async with open_model("local:smolm2-135m"):
            pass


def test_options_are_read_as_settings_have_them() -> None:
    assert model_options(threads=2, prompt_price=None, completion_price=None) == ModelOptions(threads=2)
    assert model_options(completion_price=3.0).prices == Prices(prompt=0.0, completion=3.0)
