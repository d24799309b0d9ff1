"""Any life of a loop, of every kind of feedback, is what its reference says (`references`): what is on offer, what is
shown, what counts, what is learned."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import heedful.loop.decisions
import heedful.loop.keeper
from budget import FACTOR
from heedful import Loop
from heedful.io import import_lines, rehearse
from heedful.loop.experiment import NotReady
from heedful.loop.serving import takes_part
from heedful.loop.settings import Manifest
from heedful.results.answers import Decision
from kinds import Kind, each_kind
from loops import bits, bits_from_scratch, lines_of, sides
from references import PERSON, SOME, Fold, Given, Reference, Shown


def create_twin(loop: Loop, folder: Path, own: str | None) -> Loop:
    """Create a loop as this one was made, with nothing in it."""
    made = Manifest.from_json(loop.projection.log.at(1).payload)
    return Loop.create(
        folder,
        encoding=made.encoding,
        learner=own or made.learner,
        settings=made.settings,
        context=made.context,
        crosses=made.crosses,
    )


def life_of(kind: type[Reference], other: str) -> type[RuleBasedStateMachine]:
    """The state machine of the loops of a kind, in which the learner `other` is tried and promoted."""

    class Life(RuleBasedStateMachine):
        """A loop, perhaps open twice, and the reference to it."""

        # -------------------------------------------------------------------- making

        @initialize(
            setup=st.fixed_dictionaries(kind.setups),
            control=st.sampled_from([0.0, 0.4]),
            every=st.sampled_from([2, 5, 1000]),
        )
        def create(self, setup: dict[str, Any], control: float, every: int) -> None:
            memory = Path("/dev/shm")
            self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
            self.reference = kind(**setup)
            self.loops = [self.reference.create(self.folder / "l", control, every)]
            self.items = {name: self.reference.start(name) for name in kind.names[: kind.first]}
            self.decisions: dict[str, Shown] = {}
            self.waiting: set[str] = set()
            self.feedback: dict[str, tuple[str, Given, int]] = {}  # by event: the decision, what was given, its seq
            # In the order of the log: ("put", name, row), ("withdraw", name, None), ("feedback", event, None)
            self.story: list[tuple[str, str, Any]] = [("put", name, row) for name, row in self.items.items()]
            # In the order of the log: (seq, "feedback" or "undo", the feedback), (seq, "rollback", the version),
            # (seq, "experiment", (its id, the share, the candidate)), (seq, "stop", None),
            # (seq, "promote", (its id, the learner))
            self.happened: list[tuple[int, str, Any]] = []
            self.undone: set[str] = set()  # the feedback that is not in effect
            self.undos: set[str] = set()  # the feedback of which an undo is in effect
            self.forgets: list[int] = []
            self.forgotten: set[tuple[str, str]] = set()
            self.before_forgetting: set[str] = set()
            self.counts = Counter(loop=1, item=kind.first)
            self.made = 0
            self._fold: Fold | None = None
            self.first = self.serving = self.loops[0].manifest.learner
            self.running: tuple[str, float, str] | None = None  # the experiment: its id, the share, the candidate
            self.promoted: frozenset[str] = frozenset()  # the promotions that are in effect
            self.promotions: list[str] = []
            self.pages: dict[str, str] = {}  # by page: the decision that it continues
            self.tried: dict[str, list[str]] = {}  # by experiment: the decisions made while it ran
            self.foreign: set[str] = set()  # the decisions made while another learner than the first served
            self.seen = 0

        def teardown(self) -> None:
            if hasattr(self, "folder"):
                for loop in self.loops:
                    loop.close()
                shutil.rmtree(self.folder)

        def loop(self, which: int) -> Loop:
            """One of those that have it open. What another wrote, it takes in at its next commit; here, now."""
            loop = self.loops[which % len(self.loops)]
            loop.projection.catch_up()
            return loop

        def new(self, what: str) -> str:
            self.made += 1
            return f"{what}{self.made}"

        def fold(self) -> Any:
            """All that counts, from the beginning; from scratch whenever the story has changed."""
            if self._fold is None:
                self._fold, self.lessons = self.reference.fold(), 0
                for what, name, row in self.story:
                    if what == "put":
                        self._fold.put(name, row)
                    elif what == "withdraw":
                        self._fold.withdraw(name)
                    elif name not in self.undone:
                        id, given, _ = self.feedback[name]
                        if given.lesson is not None:
                            self.lessons += self._fold.learns(given)
                            self._fold.learn(self.decisions[id], given.lesson)
            return self._fold

        def add(self, what: str, name: str, row: Any = None) -> None:
            self.story.append((what, name, row))
            self._fold = None

        def happen(self, seq: int | None, what: str, target: Any) -> None:
            self.happened.append((seq, what, target))
            self.count_anew()

        def count_anew(self) -> None:
            """What is in effect, after every event: a rollback brings back what was in effect after an earlier one."""
            none = frozenset[str]()
            serves: tuple[str, tuple[str, float, str] | None, frozenset[str]] = (self.first, None, none)
            states = [(0, none, none, serves)]
            for seq, what, target in self.happened:
                _, effective, undos, serves = states[-1]
                if what == "feedback":
                    effective |= {target}
                elif what == "undo":
                    effective, undos = effective - {target}, undos | {target}
                elif what == "experiment":
                    serves = (serves[0], target, serves[2])
                elif what == "stop":
                    serves = (serves[0], None, serves[2])
                elif what == "promote":
                    serves = (target[1], None, serves[2] | {target[0]})
                else:
                    _, effective, undos, serves = next(state for state in reversed(states) if state[0] <= target)
                states.append((seq, effective, undos, serves))
            _, effective, undos, (self.serving, self.running, self.promoted) = states[-1]
            self.undone, self.undos = self.feedback.keys() - effective, set(undos)
            self._fold = None

        @property
        def exact(self) -> bool:
            """Whether the reference knows the model: there is a fold of it, and the learner of that fold serves."""
            return self.reference.exact and self.serving == self.first

        def pick(self, some: Any, which: int) -> Any:
            return list(some)[which % len(some)]

        # -------------------------------------------------------------------- items

        @rule(which=SOME, name=st.sampled_from(kind.names), turn=kind.turns)
        def put(self, which: int, name: str, turn: Any) -> None:
            row = self.reference.row(name, turn)
            changed = self.items.get(name) != row
            assert self.loop(which).put_items([row]).put == int(changed)
            if changed:
                self.counts["item"] += 1
                self.items[name] = row
                self.add("put", name, row)

        @rule(which=SOME, name=st.sampled_from(kind.names))
        def withdraw(self, which: int, name: str) -> None:
            assert self.loop(which).withdraw(name) == (name in self.items)
            if self.items.pop(name, None):
                self.counts["item"] += 1
                self.add("withdraw", name)

        # -------------------------------------------------------------------- deciding

        @rule(
            which=SOME,
            order=st.permutations(kind.names),
            size=st.integers(1, len(kind.names)),
            how=st.sampled_from(kind.ways),
            person=PERSON,
            show=st.one_of(st.none(), st.integers(kind.least, 4)),
            deferred=st.booleans(),
            fields=st.fixed_dictionaries(kind.fields),
        )
        def decide(
            self, which: int, order: Any, size: int, how: str, person: Any, show: Any, deferred: bool, fields: Any
        ) -> None:
            names = [name for name in order[:size] if how == "inline" or name in self.items]
            names = list(self.items) if how == "all" else names
            rows = [self.items.get(name) or self.reference.start(name) for name in names]
            asked: dict[str, Any] = {"person": person, "show": show} | self.reference.asked(
                {**fields, "show": show}, len(names)
            )
            eligible = self.fold().eligible(names, person, asked)
            given: Any = {"names": names, "inline": rows, "all": None, "recorded": names}[how]
            loop, id = self.loop(which), self.new("d")
            if len(eligible) < kind.least:
                before = loop.projection.log.counts()
                with pytest.raises(ValueError, match="candidates: expected"):
                    loop.decide(given, id=id, strict=True, **asked)
                assert loop.projection.log.counts() == before
                return
            if how == "recorded":
                show, deferred = asked.pop("show"), False
                shown = list(reversed(names))[: self.reference.size(show, len(names))]
                d = loop.record(given, shown, id=id, **asked)
                assert (d.shown, d.arm, d.probability) == (tuple(shown), "imported", None)
            else:
                version = loop.version
                d = loop.decide(given, id=id, deferred=deferred, **asked)
                assert self.loop(which + 1).decide(given, id=id, **asked) == d
                assert d.version == version
            left = len(eligible)
            assert len(d.shown) == self.reference.size(show if how == "recorded" else asked["show"], left)
            drafts = self.running is not None and takes_part(*self.running[:2], person) and how != "recorded"
            assert d.arm in (("interleaved", "control") if drafts else ("learned", "control", "imported"))
            self.take(loop, d, names, rows, person, eligible, deferred, asked)

        def take(
            self, loop: Loop, d: Decision, names: Any, rows: Any, person: Any, eligible: Any, deferred: bool, asked: Any
        ) -> None:
            """Keep a decision that was made just now, if it is as the reference says."""
            assert len(set(d.shown)) == len(d.shown)
            assert set(d.shown) <= set(eligible)
            known = loop.projection.find_decision(d.id)
            record = known.record
            self.check_prior(record.prior, asked.get("prior"))
            context = asked.get("context") or {}
            self.decisions[d.id] = Shown(
                names, rows, list(d.shown), person, d.arm, d.predicted, record.prior, record.proposal, context
            )
            self.counts["decision"] += 1
            if deferred:
                self.waiting.add(d.id)
            if self.running is not None:
                self.tried[self.running[0]].append(d.id)
            if self.serving != self.first:
                self.foreign.add(d.id)
            elif self.exact or not self.reference.exact:
                self.reference.check_decision(self.fold(), self.decisions[d.id], eligible)

        @precondition(lambda self: self.decisions)
        @rule(which=SOME, pick=SOME, order=st.permutations(kind.names), show=st.integers(1, 4), repeats=st.booleans())
        def page(self, which: int, pick: int, order: Any, show: int, repeats: bool) -> None:
            """What goes on with the list of an earlier decision shows the rest of it, on the same side."""
            after, loop, id = self.pick(self.decisions, pick), self.loop(which), self.new("d")
            before, names = self.decisions[after], [name for name in order if name in self.items]
            person = before.person
            asked = {"person": person, "after": after}
            if not loop.projection.interaction.ranks:
                with pytest.raises(ValueError, match="shows no pages"):
                    loop.decide(names, id=id, **asked)
                return
            asked |= self.reference.asked({"show": show} | dict.fromkeys(kind.fields), len(names))
            asked |= {"repeats": repeats} if "repeats" in kind.fields else {}
            pages = [after]
            while pages[-1] in self.pages:
                pages.append(self.pages[pages[-1]])
            gone = {name for page in pages for name in self.decisions[page].shown}
            left = [name for name in names if name not in gone]
            eligible = self.fold().eligible(left, person, asked)
            if not eligible:  # the page would be empty
                return
            d = loop.decide(names, id=id, **asked)
            assert self.loop(which + 1).decide(names, id=id, **asked) == d
            self.pages[id] = after
            assert len(d.shown) == self.reference.size(asked["show"], len(eligible))
            if before.arm == "imported":
                drafts = self.running is not None and takes_part(*self.running[:2], person)
                assert d.arm in (("interleaved", "control") if drafts else ("learned", "control"))
            else:
                drafted = next((self.decisions[page].proposal.get("experiment") for page in pages), None)
                ended = before.arm == "interleaved" and (self.running or ("",))[0] != drafted
                assert d.arm == ("learned" if ended else before.arm)
            self.take(loop, d, left, [self.items[name] for name in left], person, eligible, False, {})

        def check_prior(self, kept: Any, scores: list[float] | None) -> None:
            """The caller's scores as the log keeps them: mean 0, variance 1; none where all are equal."""
            if scores is None or len(set(scores)) < 2:
                assert kept == ()
            else:
                assert kept == pytest.approx((np.array(scores) - np.mean(scores)) / np.std(scores))

        @precondition(lambda self: self.waiting)
        @rule(which=SOME, pick=SOME)
        def activate(self, which: int, pick: int) -> None:
            id = self.pick(sorted(self.waiting), pick)
            assert self.loop(which).activate(id).status == "applied"
            self.counts["activate"] += 1
            self.waiting.discard(id)
            assert self.loop(which + 1).activate(id).status == "duplicate"

        # -------------------------------------------------------------------- feedback

        @precondition(lambda self: self.decisions)
        @rule(which=SOME, pick=SOME, drawn=kind.answers)
        def answer(self, which: int, pick: int, drawn: Any) -> None:
            id = self.pick(self.decisions, pick)
            self.send(which, id, self.reference.answer(self.decisions[id], drawn))

        @rule(
            which=SOME,
            person=PERSON,
            fields=st.fixed_dictionaries(kind.fields),
            drawn=st.lists(kind.answers, min_size=1, max_size=2),
        )
        def converse(self, which: int, person: Any, fields: Any, drawn: list[Any]) -> None:
            """Decisions that are answered at once: by single steps few lives come to much feedback."""
            for each in drawn:
                self.decide(which, kind.names, len(kind.names), "all", person, None, False, fields)
                id = f"d{self.made}"
                if id in self.decisions:
                    self.send(which, id, self.reference.answer(self.decisions[id], each))

        def send(self, which: int, id: str, given: Given) -> None:
            """Give it, and see that the answer is the one that the reference expects."""
            loop, event = self.loop(which), self.new("e")
            learns = self.fold().learns(given)
            got = loop.feedback(id, id=event, **given.form)
            if (given.refused if self.serving == self.first else got.seq is None) or id in self.waiting:
                assert (got.status, got.seq, got.learned) == ("rejected", None, False)
                assert got.reason
                return
            assert got.status == "applied"
            assert got.seq == got.version == loop.version
            if self.exact:
                assert got.learned == learns
                assert bool(got.reason) == (not learns)
            self.counts["feedback"] += 1
            self.feedback[event] = id, given, got.seq
            self.add("feedback", event)
            self.happen(got.seq, "feedback", event)
            assert self.loop(which + 1).feedback(id, id=event, **given.form).status == "duplicate"

        @precondition(lambda self: self.feedback)
        @rule(which=SOME, pick=SOME)
        def repeat(self, which: int, pick: int) -> None:
            event = self.pick(self.feedback, pick)
            id, given, seq = self.feedback[event]
            again = self.loop(which).feedback(id, id=event, **given.form)
            assert (again.status, again.seq, again.learned) == ("duplicate", seq, False)
            other = self.reference.another_answer(self.decisions[id], given.form)
            assert self.loop(which).feedback(id, id=event, **other).status == "rejected"

        @precondition(lambda self: self.decisions)
        @rule(which=SOME, pick=SOME, bad=st.sampled_from(kind.wrong), drawn=kind.answers)
        def malformed(self, which: int, pick: int, bad: Any, drawn: Any) -> None:
            id, loop = self.pick(self.decisions, pick), self.loop(which)
            before = bits(loop), loop.projection.log.counts()
            [got] = loop.feedback_many([{"decision": id, "id": self.new("e"), **bad}])
            assert got.status == "rejected"
            form = self.reference.answer(self.decisions[id], drawn).form
            assert loop.feedback("nobody", **form).status == "rejected"
            assert (bits(loop), loop.projection.log.counts()) == before

        # -------------------------------------------------------------------- taking back

        @precondition(lambda self: self.feedback)
        @rule(which=SOME, pick=SOME)
        def undo(self, which: int, pick: int) -> None:
            event = self.pick(self.feedback, pick)
            got = self.loop(which).undo(event)
            assert got.status == ("duplicate" if event in self.undos else "applied")
            if event not in self.undos:
                self.counts["undo"] += 1
                self.happen(got.seq, "undo", event)

        @rule(which=SOME, pick=SOME)
        def rollback(self, which: int, pick: int) -> None:
            """Back to any version that there was, and from a rollback too."""
            loop, id = self.loop(which), self.new("r")
            last = loop.projection.log.last()[0]
            to = 1 + pick % last
            if self.happened and pick % 4:  # just before or after what can be left out: most are items and decisions
                to = self.pick(self.happened, pick // 4)[0] - pick % 2
            before = self.feedback.keys() - self.undone
            got = loop.rollback(to, id=id)
            assert (got.answer.status, got.to, got.answer.seq) == ("applied", to, last + 1)
            self.counts["rollback"] += 1
            self.happen(got.answer.seq, "rollback", to)
            after = self.feedback.keys() - self.undone
            assert (got.left_out, got.restored) == (len(before - after), len(after - before))
            assert got.forgotten == sum(seq > to for seq in self.forgets)
            assert self.loop(which + 1).rollback(to, id=id).answer.status == "duplicate"

        @rule(which=SOME, person=PERSON.filter(bool))
        def forget(self, which: int, person: str) -> None:
            theirs = [id for id, decision in self.decisions.items() if decision.person == person]
            answers = [event for event, (id, _, _) in self.feedback.items() if id in theirs]
            undos = [target for _, what, target in self.happened if what == "undo" and target in answers]
            loop = self.loop(which)
            last = loop.projection.log.last()[0]
            activated = [event for event in loop.projection.log.events(kinds=["activate"]) if event.id in theirs]
            assert loop.forget(person).events == len(theirs) + len(answers) + len(undos) + len(activated)
            if theirs:
                self.counts += Counter(forget=1, erased=1)
                self.forgets.append(last + 1)
            self.counts -= Counter(
                decision=len(theirs), feedback=len(answers), undo=len(undos), activate=len(activated)
            )
            self.forgotten |= {("decision", id) for id in theirs} | {("feedback", event) for event in answers}
            self.story = [each for each in self.story if each[0] != "feedback" or each[1] not in answers]
            self.waiting -= set(theirs)
            self.happened = [each for each in self.happened if each[1] == "rollback" or each[2] not in answers]
            for id in theirs:
                del self.decisions[id]
            for event in answers:
                del self.feedback[event]
            self.before_forgetting = set(self.decisions)
            self.count_anew()

        @precondition(lambda self: self.forgotten)
        @rule(which=SOME, pick=SOME)
        def come_back(self, which: int, pick: int) -> None:
            """What was forgotten cannot be said again, nor asked, nor taken back."""
            what, id = self.pick(sorted(self.forgotten), pick)
            loop = self.loop(which)
            if what == "decision":
                assert "forgotten" in str(loop.feedback(id, none=True).reason)
                if len(self.items) >= kind.least:
                    with pytest.raises(LookupError, match="forgotten"):
                        loop.decide(id=id)
            else:
                assert "forgotten" in str(loop.undo(id).reason)
                for other in self.decisions.keys() - self.waiting:
                    assert "forgotten" in str(
                        loop.feedback(other, id=id, none=True).reason
                    )  # fits what any of them showed
                    break

        # -------------------------------------------------------------------- looking back

        @precondition(lambda self: self.decisions)
        @rule(which=SOME, pick=SOME)
        def why_the_first(self, which: int, pick: int) -> None:
            id = self.pick(self.decisions, pick)
            why = self.loop(which).why(id, budget=0.0)
            assert (why.decision, why.place) == (id, 1)
            if id in self.foreign:
                return
            self.reference.check_explanation(why, self.decisions[id], id in self.before_forgetting)

        @precondition(lambda self: self.decisions)
        @rule(which=SOME, pick=SOME, place=SOME, exactly=st.booleans())
        def why(self, which: int, pick: int, place: int, exactly: bool) -> None:
            """Of any candidate: exact parts sum to its score, and what moved it is in effect and came before."""
            id, loop = self.pick(self.decisions, pick), self.loop(which)
            known = loop.projection.find_decision(id)
            if not known.names:
                return
            told = loop.why(id, self.pick(known.names, place), top=1000, budget=1e12 if exactly else 0.0)
            assert {each.event for each in told.events} <= self.feedback.keys() - self.undone
            assert all(each.seq <= told.version for each in told.events)
            if told.score is not None and told.features_by == "exact":
                total = math.fsum(part.counts for part in told.features)
                assert total == pytest.approx(told.score, rel=1e-9, abs=1e-9)

        @precondition(lambda self: self.feedback)
        @rule(which=SOME)
        def evaluate(self, which: int) -> None:
            """An evaluation learns what is in effect, as the loop did, and changes nothing."""
            loop = self.loop(which)
            before = bits(loop), loop.projection.log.counts()
            own, again = loop.evaluate(f"{loop.projection.manifest.learner}@{loop.projection.log.last()[0]}").learners
            assert (own.lessons, own.weights) == (again.lessons, again.weights)
            if self.exact:
                self.fold()
                assert own.lessons == self.lessons
            assert own.weights == (loop.weights if own.weights else {})
            assert (bits(loop), loop.projection.log.counts()) == before

        @rule(which=SOME)
        def verify(self, which: int) -> None:
            assert self.loop(which).verify() == []

        # -------------------------------------------------------------------- other learners

        @rule(which=SOME, spec=st.just(other), share=st.sampled_from([0.0, 0.5, 1.0]), frozen=st.booleans())
        def experiment(self, which: int, spec: str, share: float, frozen: bool) -> None:
            """One at a time, where lists are rankings; otherwise the one that runs is ended."""
            loop, id = self.loop(which), self.new("x")
            if not loop.projection.interaction.ranks:
                with pytest.raises(ValueError, match="shows no rankings"):
                    loop.start_experiment(spec, share=share, id=id)
                return
            if self.running is not None:
                with pytest.raises(ValueError, match=f"expected none that runs, got {self.running[0]}"):
                    loop.start_experiment(spec, share=share, id=id)
                got = loop.stop_experiment(id=id)
                assert got.status == "applied"
                self.counts["stop"] += 1
                self.happen(got.seq, "stop", None)
                assert self.loop(which + 1).stop_experiment(id=id).status == "duplicate"
                return
            got = loop.start_experiment(spec, share=share, frozen=frozen, id=id)
            assert got.status == "applied"
            self.counts["experiment"] += 1
            self.tried[id] = []
            self.happen(got.seq, "experiment", (id, share, loop.projection.interaction.full_spec(spec)))
            assert self.loop(which + 1).start_experiment(spec, share=share, frozen=frozen, id=id).status == "duplicate"

        @rule(which=SOME, spec=st.sampled_from([other, ""]), back=st.booleans())
        def promote(self, which: int, spec: str, back: bool) -> None:
            """Another learner, the first one again, or the candidate; what is not ready changes nothing unforced."""
            loop, id = self.loop(which), self.new("u")
            named = None if not spec else loop.projection.interaction.full_spec(spec)
            named = self.first if back else named
            tried = None if self.running is None else self.running[2]
            if (named or tried) in (self.serving, None):
                with pytest.raises(ValueError, match="learner: expected"):
                    loop.promote(named, force=True, id=id)
                return
            before, reasons = loop.projection.log.counts(), tuple[str, ...]()
            try:
                made = loop.promote(named, id=id)
            except NotReady as error:
                reasons = error.reasons
                assert reasons
                assert loop.projection.log.counts() == before
                made = loop.promote(named, force=True, id=id)
            assert made.forced == reasons
            assert (made.answer.status, made.before) == ("applied", self.serving)
            assert named in (None, made.learner)
            self.counts["promote"] += 1
            self.promotions.append(id)
            self.happen(made.answer.seq, "promote", (id, made.learner))
            assert self.loop(which + 1).promote(named, id=id).answer.status == "duplicate"

        @precondition(lambda self: self.tried or self.promotions)
        @rule(which=SOME, pick=SOME)
        def look(self, which: int, pick: int) -> None:
            """An experiment says what the decisions that are left say; promotions say if they are in effect."""
            loop = self.loop(which)
            found = [(each.id, each.in_effect) for each in reversed(loop.promotions())]
            assert found == [(id, id in self.promoted) for id in self.promotions]
            if not self.tried:
                return
            id = self.pick(self.tried, pick)
            told = loop.experiment(id)
            assert told.running == (self.running is not None and self.running[0] == id)
            made = {each: self.decisions[each] for each in self.tried[id] if each in self.decisions}
            made = {each: shown for each, shown in made.items() if shown.arm != "imported"}
            people = {shown.person for shown in made.values() if shown.person is not None}
            inside = {person for person in people if takes_part(id, told.share, person)}
            assert told.decisions == len(made)
            assert (told.people.own, told.people.candidate) == (len(people - inside), len(inside))
            mine = {each: shown for each, shown in made.items() if shown.proposal.get("experiment") == id}
            assert {shown.person for shown in mine.values()} <= inside
            answered = {each for event, (each, _, _) in self.feedback.items() if event not in self.undone}
            assert told.verdict.sessions <= len(answered & mine.keys())
            assert told.verdict.people <= len(inside)
            assert told.coins.own + told.coins.candidate == sum(len(x.proposal["coins"]) for x in mine.values())

        def check_sides(self, loop: Loop) -> None:
            """Both sides of the experiment that runs rank by what is in effect, up to where they are frozen."""
            running = loop.projection.published.running
            assert (running and running.id) == (self.running and self.running[0])
            if running is not None:
                assert (running.own is not None) == (running.record.frozen > 0)
                assert sides(loop) == sides(loop, from_scratch=True)

        # -------------------------------------------------------------------- elsewhere

        @precondition(lambda self: self.happened)
        @rule(which=SOME, batch=st.sampled_from([1, 3, 1000]))
        def carry(self, which: int, batch: int) -> None:
            """Exported and imported it is the same loop, by a dry run too; a second time nothing is new."""
            loop, folder = self.loop(which), self.folder / "copy"
            lines = lines_of(loop)
            create_twin(loop, folder, kind.own).close()
            try:
                with rehearse(folder, learner=kind.own) as dry:
                    rehearsed = Counter(each.status for each in import_lines(dry, lines, batch=batch))
                with Loop.open(folder, learner=kind.own) as copy:
                    assert copy.projection.log.counts() == {"loop": 1}
                    found = list(import_lines(copy, lines, batch=batch))
                    assert [each for each in found if each.status != "applied"] == []
                    assert rehearsed == {"applied": len(lines)}
                    counts = self.counts - Counter(forget=self.counts["forget"], erased=self.counts["erased"])
                    assert copy.projection.log.counts() == {what: n for what, n in counts.items() if n}
                    assert (copy.items, copy.manifest.learner) == (loop.items, loop.manifest.learner)
                    running = copy.projection.experiment
                    assert (running and (running[0].id, running[1].share, running[1].learner)) == self.running
                    self.check_sides(copy)
                    assert bits(copy) == bits(loop)
                    again, told = ([json.dumps(line.record) for line in some] for some in (lines_of(copy), lines))
                    assert sorted(again) == sorted(told)
                    assert {each.status for each in import_lines(copy, lines, batch=batch)} <= {"duplicate"}
                    assert copy.projection.log.counts() == {what: n for what, n in counts.items() if n}
                    assert copy.verify() == []
            finally:
                shutil.rmtree(folder)

        # -------------------------------------------------------------------- processes

        @rule(which=SOME, snapshot=st.booleans(), clean=st.booleans())
        def reopen(self, which: int, snapshot: bool, clean: bool) -> None:
            """Closed, or gone without a word; opened again."""
            at = which % len(self.loops)
            loop = self.loop(at)
            before = bits(loop), loop.version, loop.items
            if snapshot:
                loop.snapshot()
            (loop if clean else loop.projection.log).close()
            self.loops[at] = loop = Loop.open(self.folder / "l", learner=kind.own)
            assert (bits(loop), loop.version, loop.items) == before
            assert loop.notes == []

        @precondition(lambda self: len(self.loops) < 2)
        @rule()
        def another(self) -> None:
            self.loops.append(Loop.open(self.folder / "l", learner=kind.own))

        # -------------------------------------------------------------------- what must be true

        @invariant()
        def it_is_as_the_reference_says(self) -> None:
            if not hasattr(self, "loops"):
                return
            for at in range(len(self.loops)):
                loop = self.loop(at)
                assert loop.items == list(self.items)
                assert loop.projection.log.counts() == {what: n for what, n in self.counts.items() if n}
                assert loop.projection.failed == {}
                assert loop.manifest.learner == self.serving
                running = loop.projection.experiment
                assert (running and (running[0].id, running[1].share, running[1].learner)) == self.running
                if self.exact:
                    self.fold().check(loop)
                elif self.seen != loop.projection.log.last()[0]:
                    assert bits(loop) == bits_from_scratch(loop)
                if self.seen != loop.projection.log.last()[0]:
                    self.check_sides(loop)
            self.seen = self.loops[0].projection.log.last()[0]
            assert all(bits(loop) == bits(self.loops[0]) for loop in self.loops)

    return type("Life", (Life,), kind.rules)


@each_kind
def test_a_short_life_of_a_loop_is_what_its_reference_says(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    live(kind, monkeypatch, lives=2, steps=8)


@pytest.mark.slow
@each_kind
def test_any_life_of_a_loop_is_what_its_reference_says(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    live(kind, monkeypatch, lives=kind.reference.lives * FACTOR, steps=25)


def live(kind: Kind, monkeypatch: pytest.MonkeyPatch, lives: int, steps: int) -> None:
    """Check so many lives, with few decisions in memory and marks every few lessons: what a long life has, in a short
    one."""
    monkeypatch.setattr(heedful.loop.decisions, "CACHED", 3)
    monkeypatch.setattr(heedful.loop.keeper, "BETWEEN", 3)
    monkeypatch.setattr(heedful.loop.keeper, "SLOW_BETWEEN", 3)
    run_state_machine_as_test(
        life_of(kind.reference, kind.other if kind.own is None else f"{kind.other}:rate=0.2"),
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
