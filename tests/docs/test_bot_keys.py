"""The reference of a bot's files: fresh, complete, and with examples that are read as they stand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tests.docs.bot_keys import EXAMPLES, PAGE, page
from trysquare.bots.definition import files


def test_the_page_is_what_the_models_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.bot_keys"


def test_every_model_of_a_file_has_its_section() -> None:
    bases = {files.Open, files.Closed, files.ScannerEntry}
    models = {each for each in vars(files).values() if isinstance(each, type) and issubclass(each, BaseModel)}
    assert models - bases - {BaseModel} == {model for model, _, _ in EXAMPLES}


@pytest.mark.parametrize(("model", "heading", "example"), EXAMPLES, ids=lambda each: getattr(each, "__name__", None))
def test_an_example_is_read(model: type[BaseModel], heading: str, example: dict[str, Any]) -> None:
    read = model.model_validate(example)
    assert heading
    assert not read.model_extra
