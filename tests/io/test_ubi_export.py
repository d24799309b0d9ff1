"""What goes out as UBI comes back: the same decisions and clicks, and everything else is counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brought import taken
from heedful import Loop, Settings
from heedful.data.row_report import Report
from heedful.data.ubi import read_ubi
from heedful.features import declare
from heedful.io import export_lines
from heedful.io.formats import FORMATS
from loops import choice_loop, empty_copy, rating_loop, small_loop
from written import write_lines


def written(loop: Loop, report: Report | None = None, **options: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what is written of a loop, by way of JSON."""
    write = FORMATS["ubi"].write
    assert write is not None
    return [(what, json.loads(json.dumps(line))) for what, line in write(loop, report or Report(), options)]


def read_back(path: Path, lines: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[list[dict[str, Any]], Report]:
    """Return what the reader of UBI makes of what was written: queries and events in one file, as bulk files are."""
    write_lines(path, (line for _, line in lines))
    report = Report()
    return list(read_ubi(path, path, report)), report


def into(loop: Loop, lines: Iterable[Mapping[str, Any]]) -> Loop:
    """Import lines, of which none may be rejected."""
    for outcome in taken(loop, json.loads(json.dumps(list(lines)))):
        assert outcome.status == "applied", outcome
    return loop


def shop(path: Path, seed: int = 0, lists: int = 30) -> Loop:
    """A loop in which clicks, actions, nothing and several clicks answer lists of four of twelve items."""
    loop = small_loop(path, "perceptron", control=0.2, k=4, actions={"buy": 2.0, "cart": 1.0, "save": 0.5})
    rng = np.random.default_rng(seed)
    for t in range(lists):
        some = [f"i{j}" for j in rng.permutation(12)[:4]]
        shown = loop.decide(some, id=f"d{t}", person=[None, "ada", "bob"][int(rng.integers(3))]).shown
        said = [
            {"clicks": [shown[j] for j in rng.permutation(4)[: int(rng.integers(1, 4))]]},
            {"action": "buy", "item": shown[int(rng.integers(4))]},
            {"clicks": [shown[1]]},
            {},
        ][int(rng.integers(4))]
        if said:
            loop.feedback({"id": f"e{t}", "decision": f"d{t}", **said})
    return loop


def essence(loop: Loop) -> list[Any]:
    """Return what UBI can carry of a loop: of each decision what was shown, when and to whom; of each feedback what was
    clicked or done, in order, and when."""
    told = []
    for line in export_lines(loop):
        if line["kind"] == "decision":
            told.append((line["id"], line.get("person"), line["time"], tuple(line["shown"])))
        elif line["kind"] == "feedback":
            done = tuple(line.get("clicks", ())) or (line["action"], line["item"])
            told.append((line["decision"], line["time"], done))
    return sorted(told, key=repr)


def test_a_loop_goes_out_and_comes_back(tmp_path: Path) -> None:
    with shop(tmp_path / "there") as loop, empty_copy(tmp_path / "back", loop.manifest) as back:
        report = Report()
        lines = written(loop, report)
        read, found = read_back(tmp_path / "shop.ubi.jsonl", lines)
        assert not set(found.dropped) - {"bulk action line", "event among the queries", "query among the events"}
        assert not report.dropped
        into(back, [line for line in export_lines(loop) if line["kind"] == "item"] + read)
        assert essence(back) == essence(loop)
        assert report.used == report.rows
        assert {outcome.status for outcome in taken(back, read)} == {"duplicate"}
        # Clicks on the same lists teach the same, in whatever arm they were.
        same = [line for line in export_lines(loop) if line["kind"] == "decision"]
        assert report.rows["decisions"] == len(same) == 30
        assert dict(back.weights) == pytest.approx(dict(loop.weights), abs=1e-9)


def test_every_document_is_of_the_schema_and_names_its_index(tmp_path: Path) -> None:
    with shop(tmp_path / "loop") as loop:
        lines = written(loop)
        for (action, head), (what, document) in zip(lines[::2], lines[1::2], strict=True):
            assert action == "bulk action"
            assert head["index"]["_index"] == {"query": "ubi_queries", "event": "ubi_events"}[what]
            if what == "query":
                assert isinstance(document["user_query"], str)  # the one required field
                assert all(isinstance(hit, str) for hit in document["query_response_hit_ids"])
            else:
                assert {"action_name", "timestamp"} <= document.keys()
                about = document["event_attributes"]
                assert about["position"]["ordinal"] >= 1
                assert about["object"]["object_id"] in loop.items
            assert document["timestamp"].endswith("Z")
            assert all(len(document.get(name, "")) <= 100 for name in ("query_id", "client_id", "application"))
        ids = [head["index"]["_id"] for what, head in lines[::2]]
        assert len(set(ids)) == len(ids)
        assert written(loop) == lines  # so that loading it twice changes nothing
        assert [line for what, line in lines if what != "bulk action"] == [d for _, d in written(loop, bulk="no")]


def test_what_was_undone_rolled_back_or_forgotten_does_not_go_out(tmp_path: Path) -> None:
    with small_loop(tmp_path / "loop", "perceptron", control=0.0) as loop:
        for t, person in enumerate(("ada", "bob", "cyd", "cyd")):
            shown = loop.decide(["i0", "i1", "i2"], id=f"d{t}", person=person).shown
            loop.feedback({"id": f"e{t}", "decision": f"d{t}", "clicks": [shown[1]]})
        before = loop.version
        loop.decide(["i0", "i1"], id="d9")
        loop.feedback({"id": "e9", "decision": "d9", "clicks": ["i1"]})
        loop.rollback(before)
        loop.undo("e2")
        loop.forget("bob")
        report = Report()
        lines = written(loop, report)
        assert [line["query_id"] for what, line in lines if what == "event"] == ["d0", "d3"]
        assert [line["query_id"] for what, line in lines if what == "query"] == ["d0", "d2", "d3", "d9"]
        assert "bob" not in json.dumps(lines)
        assert dict(report.dropped) == {"undone or rolled back": 2}
        assert report.rows["feedback"] == 4


def test_what_ubi_cannot_say_is_counted_by_its_reason(tmp_path: Path) -> None:
    with small_loop(
        tmp_path / "loop", "posterior:swap=0", control=0.0, k=3, actions={"view": 1.0, "hover": 1.0}
    ) as loop:
        loop.decide(id="d0", deferred=True)
        loop.decide([], id="d1")
        loop.decide(["i0", "i1"], id="d" * 101)
        loop.record(["i0", "i1"], ["i0", "i1"], id="d2", time="1999-12-31T00:00:00Z")
        loop.decide([f"i{j}" for j in range(6)], id="d3", show=3)
        shown = loop.decide([f"i{j}" for j in range(3)], id="d4").shown
        given: list[dict[str, Any]] = [
            {"decision": "d3", "better": ["i5"]},
            {"decision": "d3", "none": True},
            {"decision": "d4", "thumb": "up"},
            {"decision": "d4", "clicks": [shown[1]]},
            {"decision": "d4", "clicks": [shown[2]]},
            {"decision": "d4", "action": "hover", "item": shown[0]},
            {"decision": "d4", "action": "view", "item": shown[0]},
            {"decision": "d2", "clicks": ["i1"]},
        ]
        for t, each in enumerate(given):
            assert loop.feedback({"id": f"e{t}", **each}).status == "applied", each
        report = Report()
        lines = written(loop, report)
        assert dict(report.dropped) == {
            "made ahead of time and not shown": 1,
            "a list without items": 1,
            "an id of more than 100 characters": 1,
            "a time before 2000": 1,
            "on a decision that is not exported": 1,
            "better: no event of UBI says it": 1,
            "thumb: no event of UBI says it": 1,
            "nothing was clicked": 1,
            "an action with the name of another event of UBI": 1,
        }
        assert report.left_out["candidate that was not shown"] == 3
        assert report.left_out["further clicks on a decision: readers join them"] == 1
        assert report.rows["decisions"] == report.used["decisions"] + 4
        assert report.rows["feedback"] == report.used["feedback"] + 5
        assert [line["action_name"] for what, line in lines if what == "event"] == ["click", "click", "watch"]
        assert set(report.examples) == set(report.dropped)


def test_contexts_chains_and_items_that_were_not_on_offer(tmp_path: Path) -> None:
    context = declare({"device": ["phone", "desk"], "query": ["toner", "ink"]})
    from heedful.features import infer
    from loops import rows

    with Loop.create(
        tmp_path / "loop", encoding=infer(rows(12, 2), identifier="id"), items=rows(12, 2), context=context
    ) as loop:
        about = {"query": "toner", "device": "phone", "page": 2, "filters": ["new"]}
        loop.decide(["i1", "stranger", "i2"], id="d1", person="ada", context=about, prior=[3, 2, 1])
        loop.decide(["i3", "i4"], id="d2", person="ada", context={"device": "desk"})
        loop.feedback({"id": "e1", "decision": "d1", "clicks": ["i2", "i4"], "chain": ["d2"]})
        report = Report()
        lines = written(loop, report)
        queries = [line for what, line in lines if what == "query"]
        events = [line for what, line in lines if what == "event"]
        assert queries[0]["user_query"] == "toner"
        assert queries[0]["query_attributes"] == {"device": "phone", "page": 2, "filters": ["new"]}
        assert "stranger" in queries[0]["query_response_hit_ids"]
        assert queries[1]["user_query"] == ""
        assert [(each["query_id"], each["event_attributes"]["object"]["object_id"]) for each in events] == [
            ("d1", "i2"),
            ("d2", "i4"),
        ]
        assert events[0]["client_id"] == "ada"
        assert report.left_out["clicks of one need on several lists: no longer one"] == 1
        read, found = read_back(tmp_path / "ubi.jsonl", lines)
        assert read[0]["context"] == {"device": "phone", "page": 2, "query": "toner"}
        assert found.left_out["attribute that is no text or number"] == 1


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), undone=st.sets(st.integers(0, 14)))
def test_any_clicks_come_back(tmp_path_factory: pytest.TempPathFactory, seed: int, undone: set[int]) -> None:
    path = tmp_path_factory.mktemp("ubi")
    with shop(path / "there", seed, lists=15) as loop, empty_copy(path / "back", loop.manifest) as back:
        heard = {line["id"] for line in export_lines(loop) if line["kind"] == "feedback"}
        gone = [f"e{t}" for t in undone if f"e{t}" in heard]
        expected = essence(loop)
        for event in gone:
            loop.undo(event)
        read, _ = read_back(path / "ubi.jsonl", written(loop))
        into(back, [line for line in export_lines(loop) if line["kind"] == "item"] + read)
        left = {f"d{event[1:]}" for event in gone}
        assert essence(back) == [each for each in expected if len(each) == 4 or each[0] not in left]


