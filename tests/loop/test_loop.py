"""A loop from outside: what is shown, what teaches, what stays, what a restart changes (nothing)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from heedful import TEXTS, Loop, Settings, infer
from heedful.learners.registry import find_learners
from heedful.loop.log import now
from kinds import Kind, each_kind
from loops import as_often_as_said, bits, bits_from_scratch, rows, small_loop, specs

DAY = 24 * 3600 * 10**6  # microseconds
MANY = [f"d{j}" for j in range(4000)]


def perturbs(learner: str) -> bool:
    """Whether what is shown is drawn at random."""
    return learner.startswith(("posterior", "dueling"))


def counts(loop: Loop) -> dict[str, int]:
    return loop.projection.log.counts()


def learned(loop: Loop) -> Any:
    """The weights of what all share, the caller's score last."""
    return np.array(loop.learner.weights(loop.projection.model.shared))


def threaded(f: Any, values: Any) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(f, values))


# ---------------------------------------------------------------------------- the caller's order, and learning


@pytest.mark.parametrize("learner", specs())
def test_before_anything_was_learned_the_callers_order_is_what_counts(folder: Path, learner: str) -> None:
    """In the order of the candidates, or by the caller's score where there is one, equal scores in the order given;
    learners that draw something draw it around that order."""
    names = ["i3", "i0", "i7", "i1"]
    settings = {"exploration": 0.0} if learner.startswith("posterior") else {}
    with small_loop(folder / "l", learner, control=1.0 if learner.startswith("dueling") else 0.0, **settings) as loop:
        assert loop.decide(names).shown == tuple(names)
        assert loop.decide(names, prior=[0.1, 3, -2, 0.2]).shown == ("i0", "i1", "i3", "i7")
        assert loop.decide(names, prior={"i7": 5.0, "i0": 5.0, "i1": 6.0, "i3": 0.0}).shown == ("i1", "i0", "i7", "i3")
        assert loop.decide(names, prior=[7, 7, 7, 7]).shown == tuple(names)
        assert loop.decide(names, prior=np.array([1, 2, 3, 4])).shown == tuple(reversed(names))
        assert loop.decide(names, prior=[1, 2, 3, 4], show=2).shown == ("i1", "i7")
        assert loop.version == 0


# ---------------------------------------------------------------------------- candidates


@each_kind
def test_items_that_had_other_attributes_are_named(kind: Kind, folder: Path) -> None:
    """Once each, whether they changed before or in the same call; not those that are new, or were off offer."""
    with kind.make(folder / "l", n_items=4) as loop:
        rows = [loop.projection.catalogue.attributes(loop.projection.catalogue.current[name]) for name in loop.items]
        loop.withdraw(loop.items[3])
        other = [{**row, "note": "another"} for row in rows]
        assert loop.put_items(rows[:2]).changed == ()
        made = loop.put_items([other[1], rows[0], other[3], {**other[1], "note": "a third"}])
        assert (made.put, made.changed) == (3, (loop.items[1],))


def test_unknown_categories_are_counted(folder: Path) -> None:
    items = [{"id": f"c{j}", "colour": ["red", "blue"][j % 2], "size": float(j)} for j in range(6)]
    with Loop.create(folder / "l", encoding=infer(items, identifier="id"), items=items) as loop:
        assert loop.unknown == Counter()
        loop.put_items([{"id": "x", "colour": "green", "size": 1.0}])
        loop.decide([{"id": "y", "colour": "green", "size": 1.0}, {"id": "z", "colour": "pink", "size": 1.0}])
        assert loop.unknown == Counter({"colour=green": 2, "colour=pink": 1})


# ---------------------------------------------------------------------------- the control, and probabilities


