"""Events as JSON lines: a loop carried over whole, the same lines twice, and every way a line can be wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import TEXTS, Loop, Settings
from heedful.data.jsonl import as_lines, read_lines
from heedful.features import infer
from heedful.io import Outcome, check_line, export_lines, import_lines, rehearse
from heedful.io.imports import Importer
from heedful.loop.interactions.coactive.model import Model
from loops import bits, bits_of, empty_copy, export, rows, small_loop

SHOPS = [{"daypart": "morning", "hurry": 1.5}, {"daypart": "evening", "hurry": 0.0}, {"daypart": "night", "hurry": 3.0}]
SHOPS += [
    {"daypart": "morning", "hurry": 2.0},
    {"daypart": "evening", "hurry": 1.0},
    {"daypart": "night", "hurry": 0.5},
]


def brought(loop: Loop, records: Sequence[Any], **more: Any) -> list[Outcome]:
    """What became of each line, in the order of the lines."""
    return sorted(import_lines(loop, as_lines(records), **more))


def status(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def busy(path: Path, learner: str = "posterior", **settings: Any) -> Loop:
    """A loop in which everything happened that can: each form of feedback, changed items, chains, undoing."""
    items = [
        row | {"about": f"thing {row['id']} of the {'first' if j % 2 else 'second'} kind"}
        for j, row in enumerate(rows(8, 3))
    ]
    settings = {"shrink": 2.0, "seed": 7, **settings}
    context = infer(SHOPS, identifier="", kinds={"daypart": "category"})
    kinds = {"f0": "number", "f1": "number", "f2": "number", "about": "text"}
    loop = Loop.create(
        path,
        encoding=infer(items, identifier="id", kinds=kinds, buckets=8),
        items=items,
        context=context,
        crosses=[("daypart", "f0"), ("hurry", "f1")],
        learner=learner,
        settings=Settings(**settings),
    )
    rng = np.random.default_rng(11)
    for round in range(40):
        if round == 10:
            loop.put_items([items[0] | {"f0": 9.5}])
        if round == 15:
            loop.put_items([items[0]])  # as it was at first
        if round == 20:
            loop.withdraw("i7")
        names = [f"i{j}" for j in rng.permutation(7)[:5]]
        prior = {name: float(rng.standard_normal()) for name in names[:-1]} if round % 3 else None
        candidates: list[Any] = names
        if round % 4 == 3:
            candidates = [{"id": f"own{j}", "f0": j / 7, "f1": 1.25, "about": "never seen before"} for j in range(5)]
            prior = [0.3, 0.1, 0.2, 5.0, -1.0] if prior else None
        person = f"p{round % 3}" if round % 5 else None
        d = loop.decide(
            candidates,
            person=person,
            context=SHOPS[round % 6] if round % 7 else None,
            prior=prior,
            show=4 if round % 2 else None,
            id=f"d{round}",
            deferred=round % 6 == 0,
        )
        if round % 6 == 0:
            assert loop.feedback(d.id, clicks=[d.shown[0]], id=f"early{round}").status == "rejected"
            if round % 12 == 0:
                continue
            loop.activate(d.id)
        form = FORMS[round % len(FORMS)](d.shown)
        answer = loop.feedback(d.id, id=f"e{round}", **form)
        unused = learner == "second-order" and ("thumb" in form or "action" in form)
        assert answer.status == ("rejected" if unused else "applied"), (form, answer.reason)
    one, two, three = (loop.decide(["i1", f"i{j}", "i5"], person="p9", id=f"need{j}", show=2) for j in (2, 3, 4))
    other = ({"i1", "i3", "i5"} - {*one.shown}).pop() if "i3" in one.shown else "i3"
    loop.feedback(one.id, clicks=["i4", one.shown[1], other], chain=[three.id, two.id], id="chained")
    for event in ("e3", "e17", "chained"):
        loop.undo(event)
    loop.feedback(one.id, clicks=[one.shown[1], "i4"], chain=[three.id, two.id], id="chained again")
    return loop


def _texts(shown: Sequence[str]) -> dict[str, Any]:
    return {"edit": {"about": "something else", "f1": -0.75}}


FORMS: list[Any] = [
    lambda shown: {"clicks": [shown[-1], shown[0]]},
    lambda shown: {"better": [shown[2], shown[0]]},
    lambda shown: {"clicks": [shown[1]]},
    _texts,
    lambda shown: {"edit": {"f0": 2.5}, "item": shown[1]},
    lambda shown: {"edit": {"f0": -2.5}, "nearest": True},
    lambda shown: {"thumb": "up"},
    lambda shown: {"thumb": "down", "item": shown[1]},
    lambda shown: {"action": "cart", "item": shown[1]},
    lambda shown: {"action": "hide", "item": shown[0]},
    lambda shown: {"rating": {shown[2]: 4, shown[0]: 2.5}},
    lambda shown: {"grade": {shown[0]: 0, shown[1]: 3}},
    lambda shown: {"choice": "second"},
    lambda shown: {"choice": "equal"},
    lambda shown: {"none": True},
    lambda shown: {"clicks": []},
]


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    with small_loop(tmp_path / "loop", n_items=4, n_features=2) as loop:
        yield loop


# ---------------------------------------------------------------------------- a loop carried over


@pytest.mark.parametrize("store_text", [True, False])
@pytest.mark.parametrize("learner", ["posterior", "second-order", "posterior:swap=0"])
def test_a_loop_carried_over_is_the_same_bit_for_bit(tmp_path: Path, learner: str, store_text: bool) -> None:
    with busy(tmp_path / "one", learner, store_text=store_text) as one:
        told = export(one)
        with empty_copy(tmp_path / "two", one.manifest) as two:
            outcomes = brought(two, told)
            assert set(status(outcomes)) == {"applied"}, [o for o in outcomes if o.status != "applied"][:3]
            assert len(one.projection.model.people) > 2  # or there is little to compare
            assert bits(two) == bits(one)
            assert two.verify() == []
            assert two.items == one.items
            asked = {"person": "p1", "context": SHOPS[2], "prior": {"i1": 1.0}}
            assert two.decide(id="next", **asked)[:3] == one.decide(id="next", **asked)[:3]


@pytest.mark.parametrize("batch", [1, 7, 10_000])
def test_how_many_lines_are_taken_together_changes_nothing(tmp_path: Path, batch: int) -> None:
    with busy(tmp_path / "one") as one, empty_copy(tmp_path / "two", one.manifest) as two:
        assert set(status(brought(two, export(one), batch=batch))) == {"applied"}
        assert bits(two) == bits(one)


def test_of_long_lines_fewer_are_taken_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are waiting never have more bytes than they may, but for one line alone."""
    file, waiting = tmp_path / "one.jsonl", list[int]()
    monkeypatch.setattr("heedful.io.BATCH_BYTES", 3_000)
    with busy(tmp_path / "one") as one, empty_copy(tmp_path / "two", one.manifest) as two:
        file.write_text("".join(json.dumps(line) + "\n" for line in export(one)))
        sizes = {each.number: each.size for each in read_lines(file)}
        assert sum(sizes.values()) > 20_000 > 3_000 > max(sizes.values())
        add = Importer.add

        def added(self: Importer, line: Any) -> None:
            add(self, line)
            waiting.append(sum(sizes[each.number] for each in self._waiting))

        monkeypatch.setattr(Importer, "add", added)
        assert {outcome.status for outcome in import_lines(two, read_lines(file))} == {"applied"}
        assert 2_000 < max(waiting) <= 3_000
        assert bits(two) == bits(one)