def test_other_loops_and_options_are_refused(tmp_path: Path) -> None:
    for make, what in ((rating_loop, "ratings"), (choice_loop, "choices")):
        with (
            make(tmp_path / what) as loop,
            pytest.raises(ValueError, match=rf"expected a loop that learns from clicks on lists.*{what}"),
        ):
            written(loop)
    with small_loop(tmp_path / "grades", "prank:n_ranks=3") as loop, pytest.raises(ValueError, match=r"got .*grades"):
        written(loop)
    with (
        small_loop(tmp_path / "loop") as loop,
        pytest.raises(ValueError, match="bulk: expected yes or no, got 'maybe'"),
    ):
        written(loop, bulk="maybe")


def test_without_texts_contexts_stay_here(tmp_path: Path) -> None:
    from heedful.features import infer
    from loops import rows

    how: dict[str, Any] = {"context": declare({"device": ["phone", "desk"]}), "settings": Settings(store_text=False)}
    with Loop.create(tmp_path / "loop", encoding=infer(rows(4, 2), identifier="id"), items=rows(4, 2), **how) as loop:
        loop.decide(id="d", context={"device": "phone"})
        report = Report()
        assert "phone" not in json.dumps(written(loop, report))
        assert report.left_out["a context of which the log has numbers alone"] == 1