@pytest.mark.slow
def test_the_control_has_its_share(folder: Path) -> None:
    """Of 4000 ids about 1 in 5, within the bounds of chance at 1 in 10^6, and it keeps the caller's order."""
    with small_loop(folder / "l", "perceptron", control=0.2) as loop:
        loop.feedback(loop.decide(["i0", "i1"], id="first").id, better="i1")
        made = threaded(lambda id: loop.decide(["i0", "i1"], id=id), MANY)
        control = [d for d in made if d.arm == "control"]
        assert binom.ppf(1e-6, 4000, 0.2) <= len(control) <= binom.ppf(1 - 1e-6, 4000, 0.2)
        assert {d.shown for d in control} == {("i0", "i1")}
        assert {d.shown for d in made if d.arm == "learned"} == {("i1", "i0")}


def test_the_arm_is_in_the_id_and_the_seed(folder: Path) -> None:
    """Whatever is asked, by whom, when: the same id has the same arm; with another seed others have."""
    arms = []
    for j, seed in enumerate((0, 0, 1)):
        with small_loop(
            folder / f"l{j}", ["perceptron", "second-order", "perceptron"][j], control=0.5, seed=seed
        ) as loop:
            if j == 1:
                loop.feedback(loop.decide(["i0", "i1"]).id, better="i1")
            arms.append([loop.decide(["i0", f"i{j + 1}"], id=id, person=f"p{j}").arm for id in MANY[:60]])
    assert arms[0] == arms[1]
    assert arms[0] != arms[2]


@pytest.mark.parametrize("learner", [s for s in specs() if not perturbs(s)])
def test_probabilities_of_all_lists_are_one(folder: Path, learner: str) -> None:
    """Of learners that draw nothing: the caller's order by the control's share, the learned one by the rest; where
    they agree, 1."""
    with small_loop(folder / "l", learner, control=0.3) as loop:
        assert {loop.decide(["i0", "i1", "i2"]).probability for _ in range(20)} == {1.0}
        for _ in range(12):
            loop.feedback(loop.decide(["i0", "i1", "i2"]).id, better=["i2", "i1", "i0"])
        made = [loop.decide(["i0", "i1", "i2"], id=id) for id in MANY[:60]]
        found = {d.shown: d.probability for d in made}
        assert found == {d.shown: d.probability for d in reversed(made)}
        assert set(found) <= set(permutations(["i0", "i1", "i2"]))
        assert sorted(found.values()) == pytest.approx([0.3, 0.7])
        assert found["i0", "i1", "i2"] == pytest.approx(0.3)


def test_the_dueling_bandit_cannot_say_how_probable_a_list_was(folder: Path) -> None:
    with small_loop(folder / "l", "dueling-bandit") as loop:
        assert loop.decide(["i0", "i1", "i2"]).probability is None


# ---------------------------------------------------------------------------- ids


def test_the_same_id_from_eight_threads_is_one_decision(folder: Path) -> None:
    names = [f"i{j}" for j in range(6)]
    with small_loop(folder / "l", "posterior", control=0.3) as loop:
        for round in range(10):
            made = threaded(lambda _, id=f"d{round}": loop.decide(names, id=id, person="p"), range(16))
            assert len(set(made)) == 1
        assert counts(loop)["decision"] == 10


def test_the_same_feedback_from_eight_threads_counts_once(folder: Path) -> None:
    with small_loop(folder / "l", control=0.0) as loop:
        d = loop.decide(["i0", "i1", "i2"])
        answers = threaded(lambda _: loop.feedback(d.id, clicks=["i2"], id="e"), range(16))
        assert Counter(a.status for a in answers) == Counter(applied=1, duplicate=15)
        assert len({a.seq for a in answers}) == 1
        assert loop.verify() == []


def test_many_threads_give_one_fold(folder: Path) -> None:
    """Decisions and answers of eight threads at once: what was learned is the fold of the log, bit for bit."""
    with small_loop(folder / "l", "second-order", shrink=2.0) as loop:

        def work(t: int) -> None:
            for j in range(12):
                d = loop.decide([f"i{(t + s) % 12}" for s in range(4)], person=f"p{t % 3}")
                loop.feedback(d.id, clicks=[d.shown[(t + j) % 4]], id=f"e{t}-{j}")
                if j % 5 == 4:
                    loop.undo(f"e{t}-{j}")

        threaded(work, range(8))
        assert loop.verify() == []
        assert counts(loop)["feedback"] == 96
        assert counts(loop)["undo"] == 16