@pytest.mark.parametrize("store_text", [True, False])
def test_the_same_lines_twice_change_nothing(tmp_path: Path, store_text: bool) -> None:
    with busy(tmp_path / "one", store_text=store_text) as one, empty_copy(tmp_path / "two", one.manifest) as two:
        told = export(one)
        brought(two, told)
        before, counts = bits(two), two.projection.log.counts()
        assert set(status(brought(two, told))) == {"duplicate"}
        assert (bits(two), two.projection.log.counts()) == (before, counts)
        # Nor do they where they came from.
        before, counts = bits(one), one.projection.log.counts()
        assert set(status(brought(one, told))) == {"duplicate"}
        assert (bits(one), one.projection.log.counts()) == (before, counts)


def test_what_was_exported_twice_is_the_same_but_for_its_order(tmp_path: Path) -> None:
    def sorted_lines(loop: Loop) -> list[str]:
        return sorted(json.dumps(line, sort_keys=True) for line in export_lines(loop))

    with busy(tmp_path / "one") as one, empty_copy(tmp_path / "two", one.manifest) as two:
        brought(two, export(one))
        assert sorted_lines(two) == sorted_lines(one)


def test_decisions_about_items_that_were_withdrawn_since_are_duplicates_the_second_time(tmp_path: Path) -> None:
    with small_loop(tmp_path / "one", n_items=4, n_features=2) as one:
        for id, person in (("d", "p"), ("e", "q")):
            one.decide(["i0", "i1"], id=id, person=person)
        one.withdraw("i1")
        told = export(one)
        decisions = [line for line in told if line["kind"] == "decision"]
        with empty_copy(tmp_path / "two", one.manifest) as two:
            assert set(status(brought(two, told))) == {"applied"}
            assert set(status(brought(two, told))) == {"duplicate"}
            with rehearse(two.path) as dry:
                assert set(status(brought(dry, told))) == {"duplicate"}
            [other] = brought(two, [decisions[0] | {"candidates": ["i1", "i2"], "shown": ["i1"]}])
            reason = "decision d is in the log already, with other content: other candidates"
            assert (other.status, other.reason) == ("rejected", reason)
            [new] = brought(two, [decisions[0] | {"id": "new"}])
            assert (new.status, new.reason) == (
                "rejected",
                "candidates: expected items on offer, such as 'i0', 'i2', 'i3', got 'i1'; put it on offer first",
            )
        one.forget("q")
        assert [each.reason for each in brought(one, decisions)] == [None, "decision e was forgotten"]


