"""A dialogue is recorded and played again, and nothing but that dialogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.models.constraints import OFFER
from trysquare import ErrorCode, ToolError
from trysquare.models import CallRequest, Message, ModelRequest, ModelResponse, Usage, open_model
from trysquare.models.replay import ReplayModel, recording

FIRST = Message(role="user", text="Read /home/me/project/a.py.")
CALL = CallRequest(id="call_1", name="read", arguments={"path": "/home/me/project/a.py"})


class Told:
    """A model whose answers are given beforehand."""

    name = "told"
    context_tokens = 1000

    def __init__(self, *answers: ModelResponse) -> None:
        self._answers = list(answers)

    def count(self, text: str) -> int:
        return len(text.split())

    async def answer(self, request: ModelRequest) -> ModelResponse:
        return self._answers.pop(0)


ANSWERS = (
    ModelResponse(
        text="",
        calls=(CALL,),
        stop="calls",
        constrained_by="native",
        usage=Usage(prompt_tokens=3),
        choice={"read": 1.0},
    ),
    ModelResponse(text="Done."),
)


def requests() -> tuple[ModelRequest, ModelRequest]:
    """The two requests of the dialogue."""
    first = ModelRequest(messages=(FIRST,), tools=(OFFER,))
    after = (FIRST, Message(role="assistant", calls=(CALL,)), Message(role="tool", text="x", answers="call_1"))
    return first, ModelRequest(messages=after, tools=(OFFER,))


async def record(path: Path, **more: dict[str, str]) -> None:
    """Write the dialogue to a file."""
    async with recording(Told(*ANSWERS), path, **more) as model:
        for request in requests():
            await model.answer(request)


async def test_a_recorded_dialogue_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path)
    async with open_model(f"replay:{path}") as model:
        assert (model.name, model.context_tokens) == ("told", 1000)
        assert tuple([await model.answer(request) for request in requests()]) == ANSWERS


async def test_the_file_tells_each_message_once(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path)
    assert path.read_text(encoding="utf-8").count("Read /home/me") == 1


async def test_a_request_that_differs_is_an_error_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path)
    async with open_model(f"replay:{path}") as model:
        with pytest.raises(ToolError) as caught:
            await model.answer(ModelRequest(messages=(Message(role="user", text="Read b.py."),), tools=(OFFER,)))
    assert caught.value.code == ErrorCode.MODEL_REFUSED
    first, _, difference = caught.value.message.partition("\n")
    assert f"request 1 of {path}" in first
    assert difference == snapshot("""\
--- recorded
+++ asked now
@@ -1,2 +1,8 @@
 {
+ "messages": [
+  {
+   "role": "user",
+   "text": "Read b.py."
+  }
+ ],
  "tools": [
@@ -22,8 +28,2 @@
  ],
- "messages": [
-  {
-   "role": "user",
-   "text": "Read /home/me/project/a.py."
-  }
- ],
  "held": false,\
""")


async def test_an_answer_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path)
    async with open_model(f"replay:{path}") as model:
        for request in requests():
            await model.answer(request)
        with pytest.raises(ToolError, match="All 2 responses"):
            await model.answer(requests()[0])


async def test_a_dialogue_can_be_taken_up_in_its_middle(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path)
    async with open_model(f"replay:{path}") as model:
        assert (await model.answer(requests()[1])).text == "Done."


async def test_a_folder_of_one_machine_is_another_on_another(tmp_path: Path) -> None:
    path = tmp_path / "dialogue.jsonl"
    await record(path, spelling={"/home/me/project": "$PROJECT"})
    assert "/home/me" not in path.read_text(encoding="utf-8")
    elsewhere = ReplayModel(path, {"/elsewhere": "$PROJECT"})
    moved = ModelRequest(messages=(Message(role="user", text="Read /elsewhere/a.py."),), tools=(OFFER,))
    answer = await elsewhere.answer(moved)
    assert answer.calls[0].arguments == {"path": "/elsewhere/a.py"}


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"dialogue":2}', '{"dialogue":1}\n{"request":{}}'])
async def test_a_file_that_is_no_recording_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dialogue.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ToolError, match=r":\d "):
        async with open_model(f"replay:{path}"):
            pass


async def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="No such file"):
        async with open_model(f"replay:{tmp_path / 'none'}"):
            pass