# ---------------------------------------------------------------------------- feedback


def test_many_at_once_are_as_one_after_the_other(folder: Path) -> None:
    good: list[Any] = [{"decision": f"d{t}", "id": f"e{t}", "clicks": ["i2", "i1"]} for t in range(5)]
    other = {**good[1], "clicks": ["i1"]}
    no_list = {"decision": "d3", "id": 9, "clicks": "i2"}
    nobody = {"decision": "nobody", "id": 9, "clicks": []}
    events = [good[0], good[1], {**good[1]}, other, 5, no_list, nobody, *good[2:]]
    with small_loop(folder / "many", control=0.0) as many, small_loop(folder / "one", control=0.0) as one:
        for t in range(5):
            many.decide(["i0", "i1", "i2"], id=f"d{t}")
            one.decide(["i0", "i1", "i2"], id=f"d{t}")
        answers = many.feedback_many(iter(events))
        wanted = ["applied", "applied", "duplicate", *["rejected"] * 4, "applied", "applied", "applied"]
        assert [a.status for a in answers] == wanted
        assert [a.event for a in answers] == ["e0", "e1", "e1", "e1", "", "9", "9", "e2", "e3", "e4"]
        for answer, reason in zip(answers[3:], ("other content", "expected an object", "clicks: expected", "nobody")):
            assert reason in str(answer.reason)
        for event in good:
            assert one.feedback(event["decision"], id=event["id"], clicks=event["clicks"]).status == "applied"
        assert bits(many) == bits(one)
        assert counts(many) == counts(one)
        assert many.feedback_many([]) == []


def test_late_feedback_is_marked_and_learned(folder: Path) -> None:
    with small_loop(folder / "l", control=0.0, late_after=60.0) as loop:
        t = now()
        made = loop.record(["i0", "i1"], ["i0", "i1"], id="r", time=t)
        on_time = loop.feedback(made.id, clicks=["i1"], time=t + 60 * 10**6)
        late = loop.feedback(made.id, clicks=["i1"], time=t + 60 * 10**6 + 1)
        early = loop.feedback(made.id, clicks=["i1"], time=t - DAY)  # clocks differ: no reason to refuse
        assert [(a.late, a.learned) for a in (on_time, late, early)] == [(False, True), (True, True), (False, True)]


# ---------------------------------------------------------------------------- texts that are not kept


SECRET = "The heron waited, grey and patient, at the edge of the frozen reservoir"
CORRECTED = "A kingfisher, all in all, would have been quicker than any cormorant"


def texts_loop(path: Path, store_text: bool) -> Loop:
    return Loop.create(
        path,
        encoding=TEXTS,
        items=[{"id": "t0", "text": SECRET + "!"}, {"id": "t1", "text": "Another one. " * 3}],
        learner="perceptron",
        context=infer([{"task": f"{w} {w}s"} for w in ("write", "mend", "cut", "say")], identifier=""),
        crosses=[("task", "text")],
        settings=Settings(control=0.0, k=1, store_text=store_text),
    )


def texts_life(loop: Loop) -> None:
    drafts = [{"id": "a", "text": SECRET}, {"id": "b", "text": "It rained. It rained. It rained."}]
    loop.decide(drafts, id="d1", person="p", context={"task": "mend mends", "note": SECRET[::-1]})
    loop.feedback("d1", edit=CORRECTED, id="e1")
    loop.feedback("d1", edit={"text": CORRECTED + "?"}, item="b", id="e2")
    loop.feedback("d1", edit=SECRET + CORRECTED, nearest=True, id="e3")
    loop.decide(["t0", "t1"], id="d2", person="p")
    loop.feedback("d2", better="t1", id="e4")
    loop.snapshot()