def test_a_file_that_was_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    with busy(tmp_path / "one") as one, empty_copy(tmp_path / "two", one.manifest) as two:
        told = export(one)
        for cut in (5, 30, 31, 77):
            brought(two, told[:cut])
        brought(two, told)
        assert bits(two) == bits(one)
        assert two.items == one.items


def test_somebody_forgotten_is_in_no_export(tmp_path: Path) -> None:
    with busy(tmp_path / "one") as one, empty_copy(tmp_path / "two", one.manifest) as two:
        with_her = export(one)
        one.forget("p1")
        told = export(one)
        assert "p1" not in json.dumps(told)
        assert set(status(brought(two, told))) == {"applied"}
        assert bits(two) == bits(one)
        # And what is known of her elsewhere does not come back.
        back = [o for o in brought(one, with_her) if o.status != "duplicate"]
        assert {o.status for o in back} == {"rejected"}
        assert all("was forgotten" in str(o.reason) for o in back)


def test_a_decision_about_an_item_as_it_was_keeps_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = rows(4, 2)
    with small_loop(tmp_path / "one", "perceptron", n_items=4, n_features=2) as one:
        submit = one.projection.submit

        def after_a_change(drafts: Any) -> Any:  # by another thread, say, between the question and its answer
            monkeypatch.undo()
            one.put_items([items[0] | {"f0": 50.0}])
            return submit(drafts)

        monkeypatch.setattr(one.projection, "submit", after_a_change)
        one.decide(["i0", "i1"], id="d1")
        one.feedback("d1", better=["i1"])
        one.decide(["i0", "i1"], id="d2")
        one.feedback("d2", better=["i0"])
        first, second = [line for line in export(one) if line["kind"] == "decision"]
        assert second["candidates"] == ["i0", "i1"]
        assert [candidate["id"] for candidate in first["candidates"]] == ["i0", "i1"]
        encoded = one.manifest.encoding.encode(items[0])
        assert first["candidates"][0]["features"] == encoded.tolist()
        with empty_copy(tmp_path / "two", one.manifest) as two:
            assert set(status(brought(two, export(one)))) == {"applied"}
            assert bits(two) == bits(one)


