"""Every order of tool calls, approvals, edits, deletions, restored copies, garbage, crashes and full disks.

What the tools answer is held against what the state file tells: a call that was answered was made once, one that was
refused was not made, and one that crashed was made whole or not at all. Nothing that only a person can close is closed
without one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.bots.faults.crashing import Crash
from tests.bots.faults.hand import SEEDS, Hand
from tests.bots.faults.person import Person
from tests.bots.faults.record import (
    BY_HAND,
    EMPTY,
    Event,
    Line,
    Record,
    check_agreeing,
    check_change,
    check_kept,
    is_done,
    read_record,
)
from tests.bots.faults.tool_site import LAWS, Law, Site, bot_folder, read_document
from trysquare import Result
from trysquare.store import project_state
from trysquare.store.audit import verify

SERVERS = st.sampled_from([0, 1])
BOTS = st.sampled_from(["mini", "mini", "mini", "aide"])
RUNS = st.sampled_from(["main", "main", "main", "story-12"])
FAULTS = st.sampled_from(["none", "none", "none", "none", "none", "crash", "crash", "full", "filled", "shut"])
POINTS = st.one_of(st.integers(0, 12), st.integers(0, 70))
PICKS = st.integers(0, 11)
ASIDE = ("find", "soft", "hard", "changed", "broken")
REFUSED = {"STATE_CONFLICT", "CONSENT_REQUIRED", "CONSENT_REFUSED"}
SAME = ("behavior", "action", "completed_action", "next_action", "approval", "status")
"""What an answer says the same when its call is sent again under the same key."""


@dataclass(kw_only=True)
class Sent:
    """A call as it was sent, and what came of it."""

    tool: str
    parameters: dict[str, Any]
    answer: Result[Any] | None = None
    is_made: bool = False

    @property
    def bot(self) -> str:
        return self.tool.split("_")[0]

    @property
    def target(self) -> str:
        """The tool that is meant, also where it is called through the gateway."""
        return self.parameters.get("tool", self.tool)

    @property
    def run(self) -> str:
        return self.parameters.get("run", "main")

    @property
    def kind(self) -> str:
        """The kind of change that the call can make."""
        if not self.target.endswith("_close_current_action"):
            return "open"
        return next((kind for kind in ("reject", "skip") if self.parameters.get(kind)), "close")


@dataclass(kw_only=True)
class Came:
    """What a call came to: how it ended, and which changes of runs it made."""

    sent: Sent
    failed: bool
    """Whether the disk failed meanwhile."""
    moves: list[Event] = field(default_factory=list[Event])


def check_gates(law: Law, history: Sequence[Line], added: Sequence[Line]) -> None:
    """Nothing is completed behind a gate that waits for its proof. To settle a folder is no gate of a strict bot."""
    gates = [path for path in law.order if path in law.proof and not path.endswith("initialize_project")]
    for line in added:
        ahead = [path for path in gates if law.order.index(path) < law.order.index(line.path)]
        assert not line.is_done or all(is_done(history, path) for path in ahead), f"{line.path} is behind an open gate"


class Tools(RuleBasedStateMachine):
    """Two servers with two bots on one project, a person with an editor and a terminal, and a machine that fails."""

    @initialize(seed=st.sampled_from(["none", "none", *SEEDS]))
    def begin(self, seed: str) -> None:
        self.site = Site()
        self.hand = Hand(self.site)
        self.person = Person(self.site)
        self.record = EMPTY
        self.kept: list[Sent] = []
        self.asked: dict[str, Sent] = {}
        self.saved: dict[tuple[str, str, str], str] = {}
        self.keys = 0
        if seed != "none":
            self.hand.lay(SEEDS[seed])

    def teardown(self) -> None:
        if not hasattr(self, "site"):
            return
        try:
            if project_state(self.site.project).exists():
                with self.site.database().read() as connection:
                    report = verify(connection)
                assert report.sound, report.problem
        finally:
            self.site.remove()

    # What agents do.

    @rule(server=SERVERS, bot=BOTS, run=RUNS, pick=st.integers(0, 99), confirms=st.booleans(), keyed=st.booleans(),
          through=st.booleans(), brings=st.booleans(), fault=FAULTS, points=POINTS)  # fmt: skip
    def forward(
        self, server: int, bot: str, run: str, pick: int, confirms: bool, keyed: bool, through: bool, brings: bool,
        fault: str, points: int,
    ) -> None:  # fmt: skip
        tools = LAWS[bot].tools()
        tool = tools[pick % len(tools)]
        parameters: dict[str, Any] = {"run": run, **self.key(keyed)}
        if confirms:
            parameters["confirm"] = True
        if brings and tool.endswith("gather_context"):
            parameters["answers"] = {"Who?": f"answer {len(self.record.events)}"}
        self.call(server, self.through(tool, parameters, through), fault, points)

    @rule(server=SERVERS, bot=BOTS, run=RUNS, how=st.sampled_from(["", "", "", "", "reject", "skip"]), pick=PICKS,
          expected=st.sampled_from(["none", "current", "current", "other"]), keyed=st.booleans(), through=st.booleans(),
          client=st.sampled_from(["", "", "yes", "no", "yes, but"]), fault=FAULTS, points=POINTS)  # fmt: skip
    def close(
        self, server: int, bot: str, run: str, how: str, keyed: bool, expected: str, through: bool, pick: int,
        client: str, fault: str, points: int,
    ) -> None:  # fmt: skip
        law = LAWS[bot]
        parameters: dict[str, Any] = {"run": run, **self.key(keyed)}
        if how:
            parameters[how] = "because"
        if expected != "none":
            current = self.record.last(law, run)[0].stand.current
            parameters["expected_action"] = current if expected == "current" else law.order[pick % len(law.order)]
        sent = self.through(f"{bot}_close_current_action", parameters, through)
        self.call(server, sent, fault, points, client=client, meddles=pick)

    @rule(server=SERVERS, bot=BOTS, run=RUNS, keyed=st.booleans(), fault=FAULTS, points=POINTS)
    def finish(self, server: int, bot: str, run: str, keyed: bool, fault: str, points: int) -> None:
        """Do as a person wants it: look at the action, and close it with their word."""
        opened = self.call(server, Sent(tool=f"{bot}_tool", parameters={"run": run}), "none", 0)
        answer = opened.sent.answer
        if answer is None or answer.next is None:
            return
        arguments: dict[str, Any] = answer.next["arguments"]["parameters"]
        sent = Sent(tool=answer.next["tool"], parameters={**arguments, **self.key(keyed)})
        self.call(server, sent, fault, points, client="yes")

    @precondition(lambda self: bool(self.kept))
    @rule(server=SERVERS, pick=PICKS, fault=FAULTS, points=POINTS)
    def send_again(self, server: int, pick: int, fault: str, points: int) -> None:
        earlier = self.kept[pick % len(self.kept)]
        again = Sent(tool=earlier.tool, parameters=earlier.parameters)
        came = self.call(server, again, fault, points)
        assert not (came.moves and earlier.is_made), "a call that was made was made again"
        earlier.is_made = earlier.is_made or bool(came.moves)
        first, now = earlier.answer, again.answer
        if first is not None and first.success and now is not None and not came.failed:
            assert now.success, f"a call that was answered is refused when it is sent again: {now.error}"
            assert [now.fields.get(name) for name in SAME] == [first.fields.get(name) for name in SAME]
        if first is None or not first.success:
            earlier.answer = now

    # What a person does.

    @precondition(lambda self: bool(self.asked))
    @rule(pick=PICKS, agrees=st.sampled_from([True, True, True, False]), sends=st.sampled_from([True, True, False]),
          server=SERVERS, fault=FAULTS, points=POINTS)  # fmt: skip
    def decide(self, pick: int, agrees: bool, sends: bool, server: int, fault: str, points: int) -> None:
        waiting = self.site.waiting()
        if not waiting:
            return
        call = waiting[pick % len(waiting)]
        self.person.decide(call, agrees=agrees)
        self.take()
        if sends and call.code in self.asked:
            again = self.asked[call.code]
            self.call(server, Sent(tool=again.tool, parameters=again.parameters), fault, points)

    @precondition(lambda self: bool(self.record.events))
    @rule(bot=BOTS, run=RUNS, how=st.sampled_from([*Hand.WAYS, "document", *ASIDE]), pick=PICKS, server=SERVERS)
    def edit(self, bot: str, run: str, how: str, pick: int, server: int = 0) -> None:
        """Change a file, or call what changes nothing of the work."""
        if how == "document":
            self.hand.change_document(pick)
        elif how == "find":
            query = ("gather context", "close", "xyzzy")[pick % 3]
            assert self.run(server, f"{bot}_find", {"query": query}).success
        elif how in ASIDE:
            before = self.record
            self.restart(server, bot, how)
            # A definition that was read is audited, and nothing else is changed by it.
            self.take()
            assert (self.record.events, self.record.rows) == (before.events, before.rows)
            told = [kind for kind, _ in self.record.audit[len(before.audit) :]]
            assert set(told) <= {"workflow.definition"}
        else:
            self.hand.touch(bot, run, how, pick)
        assert self.read() == self.record

    def restart(self, server: int, bot: str, how: str) -> None:
        place = bot_folder(bot) / ("bot_config.json" if how == "broken" else "behaviors/1_shape/instructions.json")
        before = place.read_bytes()
        self.site.loop.run_until_complete(self.site.servers[server].toolset(bot))
        if how in ("changed", "broken"):
            place.write_text("{" if how == "broken" else '{"goal": "Another."}', encoding="utf-8")
        try:
            told = self.run(server, f"{bot}_restart_server", {"hard": how == "hard"})
        finally:
            place.write_bytes(before)
        assert told.code == ("CONFIG_INVALID" if how == "broken" else None)
        assert self.site.servers[server].left == (how == "hard")
        if how == "hard":
            self.site.restart(server)

    # How a call is sent and judged.

    def key(self, keyed: bool) -> dict[str, str]:
        self.keys += 1
        return {"request_key": f"k{self.keys}"} if keyed else {}

    def through(self, tool: str, parameters: dict[str, Any], through: bool) -> Sent:
        """The call, or the same one through the gateway."""
        bot = tool.split("_")[0]
        return Sent(
            tool=f"{bot}_do" if through else tool, parameters={**parameters, **({"tool": tool} if through else {})}
        )

    def run(self, server: int, tool: str, parameters: Mapping[str, Any]) -> Result[Any]:
        return self.site.loop.run_until_complete(self.site.servers[server].call(tool, parameters))

    def call(self, server: int, sent: Sent, fault: str, points: int, *, client: str = "", meddles: int = 0) -> Came:
        """Send a call that may crash, and judge what came of it."""
        self.hand.heard(sent.bot)
        asking = self.person.at_client(client, lambda: self.meddle(sent, 1 - server, meddles)) if client else None
        if fault != "none":
            self.site.faults.arm(points, fault)
        try:
            sent.answer = self.site.loop.run_until_complete(
                self.site.servers[server].call(sent.tool, sent.parameters, asking)
            )
        except Crash:
            self.site.restart()
        failed = self.site.faults.disarm()
        if failed and fault == "crash" and sent.answer is not None:
            # The server outlives what a tool raises; here it stands for the end of the process.
            sent.answer = None
            self.site.restart()
        came = Came(sent=sent, failed=failed)
        self.judge(came)
        self.remember(came)
        return came

    async def meddle(self, sent: Sent, server: int, pick: int) -> None:
        """Something happens while the person looks at the question."""
        if pick % 3 == 0:
            self.hand.change_document(pick)
        elif pick % 3 == 1 and not self.hand.is_touched(sent.bot):
            self.hand.touch(sent.bot, sent.run, "delete", pick)
        else:
            await self.site.servers[server].call(
                f"{sent.bot}_close_current_action", {"run": sent.run, "reject": "meanwhile"}
            )

    def judge(self, came: Came) -> None:
        known = len(self.record.events)
        after = self.take()
        new = after.events[known:]
        law = LAWS[came.sent.bot]
        for event in new:
            assert event.bot == law.bot, "a call of one bot moved another"
            added = check_change(law, after, event)
            if event.kind in BY_HAND:
                self.hand.check(law, after, event)
            else:
                self.person.check(law, after, event, added)
                check_gates(law, after.history(event), added)
                came.moves.append(event)
        if came.moves and came.moves[0].kind == "reject" and came.sent.kind != "reject":
            assert self.person.was_disturbed(), "only another call sends an action back"
            came.moves.pop(0)
            assert not came.moves, "an answer about one state closed another"
        self.judge_moves(came)
        if came.sent.answer is not None:
            self.judge_answer(came, came.sent.answer)

    def judge_moves(self, came: Came) -> None:
        sent = came.sent
        assert len(came.moves) <= 1, "one call made two changes"
        for event in came.moves:
            assert (event.run, event.kind) == (sent.run, sent.kind)
            expected = sent.parameters.get("expected_action")
            if expected is not None and sent.kind != "open":
                before, _ = self.record.before(LAWS[sent.bot], event)
                assert expected in LAWS[sent.bot].together(before.stand.current), "another action was closed"

    def judge_answer(self, came: Came, answer: Result[Any]) -> None:
        assert answer.code != "INTERNAL_ERROR", answer.error
        if not answer.success:
            assert answer.code in REFUSED or (came.failed and answer.code == "STATE_UNAVAILABLE"), answer
            # What an action hands out comes after it was opened: a disk may fail between the two.
            assert not came.moves or (came.failed and came.sent.kind == "open")
            return
        if came.sent.kind == "open":
            self.judge_opened(came, answer.fields)
        else:
            self.judge_closed(came, answer.fields)
        self.hand.forget(came.sent.bot)
        if not came.failed:
            self.judge_window(came.sent.bot)

    def judge_opened(self, came: Came, fields: Mapping[str, Any]) -> None:
        path = f"{fields['behavior']}.{fields['action']}"
        last, history = self.record.last(LAWS[came.sent.bot], came.sent.run)
        if path.endswith("correct_bot"):
            assert not came.moves
        elif "workflow_complete" in fields:
            # The end: nothing is opened. An edited file can end a run at an action that is still open.
            assert not came.moves
            assert "request_key" in came.sent.parameters or fields["action_completed"] == is_done(history, path)
        elif came.moves or "request_key" not in came.sent.parameters:
            assert is_done(history, path) if fields["action_completed"] else last.stand.current == path
            assert fields["action_completed"] or last.stand.delivered

    def judge_closed(self, came: Came, fields: Mapping[str, Any]) -> None:
        if fields.get("replayed") or fields.get("already_closed"):
            assert not came.moves
            return
        [event] = came.moves
        if event.kind == "reject":
            assert fields["status"] == "rejected"
            return
        done = self.record.history(event)[-1]
        assert (done.path, done.approval) == (f"{fields['behavior']}.{fields['completed_action']}", fields["approval"])
        assert fields["next_action"] == (None if event.stand.finished else event.stand.current.split(".")[1])

    def judge_window(self, bot: str) -> None:
        """After an answer without trouble the state file shows what is stored."""
        rows = {run: row for (each, run), row in self.record.rows.items() if each == bot}
        if not rows or self.person.was_disturbed():
            return
        document = read_document(self.site.window(bot).read_bytes())
        assert document is not None
        for run, (version, generation, _, stand) in rows.items():
            shown = document if run == "main" else document["runs"][run]
            assert (shown["version"], shown["current_action"]) == (version, f"{bot}.{stand.current}")
            lines = self.record.lines.get((bot, run, generation), ())
            latest = {line.path: line for line in lines}.values()
            told = [(f"{bot}.{line.path}", line.version, True) for line in latest if line.is_done]
            found = shown["completed_actions"]
            seen = [(each["action_state"], each["version"], "reopened" not in each) for each in found]
            assert sorted(seen) == sorted(told)

    def remember(self, came: Came) -> None:
        sent, answer = came.sent, came.sent.answer
        if "request_key" in sent.parameters and (answer is None or answer.success):
            sent.is_made = bool(came.moves)
            self.kept.append(sent)
        if answer is not None and answer.code == "CONSENT_REQUIRED":
            self.asked[answer.fields["approval"]["code"]] = sent
        if "answers" in sent.parameters:
            where = (sent.bot, sent.run, sent.target.split("_")[1])
            self.saved.pop(where, None)
            if answer is not None and answer.success and "saved" in answer.fields["data"]:
                self.saved[where] = sent.parameters["answers"]["Who?"]

    def read(self) -> Record:
        if not project_state(self.site.project).exists():
            return EMPTY
        with self.site.database().read() as connection:
            return read_record(connection)

    def take(self) -> Record:
        """Read what is written now: nothing was taken back, and all tables tell the same."""
        now = self.read()
        check_kept(self.record, now)
        check_agreeing(now)
        self.record = now
        return now

    @invariant()
    def saved_answers_stay(self) -> None:
        for (bot, run, behavior), answer in getattr(self, "saved", {}).items():
            place = ("docs" if bot == "mini" else f"docs/{bot}") + ("" if run == "main" else f"/runs/{run}")
            saved = json.loads((self.site.project / place / "clarification.json").read_text(encoding="utf-8"))
            assert saved[behavior]["answers"]["Who?"] == answer