def test_texts_that_are_not_stored_are_nowhere(folder: Path) -> None:
    """Not in the log, its write-ahead file, a snapshot; and learning is the same, bit for bit."""
    found = []
    for store_text in (True, False):
        path = folder / f"l{store_text}"
        with texts_loop(path, store_text) as loop:
            texts_life(loop)
            found.append(bits(loop))
            assert np.any(learned(loop))
            written = b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
        written += b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
        for text in (SECRET, CORRECTED, SECRET[::-1], "heron", "reservoir", "kingfisher", "cormorant", "mend mends"):
            assert (text.encode() in written) == store_text, text
        with Loop.open(path) as loop:
            assert bits(loop) == found[-1]
            assert loop.verify() == []
            assert loop.feedback("d1", edit=CORRECTED, id="e1").status == "duplicate"
    assert found[0] == found[1]


# ---------------------------------------------------------------------------- making one


def test_a_loop_that_cannot_be_made_leaves_nothing(folder: Path) -> None:
    items = rows(3, 2)
    encoding = infer(items, identifier="id")
    for given, message in (
        ({"learner": "convex"}, "radius"),
        ({"settings": Settings(exploration=0.25), "learner": "perceptron"}, "exploration"),
        ({"items": [*items, {"id": "x", "f0": "tall"}]}, "row 4: f0"),
        ({"items": [*items, {"f0": 1.0}]}, "id"),
        ({"crosses": [("device", "f0")]}, "crosses"),
        ({"context": infer([{"d": 1.0}, {"d": 2.0}], identifier=""), "crosses": [("d", "nothing")]}, "nothing"),
    ):
        with pytest.raises(ValueError, match=message):
            Loop.create(folder / "l", **{"encoding": encoding, "items": items, **given})  # type: ignore[arg-type]
        assert list(folder.iterdir()) == []
    Loop.create(folder / "l", encoding=encoding, items=items).close()
    with pytest.raises(FileExistsError):
        Loop.create(folder / "l", encoding=encoding, items=items)
    with pytest.raises(FileNotFoundError):
        Loop.open(folder / "nobody")
    with pytest.raises(FileNotFoundError):
        Loop.create(folder / "no" / "folder", encoding=encoding)
    with pytest.raises(ValueError, match="learner: expected posterior"):
        Loop.open(folder / "l", learner="perceptron")


def test_what_can_no_longer_be_proved_is_said(folder: Path) -> None:
    for j, (settings, learner, words) in enumerate(
        [
            ({}, "posterior", []),
            ({"control": 0.0}, "posterior", ["control 0"]),
            ({"exploration": 0.0}, "posterior", ["exploration 0"]),
            ({"control": 0.0}, "perceptron", ["control 0", "exploration 0"]),
        ]
    ):
        with small_loop(folder / f"l{j}", learner, **settings) as loop:
            assert [told.split(":")[0] for told in loop.caveats] == words


# ---------------------------------------------------------------------------- looking back