def test_a_chain_is_told_so_that_each_click_is_found_where_it_was(loop: Loop) -> None:
    shown = {"one": ["i0", "i1"], "two": ["i2", "i3"], "three": ["i3", "i1"], "four": ["i2"]}
    for id, names in shown.items():
        loop.record(names, names, id=id)
    loop.feedback("one", clicks=["i0", "i3", "i2"], chain=["three", "two", "four"], id="e")
    told = export(loop)
    assert told[-1]["chain"] == ["three", "two"]  # i3 is in both, and was found in the first of them
    assert told[-1]["clicks"] == ["i0", "i3", "i2"]
    assert set(status(brought(loop, told))) == {"duplicate"}


def test_attributes_come_back_in_their_order_and_as_they_were(tmp_path: Path) -> None:
    items = [{"f0": j / 3, "id": j, "note": f"n{j}"} for j in range(5)]
    with Loop.create(tmp_path / "one", encoding=infer(items, identifier="id"), items=items) as one:
        told = export(one)
        assert [list(line.items())[1:] for line in told] == [list(item.items()) for item in items]
        assert set(status(brought(one, told))) == {"duplicate"}
        assert one.manifest.encoding.places["note"] == range(1, 1)  # it tells nothing apart, but is kept
        assert status(brought(one, [told[0] | {"note": "another"}, told[0]])) == ["applied", "applied"]


def test_texts_are_carried_over(tmp_path: Path) -> None:
    with Loop.create(tmp_path / "one", encoding=TEXTS, settings=Settings(k=1)) as one:
        d = one.decide([{"id": "a", "text": "Dear Sir, I regret."}, {"text": "hi!"}], id="d")
        one.feedback(d.id, edit="Hello, sorry about that.", id="e")
        told = export(one)
        assert told[0]["candidates"] == [{"id": "a", "text": "Dear Sir, I regret."}, {"text": "hi!"}]
        assert told[1]["edit"] == "Hello, sorry about that."
        with empty_copy(tmp_path / "two", one.manifest) as two:
            brought(two, told)
            assert bits(two) == bits(one)


def test_an_attribute_may_be_called_as_a_field_is(tmp_path: Path) -> None:
    cars = [{"name": f"n{j}", "kind": "van" if j % 2 else "car", "id": j * 7, "time": f"{j}"} for j in range(8)]
    encoding = infer(cars, identifier="name")
    with (
        Loop.create(tmp_path / "one", encoding=encoding, items=cars) as one,
        empty_copy(tmp_path / "two", one.manifest) as two,
    ):
        told = export(one)
        assert told[0] == {"kind": "item", "id": "n0", "attributes": cars[0]}
        assert set(status(brought(two, told))) == {"applied"}
        d = [loop.decide(id="d") for loop in (one, two)]
        assert d[0].shown == d[1].shown
        assert export(two)[:8] == told


def test_what_one_line_of_each_kind_says(tmp_path: Path) -> None:
    with small_loop(tmp_path / "one", "perceptron", n_items=3, n_features=2, control=1.0) as loop:
        d = loop.decide(["i0", "i1", "i2"], person="p", prior=[1.0, 3.0, 2.0], id="d", deferred=True)
        loop.activate("d")
        loop.feedback("d", rating={"i1": 4, "i0": 2}, id="e")
        loop.undo("e")
        loop.withdraw("i1")
        *items, decision, activate, feedback, undo, withdraw = export(loop)
        assert items == [{"kind": "item", **row} for row in rows(3, 2)]
        assert withdraw == {"kind": "withdraw", "id": "i1"}
        assert decision.pop("learner").startswith("perceptron@")
        times = [line.pop("time") for line in (decision, activate, feedback, undo)]
        assert times == sorted(times)
        assert all(time.endswith("Z") and len(time) in (20, 27) for time in times)
        z = 1.5**0.5
        assert np.allclose(decision.pop("prior"), [-z, z, 0.0])
        assert decision == {
            "kind": "decision",
            "id": "d",
            "person": "p",
            "candidates": ["i0", "i1", "i2"],
            "shown": ["i1", "i2", "i0"],
            "standardised": True,
            "probability": d.probability,
            "arm": "control",
            "deferred": True,
        }
        assert activate == {"kind": "activate", "decision": "d"}
        assert feedback == {"kind": "feedback", "id": "e", "decision": "d", "rating": {"i1": 4.0, "i0": 2.0}}
        assert undo == {"kind": "undo", "id": "undo-e", "event": "e"}


