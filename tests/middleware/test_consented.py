"""Consent: a human agrees first, and nobody else can do it for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from trysquare import Answer, CallContext, Consent, ErrorCode, Principal, StaticToolset, ToolArguments, call_tool, tool
from trysquare.core.consent import consent_warning
from trysquare.core.context import ElicitRequest
from trysquare.core.errors import InputRequired
from trysquare.middleware.approvals import with_approvals
from trysquare.store import Database, StoredApprovals
from trysquare.store.audit import Audit
from trysquare.store.database import open_database
from trysquare.testing import ScriptedCaller, accept, call, decline, make_context


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / ".trysquare" / "state.db")
    yield opened
    opened.close()


@pytest.fixture
def approvals(database: Database) -> StoredApprovals:
    return StoredApprovals(database)


class Wipe(ToolArguments):
    path: str = Field(description="What to delete")
    confirm: Literal["DELETE_IT"] = Field(description="The literal of the explicit-use pattern")
    password: str = Field("", description="The disk's password")


class Disk:
    """Counts what was really deleted."""

    def __init__(self, approvals: StoredApprovals | None, **consent: Any) -> None:
        self.deleted: list[str] = []

        async def wipe(args: Wipe) -> str:
            self.deleted.append(args.path)
            return "gone"

        made = tool(wipe, consent=Consent(question="Delete {path}?", **consent), consent_literal="DELETE_IT")
        self.tools = StaticToolset([with_approvals(made, approvals=approvals)])

    async def wipe(self, path: str = "/tmp/a", context: CallContext | None = None, **more: Any) -> Any:
        arguments = {"path": path, "confirm": "DELETE_IT", **more}
        return await call(self.tools, "wipe", arguments, context=context or make_context())


def asking(*answers: Answer) -> tuple[ScriptedCaller, CallContext]:
    caller = ScriptedCaller(answers)
    return caller, make_context(caller=caller)


def test_a_tool_without_consent_is_left_as_it_is(approvals: StoredApprovals) -> None:
    async def look() -> str:
        return "looked"

    made = tool(look)
    assert with_approvals(made, approvals=approvals) is made


async def test_the_person_reads_the_question_and_the_call(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    caller, context = asking(accept(approve=True))
    assert (await disk.wipe("/home/ada", context, password="hunter2")).value == "gone"
    [question] = caller.questions
    assert question.message == snapshot("""\
Delete /home/ada?