@pytest.mark.parametrize("learner", [s for s in specs() if not s.startswith("dueling")])
def test_an_explanation_adds_up(folder: Path, learner: str) -> None:
    """What the features count is the lead of the first over the second, by the model as it was then; what the lessons
    moved and the caller's own score are the lead too. Looking back changes nothing."""
    with small_loop(folder / "l", learner, control=0.0, shrink=1.0) as loop:
        for t in range(6):
            d = loop.decide(["i0", "i1", "i2", "i3"], id=f"d{t}", person="pq"[t % 2], prior=[3, 1, 2, 0])
            loop.feedback(d.id, better=["i3"], id=f"e{t}")
        loop.undo("e1")
        asked = loop.decide(["i0", "i1", "i2"], id="asked", prior=[3, 1, 2])
        w = loop.weights
        loop.feedback("asked", better=["i1"], id="later")
        loop.put_items([{"id": "i0", "f0": 9.0, "f1": 9.0, "f2": 9.0, "f3": 9.0}])
        before = bits(loop), counts(loop)
        told = loop.why("asked", budget=0.0)
        assert (told.decision, told.item, told.next) == ("asked", *asked.shown[:2])
        x = {row["id"]: loop.manifest.encoding.encode(row).astype(float) for row in rows(12, 4)}
        prior = dict(zip(["i0", "i1", "i2"], np.array([1.0, -1.0, 0.0]) / np.std([3, 1, 2])))
        first, second = (dict(zip(w, np.append(x[name], prior[name]))) for name in asked.shown[:2])
        gap = {name: first[name] - second[name] for name in w}
        assert told.lead == pytest.approx(sum(w[name] * gap[name] for name in w))
        assert sum(part.lead for part in told.features) == pytest.approx(told.lead)
        for part in told.features:
            assert (part.weight, part.value) == pytest.approx((w[part.name], first[part.name]))
            assert (part.counts, part.lead) == pytest.approx((w[part.name] * part.value, w[part.name] * gap[part.name]))
        counted = [abs(part.counts) for part in told.features]
        assert counted == sorted(counted, reverse=True)
        assert sum(moved.lead for moved in told.events) + gap[list(w)[-1]] == pytest.approx(told.lead)
        assert {moved.event for moved in told.events} <= {"e0", "e2", "e3", "e4", "e5"}
        assert (bits(loop), counts(loop)) == before
        with pytest.raises(LookupError, match="nobody"):
            loop.why("nobody")


def test_a_learner_of_its_own_proposals_alone_folds_what_another_swapped(folder: Path) -> None:
    """A list in which another learner swapped neighbours is none of its own: corrections of it say nothing to it."""
    with small_loop(folder / "swapped", control=0.0) as loop:
        for t in range(12):
            d = loop.decide(id=f"d{t}")
            loop.feedback(d.id, clicks=[d.shown[1]], id=f"e{t}")
            loop.feedback(d.id, better=[d.shown[2]], id=f"b{t}")
        replayed = loop.evaluate("dueling-bandit").learners[-1]
        assert replayed.lessons == 0
        assert set(replayed.weights.values()) <= {0.0, 1.0}


@pytest.mark.parametrize("n_features", [4, 310], ids=["covariances", "variances"])
def test_the_score_for_all_people_counts_once_for_each(tmp_path: Path, n_features: int) -> None:
    """However much a person says: how much that score counts is not theirs to learn."""
    with small_loop(tmp_path / "l", n_features=n_features, shrink=2.0, control=0.0) as loop:
        for i, person in enumerate(["ben", "ann", "ben", "ann", "ann"]):  # at her first answer all have learned some
            shown = loop.decide(person=person, id=f"d{i}").shown
            loop.feedback(f"d{i}", **({"thumb": "up"} if i == 3 else {"clicks": [shown[2]]}))
        model: Any = loop.projection.model
        own = model._own.weights(model.people["ann"].state)
        assert own[-1] == 0.0
        assert np.abs(own).max() > 0.0


# ---------------------------------------------------------------------------- swaps: what is known of chances


@pytest.mark.slow
@pytest.mark.parametrize(("control", "lessons", "show"), [(0.2, 30, None), (0.0, 0, 3)])
def test_swapped_lists_are_shown_as_often_as_they_say(
    folder: Path, control: float, lessons: int, show: int | None
) -> None:
    """4000 ids, four candidates, a model that disagrees with the caller or a pair across the cut, of which one is seen:
    every list as often as its probability says, and the probabilities of all lists are 1."""
    with small_loop(folder / "l", "posterior", control=control) as loop:
        for _ in range(lessons):
            loop.feedback(loop.decide(["i0", "i1", "i2", "i3"]).id, better=["i3", "i1", "i0", "i2"])
        made = threaded(lambda id: loop.decide(["i0", "i1", "i2", "i3"], id=id, show=show), MANY)
        as_often_as_said(made)
        answers = [loop.feedback(d.id, clicks=[d.shown[-1]]) for d in made[:40]]
        assert {each.status for each in answers} == {"applied"}
        assert loop.notes == []