# ---------------------------------------------------------------------------- somebody else's lines

DECISION = {"kind": "decision", "id": "d", "candidates": ["i0", "i1", "i2"], "shown": ["i1", "i0"]}
CLICK = {"kind": "feedback", "id": "e", "decision": "d", "clicks": ["i0"]}


def test_somebody_elses_decision_teaches(loop: Loop) -> None:
    time = "2026-01-31T12:00:00+01:00"
    told = [DECISION | {"time": time, "person": "p", "prior": [5, 1, 3]}, CLICK | {"time": "2026-01-31 11:00:05"}]
    assert status(brought(loop, told)) == ["applied", "applied"]
    event = loop.projection.log.find("decision", "d")
    assert event is not None
    assert (event.time, event.subject) == (1_769_857_200_000_000, "p")  # 2026-01-31T11:00:00Z
    answer = loop.projection.log.find("feedback", "e")
    assert answer is not None
    assert answer.time - event.time == 5_000_000
    known = loop.projection.find_decision("d")
    assert known is not None
    assert (known.record.arm, known.record.probability, known.record.shown) == ("imported", None, (1, 0))
    assert np.allclose(known.record.prior, np.array([2.0, -2.0, 0.0]) / (8 / 3) ** 0.5)
    assert bits(loop) != bits_of(Model(loop.learner, loop.manifest))


def test_an_item_may_change_and_change_back(loop: Loop) -> None:
    first = {"kind": "item", "id": "new", "f0": 1.0, "f1": 2.0}
    told = [
        first,
        first | {"f0": 3.0},
        first,
        DECISION | {"candidates": ["new", "i0"], "shown": ["new"]},
        first | {"f1": 0},
    ]
    assert status(brought(loop, told)) == ["applied"] * 5
    assert status(brought(loop, told)) == ["duplicate"] * 5
    known = loop.projection.find_decision("d")
    assert known is not None
    at = [event for event in loop.projection.log.events(kinds=["item"]) if event.subject == "new"]
    assert [json.loads(event.payload)["f0"] for event in at] == [1.0, 3.0, 1.0, 1.0]
    assert known.record.items[0] == at[2].seq  # the item as it was when that was decided
    assert status(brought(loop, [{"kind": "withdraw", "id": "new"}, first])) == ["applied", "applied"]
    assert "new" in loop.items


def test_the_same_item_again_is_a_duplicate(loop: Loop) -> None:
    told = [{"kind": "item", **row} for row in rows(4, 2)]
    assert status(brought(loop, [*told, told[0]])) == ["duplicate"] * 5


def test_lines_that_come_too_early_are_rejected_as_one_at_a_time(loop: Loop) -> None:
    later = {"kind": "activate", "decision": "d"}
    told = [CLICK, DECISION | {"deferred": True}, CLICK | {"id": "e2"}, later, CLICK, {"kind": "undo", "event": "e3"}]
    told += [CLICK | {"id": "e3"}, {"kind": "undo", "event": "e"}, {"kind": "undo", "event": "e3", "id": "u"}]
    wanted = ["rejected", "applied", "rejected", "applied", "applied", "rejected", "applied", "applied", "applied"]
    outcomes = brought(loop, told)
    assert status(outcomes) == wanted
    assert [o.reason for o in outcomes if o.status == "rejected"] == [
        "decision d is not in the log",
        "decision d was deferred and never activated: it was not shown",
        "feedback e3 is not in the log",
    ]