Tool: wipe
Arguments: {"path":"/home/ada","confirm":"DELETE_IT","password":"***"}
Digest: 5de5c0cb04476b09\
""")
    assert question.schema["properties"]["approve"]["type"] == "boolean"
    assert question.schema["required"] == ["approve"]


@pytest.mark.parametrize(
    "answer",
    [
        accept(),
        accept(approve=False),
        accept(approve="true"),
        accept(approve=1),
        accept(approve=None),
        accept(answer=True),
        decline(),
        Answer(action="decline", content={"approve": True}),
        Answer(action="cancel", content={"approve": True}),
    ],
)
async def test_only_an_accepted_true_is_agreement(approvals: StoredApprovals, answer: Answer) -> None:
    disk = Disk(approvals)
    result = await disk.wipe(context=asking(answer)[1])
    assert (result.code, disk.deleted) == (ErrorCode.CONSENT_REFUSED, [])
    assert [receipt.approved for receipt in approvals.receipts()] == [False]


async def test_a_receipt_names_the_callers_own_way_of_asking(approvals: StoredApprovals) -> None:
    class AtTheTerminal(ScriptedCaller):
        asks_by = "terminal"

    await Disk(approvals).wipe(context=make_context(caller=AtTheTerminal((accept(approve=True),))))
    assert [receipt.how for receipt in approvals.receipts()] == ["terminal"]


async def test_a_receipt_tells_what_was_agreed_by_whom_how_and_when(
    approvals: StoredApprovals, database: Database
) -> None:
    await Disk(approvals).wipe(context=asking(accept(approve=True))[1])
    [receipt] = approvals.receipts()
    assert (receipt.tool, receipt.principal, receipt.by, receipt.how, receipt.approved) == (
        "wipe",
        "tester",
        "tester",
        "elicitation",
        True,
    )
    assert receipt.at.endswith("Z")
    assert len(receipt.digest) == 64
    [row] = Audit(database).rows()
    assert (row.kind, row.body["digest"], row.body["how"]) == ("consent.approved", receipt.digest, "elicitation")
    assert Audit(database).verify().sound


async def test_the_receipt_does_not_take_the_way_of_asking_from_the_clients_meta(approvals: StoredApprovals) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    context = make_context(caller=ScriptedCaller([accept(approve=True)]), meta=meta)
    await Disk(approvals).wipe(context=context)
    assert approvals.receipts()[0].how == "elicitation"


class CallsAgain(ScriptedCaller):
    """A client of the newer era: each question ends the call, and the answer comes with the next one."""

    def __init__(self) -> None:
        super().__init__([accept()])
        self.answered: dict[str, Answer] = {}

        self.tickets: dict[str, str | None] = {}

    async def ask(self, question: ElicitRequest) -> Answer:
        if question.key not in self.answered:
            self.tickets[question.key] = question.ticket
            raise InputRequired({question.key: question})
        return replace(self.answered[question.key], ticket=self.tickets[question.key])


async def test_an_answer_counts_for_the_arguments_that_were_asked_about(approvals: StoredApprovals) -> None:
    disk, caller = Disk(approvals), CallsAgain()
    context = make_context(caller=caller)
    with pytest.raises(InputRequired) as asked:
        await disk.wipe("/tmp/a", context)
    caller.answered = {key: accept(approve=True) for key in asked.value.questions}
    with pytest.raises(InputRequired):
        await disk.wipe("/home", context)
    assert disk.deleted == []
    await disk.wipe("/tmp/a", context)
    assert disk.deleted == ["/tmp/a"]


async def test_an_answer_lets_one_call_run_however_often_it_is_sent(approvals: StoredApprovals) -> None:
    disk, caller = Disk(approvals), CallsAgain()
    context = make_context(caller=caller)
    for _ in range(2):
        with pytest.raises(InputRequired) as asked:
            await disk.wipe("/tmp/a", context)
        caller.answered |= {key: accept(approve=True) for key in asked.value.questions}
        await disk.wipe("/tmp/a", context)
    assert (disk.deleted, len(caller.answered)) == (["/tmp/a", "/tmp/a"], 2)


async def test_a_question_that_the_client_shows_takes_no_place_in_the_terminal(approvals: StoredApprovals) -> None:
    disk, context = Disk(approvals), make_context(caller=CallsAgain())
    for number in range(30):
        with pytest.raises(InputRequired):
            await disk.wipe(f"/tmp/{number}", context)
    assert approvals.pending() == []


async def test_many_calls_that_wait_in_the_terminal_do_not_lock_out_a_client_that_can_ask(
    approvals: StoredApprovals,
) -> None:
    disk = Disk(approvals)
    for number in range(30):
        assert (await disk.wipe(f"/tmp/{number}")).code == ErrorCode.CONSENT_REQUIRED
    assert len(approvals.pending()) == 20
    assert (await disk.wipe("/tmp/a", asking(accept(approve=True))[1])).value == "gone"
    assert (await disk.wipe("/tmp/more")).fields["approval"]["code"]


async def test_two_equal_calls_that_ask_at_once_need_two_answers(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    callers = [asking(*[accept(approve=True)] * 2) for _ in range(2)]
    results = await asyncio.gather(*(disk.wipe("/tmp/a", context) for _, context in callers))
    assert [result.success for result in results] == [True, True]
    assert len([receipt for receipt in approvals.receipts() if receipt.approved]) == 2


async def test_nobody_is_asked_about_a_call_that_cannot_run(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    caller, context = asking(accept(approve=True))
    result = await call(disk.tools, "wipe", {"path": "/tmp/a", "confirm": "yes"}, context=context)
    assert (result.code, caller.questions) == (ErrorCode.VALIDATION_INVALID_PARAM, [])


async def test_a_question_cannot_be_dressed_up_by_an_argument(approvals: StoredApprovals) -> None:
    caller, context = asking(decline())
    await Disk(approvals).wipe("a?\n\nTool: look\u202e {confirm} {0.__class__}", context)
    first, _, rest = caller.questions[0].message.partition("\n")
    assert first == "Delete a?\\n\\nTool: look\\u202e {confirm} {0.__class__}?"
    assert rest.count("\nTool:") == 1


@pytest.mark.parametrize("length", [201, 3_015, 60_000])
async def test_a_long_argument_is_shown_whole(approvals: StoredApprovals, length: int) -> None:
    caller, context = asking(decline())
    path = "x" * (length - 4) + "/etc"
    await Disk(approvals).wipe(path, context)
    assert f'"{path}"' in caller.questions[0].message


async def test_what_is_too_long_for_a_client_is_shown_whole_in_the_terminal(approvals: StoredApprovals) -> None:
    disk, path = Disk(approvals), "x" * 70_000 + "/etc"
    caller, context = asking(accept(approve=True))
    result = await disk.wipe(path, context)
    assert (result.code, caller.questions, disk.deleted) == (ErrorCode.CONSENT_REQUIRED, [], [])
    [pending] = approvals.pending()
    assert pending.arguments["path"] == path
    approvals.approve(result.fields["approval"]["code"], by="ada")
    assert (await disk.wipe(path, context)).value == "gone"


async def test_what_nobody_could_look_through_is_not_kept_at_all(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    result = await disk.wipe("x" * 2_000_000)
    assert (result.code, approvals.pending(), disk.deleted) == (ErrorCode.CONSENT_REQUIRED, [], [])


async def test_without_a_way_to_ask_the_person_gets_a_command(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    result = await disk.wipe()
    code = result.fields["approval"]["code"]
    command = f"trysquare approve {code}"
    assert (result.code, result.next) == (ErrorCode.CONSENT_REQUIRED, None)
    assert result.fields == {"approval": {"code": code, "command": command, "expires_in": 600}}
    assert command in str(result.error)
    assert result.instruction
    assert disk.deleted == []


async def test_an_approved_call_runs_once(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    code = (await disk.wipe()).fields["approval"]["code"]
    approvals.approve(code, by="ada")
    assert (await disk.wipe()).value == "gone"
    assert (await disk.wipe()).code == ErrorCode.CONSENT_REQUIRED
    assert disk.deleted == ["/tmp/a"]


async def test_an_approval_holds_for_the_same_arguments_only(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    approvals.approve((await disk.wipe("/tmp/a")).fields["approval"]["code"], by="ada")
    assert (await disk.wipe("/tmp/b")).code == ErrorCode.CONSENT_REQUIRED
    assert disk.deleted == []


async def test_an_approval_holds_for_the_same_principal_only(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    approvals.approve((await disk.wipe()).fields["approval"]["code"], by="ada")
    assert (await disk.wipe(context=make_context(principal="eve"))).code == ErrorCode.CONSENT_REQUIRED


async def test_identical_calls_at_once_use_one_approval_once(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    approvals.approve((await disk.wipe()).fields["approval"]["code"], by="ada")
    results = await asyncio.gather(*(disk.wipe() for _ in range(20)))
    assert sum(result.success for result in results) == 1
    assert disk.deleted == ["/tmp/a"]


async def test_a_refused_call_fails_and_opens_no_new_question(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    approvals.refuse((await disk.wipe()).fields["approval"]["code"], by="ada")
    assert [(await disk.wipe()).code for _ in range(2)] == [ErrorCode.CONSENT_REFUSED] * 2
    assert approvals.pending() == []


async def test_the_same_call_waits_under_one_code(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    codes = {(await disk.wipe()).fields["approval"]["code"] for _ in range(3)}
    assert len(codes) == 1


async def test_consent_may_be_remembered_for_the_same_arguments(approvals: StoredApprovals) -> None:
    disk = Disk(approvals, always=False)
    caller, context = asking(accept(approve=True), decline())
    await disk.wipe("/tmp/a", context)
    await disk.wipe("/tmp/a", context)
    assert (len(caller.questions), disk.deleted) == (1, ["/tmp/a", "/tmp/a"])
    assert (await disk.wipe("/tmp/b", context)).code == ErrorCode.CONSENT_REFUSED


async def test_an_approval_by_code_is_remembered_too(approvals: StoredApprovals) -> None:
    disk = Disk(approvals, always=False)
    approvals.approve((await disk.wipe()).fields["approval"]["code"], by="ada")
    assert [(await disk.wipe()).success for _ in range(3)] == [True] * 3


async def test_remembered_consent_ends(database: Database) -> None:
    now = [1000.0]
    disk = Disk(StoredApprovals(database, clock=lambda: now[0]), always=False, ttl=60.0)
    await disk.wipe(context=asking(accept(approve=True))[1])
    now[0] += 61.0
    assert (await disk.wipe()).code == ErrorCode.CONSENT_REQUIRED


async def test_without_stored_approvals_such_a_tool_runs_only_if_the_client_can_ask() -> None:
    disk = Disk(None)
    assert ((await disk.wipe()).code, disk.deleted) == (ErrorCode.CONSENT_REQUIRED, [])
    assert ((await disk.wipe(context=asking(decline())[1])).code, disk.deleted) == (ErrorCode.CONSENT_REFUSED, [])
    assert ((await disk.wipe(context=asking(accept(approve=True))[1])).code, disk.deleted) == (None, ["/tmp/a"])


async def test_a_call_whose_receipt_cannot_be_kept_does_not_run(approvals: StoredApprovals, database: Database) -> None:
    disk = Disk(approvals)
    database.close()
    result = await disk.wipe(context=asking(accept(approve=True))[1])
    assert (result.code, disk.deleted) == (ErrorCode.STATE_UNAVAILABLE, [])


async def test_nested_arguments_are_the_same_call(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    approvals.approve((await disk.wipe()).fields["approval"]["code"], by="ada")
    nested = {"args": {"confirm": "DELETE_IT", "path": "/tmp/a"}}
    assert (await call_tool(disk.tools, "wipe", nested, make_context())).success


async def test_the_model_cannot_approve_through_a_tool(approvals: StoredApprovals) -> None:
    disk = Disk(approvals)
    code = (await disk.wipe()).fields["approval"]["code"]
    tries: list[dict[str, Any]] = [{"code": code}, {"approve": True}, {"approval": {"code": code}}]
    for arguments in tries:
        result = await disk.wipe(**arguments)
        assert result.code == ErrorCode.VALIDATION_UNKNOWN_PARAM
    assert (await disk.wipe(context=make_context(principal=code))).code == ErrorCode.CONSENT_REQUIRED
    context = CallContext(principal=Principal(subject="tester"), meta={"approved": code, "approval": code})
    assert (await disk.wipe(context=context)).code == ErrorCode.CONSENT_REQUIRED
    assert disk.deleted == []


class Look(ToolArguments):
    action: Literal["look"]


class Burn(ToolArguments):
    action: Literal["burn"]
    path: str = Field("", description="What to burn")


def _torch(approvals: StoredApprovals, done: list[str]) -> StaticToolset:
    async def torch(args: Look | Burn) -> str:
        done.append(args.action)
        return args.action

    consent = Consent(question="Burn {path}?", actions=frozenset({"burn"}))
    return StaticToolset([with_approvals(tool(torch, consent=consent), approvals=approvals)])


@pytest.mark.parametrize("wrapped", [False, True])
async def test_only_the_actions_that_the_consent_names_ask(approvals: StoredApprovals, wrapped: bool) -> None:
    done: list[str] = []
    tools = _torch(approvals, done)

    def sent(**arguments: str) -> dict[str, Any]:
        return {"args": arguments} if wrapped else arguments

    assert (await call(tools, "torch", sent(action="look"), context=make_context())).success
    burnt = await call(tools, "torch", sent(action="burn", path="x"), context=make_context())
    assert (burnt.code, done) == (ErrorCode.CONSENT_REQUIRED, ["look"])


@pytest.mark.parametrize("spelt", ["Burn", "BURN", " burn ", "burn_"])
async def test_an_action_that_is_mended_on_the_way_still_asks(approvals: StoredApprovals, spelt: str) -> None:
    done: list[str] = []
    assert not (await call(_torch(approvals, done), "torch", {"action": spelt}, context=make_context())).success
    assert done == []


def test_the_description_names_the_actions_that_ask(approvals: StoredApprovals) -> None:
    [torch] = _torch(approvals, []).tools()
    assert (consent_warning(torch.metadata) or "").startswith("REQUIRES EXPLICIT USER INSTRUCTION: use burn only when")