@pytest.mark.parametrize("learner", ["posterior", "perceptron", "posterior:swap=0", "second-order:epsilon=0.5"])
def test_what_was_not_shown_need_not_be_kept(tmp_path: Path, learner: str) -> None:
    """The model is the same, bit for bit; the log holds what was shown of what came along."""
    rng = np.random.default_rng(4)
    loops = [
        small_loop(tmp_path / f"{keep}", learner, keep_unshown=keep, shrink=3.0, control=0.2) for keep in (True, False)
    ]
    for n in range(60):
        X = rng.integers(-2, 3, (9, 4)).astype(np.float32)  # with ties
        prior = rng.integers(0, 3, 9).tolist() if n % 2 else None
        asked: Any = X if n % 3 else [{"id": f"c{j}", "features": row.tolist()} for j, row in enumerate(X)]
        given = {"prior": prior, "show": 4, "person": f"p{n % 3}", "id": f"d{n}"}
        one, two = (loop.decide(asked, **given) for loop in loops)
        assert one == two
        form: dict[str, Any] = [
            {"clicks": [one.shown[2]]},
            {"better": [one.shown[3], one.shown[1]]},
            {"rating": {one.shown[0]: 1, one.shown[2]: 5}},
            {"thumb": "down", "item": one.shown[1]},
        ][n % 4]
        told = [loop.feedback(one.id, id=f"e{n}", **form) for loop in loops]
        assert told[0] == told[1]
    whole, less = loops
    assert bits(whole) == bits(less) == bits_from_scratch(less)
    assert [loop.why("d7").lead for loop in loops] == [whole.why("d7").lead] * 2
    known = less.projection.find_decision("d5")
    assert len(known.names) == 4
    assert known.record.of == 9
    assert len(known.arrays) == 4 * 4 * 4
    refused = less.feedback("d5", better=[next(str(j) for j in range(9) if str(j) not in known.names)])
    assert (refused.status, "expected candidates of the decision" in str(refused.reason)) == ("rejected", True)
    again = rng.integers(-2, 3, (9, 4)).astype(np.float32)
    assert less.decide(again, person="p2", show=4, id="d5").shown == whole.decide(again, person="p2", id="d5").shown
    with pytest.raises(ValueError, match="other candidates"):
        less.decide(again[:8], person="p2", id="d5")
    size = [sum(len(event.arrays or b"") for event in loop.projection.log.events(0, ["decision"])) for loop in loops]
    assert size[0] == 9 / 4 * size[1]
    for loop in loops:
        assert loop.verify() == []
        loop.close()


def test_what_others_decided_is_not_told_under_an_id_that_showed_something_else(folder: Path) -> None:
    with small_loop(folder / "l", control=0.0, exploration=None) as loop:
        d = loop.decide(["i1", "i2", "i3"], id="d", show=2)
        assert loop.record(["i1", "i2", "i3"], list(d.shown), id="d") == d
        with pytest.raises(ValueError, match="used for another decision"):
            loop.record(["i1", "i2", "i3"], list(reversed(d.shown)), id="d")


def test_what_is_for_simulations_alone_is_no_learner_of_a_loop(tmp_path: Path) -> None:
    alone = [name for name, learner in find_learners().items() if hasattr(learner, "simulation_only")]
    assert set(alone) == {"fixed-order", "random-order", "ranking-svm", "perturbed", "exponentiated"}
    alone[alone.index("exponentiated")] += ":bound=1,signed=false"  # signed, it begins with the caller's order
    for name in alone:
        with pytest.raises(ValueError, match=f"^learner: expected one for loops, got {name}, .* simulations alone: "):
            small_loop(tmp_path / name, name)
    with small_loop(tmp_path / "loop") as loop, pytest.raises(ValueError, match=r"^learner: expected one for loops"):
        loop.evaluate("random-order")