def test_a_decision_about_a_pending_item_finds_it_and_one_that_is_gone_does_not(loop: Loop) -> None:
    item = {"kind": "item", "id": "x", "f0": 0, "f1": 0}
    told = [DECISION | {"id": "a", "candidates": ["x"], "shown": ["x"]}, item]
    told += [DECISION | {"id": "b", "candidates": ["x"], "shown": ["x"]}, {"kind": "withdraw", "id": "x"}]
    told += [DECISION | {"id": "c", "candidates": ["x"], "shown": ["x"]}, {"kind": "withdraw", "id": "x"}]
    outcomes = brought(loop, told)
    assert status(outcomes) == ["rejected", "applied", "applied", "applied", "rejected", "duplicate"]
    assert (
        outcomes[0].reason
        == "candidates: expected items on offer, such as 'i0', 'i1', 'i2', got 'x'; put it on offer first"
    )


def test_the_same_id_with_other_content_is_rejected(loop: Loop) -> None:
    brought(loop, [DECISION, CLICK])
    told = [
        DECISION | {"shown": ["i0"]},
        DECISION | {"candidates": ["i1", "i0"]},
        CLICK,
        DECISION,
        CLICK | {"clicks": ["i1"]},
        CLICK,
    ]
    outcomes = brought(loop, told)
    assert status(outcomes) == ["rejected", "rejected", "rejected", "duplicate", "rejected", "duplicate"]
    assert [o.reason for o in outcomes if o.status == "rejected"] == [
        "decision d is in the log already, with other content: another list",
        "decision d is in the log already, with other content: other candidates",
        "decision d of this file was rejected, so its answer is not joined to the decision d in the log",
        "feedback e is in the log already, with other content",
    ]


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {},
        "kind: expected item, withdraw, decision, activate, feedback, undo, rollback, "
        "experiment, stop, promote, style, got none",
    ),
    (
        {"kind": "click"},
        "kind: expected item, withdraw, decision, activate, feedback, undo, rollback, "
        "experiment, stop, promote, style, got 'click'",
    ),
    (
        {"kind": ["item"]},
        "kind: expected item, withdraw, decision, activate, feedback, undo, rollback, "
        "experiment, stop, promote, style, got ['item']",
    ),
    ({"kind": "item", "f0": 1}, "id: expected a text of 1 to 200 printable characters, got none"),
    ({"kind": "withdraw", "id": "a", "f0": 1}, "withdraw: expected id, got another field: 'f0'"),
    (
        DECISION | {"show": 3},
        "decision: expected id, person, time, candidates, shown, context, prior, standardised, "
        "probability, arm, learner, seed, proposal, deferred, predicted, unknown, rival, "
        "after, got another field: 'show'",
    ),
    (DECISION | {"id": ""}, "id: expected a text of 1 to 200 printable characters, got ''"),
    (DECISION | {"id": None}, "id: expected a text of 1 to 200 printable characters, got none"),
    (DECISION | {"person": {}}, "person: expected a text of 1 to 200 printable characters, got {}"),
    (DECISION | {"time": 17}, "time: expected a time such as 2026-01-31T12:00:00Z, got 17"),
    (DECISION | {"time": "soon"}, "time: expected a time such as 2026-01-31T12:00:00Z, got 'soon'"),
    (
        DECISION | {"time": "0001-01-01T00:00:00+12:00"},
        "time: expected a time such as 2026-01-31T12:00:00Z, got '0001-01-01T00:00:00+12:00'",
    ),
    (DECISION | {"candidates": "i0"}, "candidates: expected a list of names or of objects, got 'i0'"),
    (DECISION | {"candidates": []}, "candidates: expected a list of names or of objects, got []"),
    (DECISION | {"candidates": ["i0", "i0"], "shown": ["i0"]}, "candidates: expected each once, got 'i0' 2 times"),
    (DECISION | {"shown": []}, "shown: expected a list of 1 to 100000 names, got []"),
    (DECISION | {"shown": ["i1", "i3"]}, "shown: expected candidates, got 'i3'"),
    (DECISION | {"probability": 0}, "probability: expected a number above 0, up to 1, or null, got 0"),
    (DECISION | {"probability": 1.5}, "probability: expected a number above 0, up to 1, or null, got 1.5"),
    (DECISION | {"probability": "1"}, "probability: expected a finite number, got '1'"),
    (DECISION | {"arm": "left"}, "arm: expected learned, control, sampled, interleaved, imported, got 'left'"),
    (DECISION | {"learner": 3}, "learner: expected a text of at most 1000 characters, got 3"),
    (DECISION | {"seed": -1}, "seed: expected a whole number, 0 or more, got -1"),
    (DECISION | {"proposal": [1]}, "proposal: expected an object, got [1]"),
    (DECISION | {"proposal": {"swap": 1e-300}}, "proposal.swap: expected 0, or a number from 0.001 to 0.5, got 1e-300"),
    (DECISION | {"proposal": {"swap": 0.75}}, "proposal.swap: expected 0, or a number from 0.001 to 0.5, got 0.75"),
    (DECISION | {"proposal": {"swap": "half"}}, "proposal.swap: expected a finite number, got 'half'"),
    (DECISION | {"context": "x"}, "context: expected an object, got 'x'"),
    (DECISION | {"deferred": 1}, "deferred: expected true or false, got 1"),
    (DECISION | {"standardised": "yes"}, "standardised: expected true or false, got 'yes'"),
    (DECISION | {"standardised": True}, "prior: expected 3 scores, one for each candidate, got None"),
    (
        DECISION | {"standardised": True, "prior": [1, 2]},
        "prior: expected 3 scores, one for each candidate, got [1, 2]",
    ),
    (DECISION | {"standardised": True, "prior": [1, 2, "3"]}, "prior[2]: expected a finite number, got '3'"),
    ({"kind": "activate"}, "decision: expected a text of 1 to 200 printable characters, got none"),
    ({"kind": "activate", "decision": "d", "id": "x"}, "activate: expected decision, time, got another field: 'id'"),
    (CLICK | {"id": None}, "id: expected a text of 1 to 200 printable characters, got none"),
    (CLICK | {"decision": None}, "decision: expected a text of 1 to 200 printable characters, got none"),
    (
        CLICK | {"thumb": "up"},
        "feedback: expected one of clicks, better, edit, thumb, reward, action, actions, rating, grade, choice, none, "
        "got clicks and thumb",
    ),
    (CLICK | {"time": False}, "time: expected a time such as 2026-01-31T12:00:00Z, got False"),
    (CLICK | {"click": "i0"}, "feedback: expected clicks, chain, got another field: 'click'"),
    ({"kind": "undo"}, "event: expected a text of 1 to 200 printable characters, got none"),
    ({"kind": "undo", "event": "e", "id": 1.5}, "id: expected a text of 1 to 200 printable characters, got 1.5"),
    ({"kind": "undo", "event": "e", "why": "x"}, "undo: expected id, event, time, got another field: 'why'"),
]


@pytest.mark.parametrize(
    ("record", "told"), WRONG, ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else ""
)
def test_a_line_of_a_wrong_form_says_what_was_wanted(loop: Loop, record: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as raised:
        check_line(record)
    assert str(raised.value) == told
    counts = loop.projection.log.counts()
    [outcome] = brought(loop, [record])
    assert (outcome.status, outcome.reason) == ("rejected", told)
    assert loop.projection.log.counts() == counts


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "item", "id": "a", "f0": "far"}, "f0: expected"),
    ({"kind": "item", "id": "a", "attributes": {"id": "b", "f0": 1}}, "id: expected 'b', as in the column id, got 'a'"),
    ({"kind": "item", "id": "a", "features": [1.0]}, "features: expected shape (2,), got (1,)"),
    ({"kind": "withdraw", "id": "nobody"}, "item nobody is not on offer"),
    (
        DECISION | {"candidates": ["i0", "zz"], "shown": ["i0"]},
        "candidates: expected items on offer, such as 'i0', 'i1', 'i2', got 'zz'; put it on offer first",
    ),
    (DECISION | {"candidates": [{"id": "a"}, "i0"], "shown": ["a"]}, "candidates[1]: expected an object"),
    (DECISION | {"candidates": [{"id": "a", "f0": "x"}], "shown": ["a"]}, "candidates[0]: f0: expected"),
    (DECISION | {"candidates": [{"id": "a"}], "shown": ["b"]}, "shown: expected candidates, got 'b'"),
    (DECISION | {"prior": [1, 2]}, "prior: expected 3 scores, one for each candidate, got [1, 2]"),
    (DECISION | {"prior": {"zz": 1}}, "prior: expected scores of candidates, got one of 'zz'"),
    ({"kind": "activate", "decision": "zz"}, "decision zz is not in the log"),
    (CLICK | {"decision": "zz"}, "decision zz is not in the log"),
    ({"kind": "undo", "event": "zz"}, "feedback zz is not in the log"),
]


@pytest.mark.parametrize(
    ("record", "told"), MISFITS, ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else ""
)
def test_a_line_that_does_not_fit_the_loop_is_rejected(loop: Loop, record: dict[str, Any], told: str) -> None:
    counts = loop.projection.log.counts()
    good = DECISION | {"id": "good"}
    first, last = brought(loop, [record, good])
    assert first.status == "rejected"
    assert str(first.reason).startswith(told)
    assert last.status == "applied"  # the others go on
    assert loop.projection.log.counts() == counts | {"decision": 1}


def test_what_is_no_object_is_a_line_that_was_rejected(loop: Loop, tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text('{"kind": "nothing"}\n\nnot json\n' + json.dumps(DECISION) + '\n{"kind": "item", "kind": "item"}\n')
    outcomes = sorted(import_lines(loop, read_lines(file)))
    assert [(o.line, o.kind, o.status) for o in outcomes] == [
        (1, "line", "rejected"),
        (3, "line", "rejected"),
        (4, "decision", "applied"),
        (5, "line", "rejected"),
    ]
    assert outcomes[3].reason == "key: expected each once, got 'kind' twice"


# ---------------------------------------------------------------------------- without writing


def contents(loop: Loop) -> dict[str, bytes]:
    """The loop's files, without the one that says who is reading."""
    return {file.name: file.read_bytes() for file in loop.path.iterdir() if not file.name.endswith("-shm")}


@pytest.mark.parametrize("store_text", [True, False])
def test_a_rehearsal_says_what_an_import_would_and_writes_nothing(tmp_path: Path, store_text: bool) -> None:
    with busy(tmp_path / "one", store_text=store_text) as one, empty_copy(tmp_path / "two", one.manifest) as two:
        told = export(one)
        told += [CLICK, CLICK | {"decision": "need2", "id": "e1"}, {"kind": "undo", "event": "e1", "id": "u"}]
        told += [told[0], {"kind": "undo", "event": "nothing"}, told[30], told[50] | {"id": "fresh"}]
        brought(two, told[:40])
        before = contents(two)
        with rehearse(two.path) as copy:
            said = brought(copy, told)
        assert contents(two) == before
        assert said == brought(two, told)
        assert {"applied", "duplicate", "rejected"} == set(status(said))


def test_a_rehearsal_of_a_loop_that_forgot_somebody(tmp_path: Path) -> None:
    with busy(tmp_path / "one") as one:
        told = export(one)
        one.forget("p1")
        more = [CLICK | {"decision": "new"}, {"kind": "undo", "event": "e"}]
        told = [*told, DECISION | {"id": "new"}, *more]
        with rehearse(one.path) as copy:
            said = brought(copy, told)
        assert said == brought(one, told)


@pytest.mark.slow
def test_a_rehearsal_of_a_loop_in_a_database(tmp_path: Path, postgres: str) -> None:
    with busy(tmp_path / "one") as one, empty_copy(f"{postgres}#two", one.manifest) as two:
        told = export(one)
        brought(two, told[:40])
        head = two.projection.log.last()
        with rehearse(f"{postgres}#two") as copy:
            said = brought(copy, told)
        assert two.projection.log.last() == head
        assert said == brought(two, told)
