"""`heedful import`, `export`, `validate`: events in and out, counted, with every reason; and UBI logs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import bad, done, heedful, refusal

from heedful import TEXTS, Loop, Settings
from heedful.cli import exchange
from heedful.io.formats import FORMATS
from loops import bits, small_loop

DECISION = {
    "kind": "decision",
    "id": "d1",
    "person": "ann",
    "candidates": ["i0", "i1", "i2"],
    "shown": ["i1", "i0", "i2"],
}
CLICK = {"kind": "feedback", "id": "e1", "decision": "d1", "time": "2026-01-31T12:00:05Z", "clicks": ["i0"]}
GOOD = [{"kind": "item", "id": "new", "f0": 1, "f1": 2}, DECISION | {"time": "2026-01-31T12:00:00Z"}, CLICK]
GOOD += [DECISION | {"id": "d2", "deferred": True}, {"kind": "activate", "decision": "d2"}]
GOOD += [{"kind": "feedback", "id": "e2", "decision": "d2", "none": True}, {"kind": "undo", "event": "e1"}]
GOOD += [{"kind": "withdraw", "id": "new"}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_loop("cars.heedful", n_items=4, n_features=2).close()
    write("good.jsonl", GOOD)
    return tmp_path


def write(name: str, records: list[Any]) -> None:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def counts(**kinds: tuple[int, int, int]) -> dict[str, dict[str, int]]:
    return {kind: dict(zip(("applied", "duplicate", "rejected"), count)) for kind, count in kinds.items()}


def rows_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line.strip()]


ALL = {"item": 1, "decision": 2, "feedback": 2, "activate": 1, "undo": 1, "withdraw": 1}

# ---------------------------------------------------------------------------- import


def test_import_counts_what_became_of_the_lines() -> None:
    got = done("import cars good.jsonl --json")
    assert got.json["counts"] == counts(**{kind: (n, 0, 0) for kind, n in ALL.items()})
    assert got.json["lines"] == 8
    [why] = got.json["reasons"]  # of the line that says that none was preferred
    assert (why["status"], why["count"], why["first"]) == ("applied", 1, "good.jsonl:6")
    assert why["reason"] == "nothing in it was preferred to anything"
    with Loop.open("cars.heedful") as loop:
        assert got.json["version"] == loop.version > 0
        before = bits(loop), loop.projection.log.counts()
    again = done("import cars good.jsonl --json")
    assert again.json["counts"] == counts(**{kind: (0, n, 0) for kind, n in ALL.items()})
    with Loop.open("cars.heedful") as loop:
        assert (bits(loop), loop.projection.log.counts()) == before


def impressions(n: int, **form: Any) -> list[dict[str, Any]]:
    """n lists of one item each, shown with a known probability, and what was done with them."""
    lines: list[dict[str, Any]] = []
    for i in range(n):
        item = f"i{i % 4}"
        lines.append({"kind": "decision", "id": f"d{i}", "candidates": [item], "shown": [item], "probability": 0.25})
        said = form if form else {"clicks": [item]} if i % 2 else {"action": "buy", "item": item}
        lines.append({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", **said})
    return lines


def test_impressions_of_one_item_teach_nothing_and_import_doctor_and_caveats_say_so() -> None:
    """What is said to teach does: the same lists with thumbs."""
    write("log.jsonl", impressions(40))
    got = heedful("import cars log.jsonl --json")
    assert (got.code, got.json["counts"]["feedback"]["applied"]) == (0, 40)
    assert got.json["lessons"] == {"feedback": 40, "moved": 0}
    shutil.rmtree("cars.heedful")
    small_loop("cars.heedful", n_items=4, n_features=2).close()
    out = " ".join(heedful("import cars log.jsonl").out.split())
    assert "moved the model: 0 of 40 feedback: each list showed a single item, and a click or an action on the " in out
    assert "Thumbs, up and down, do: each is compared with those before it" in out
    found = heedful("doctor cars --json")
    [told] = [each for each in found.json if each["check"] == "lessons"]
    assert (found.code, told["status"]) == (0, "warning")
    assert told["told"].startswith("40 feedback moved the model 0 times: each list showed a single item")
    assert told["next"].startswith("Thumbs, up and down, do")
    assert "All is well" not in heedful("doctor cars").out
    with Loop.open("cars.heedful") as loop:
        assert any("moved the model 0 times" in caveat for caveat in loop.caveats)
    write("thumbs.jsonl", [line | {"id": f"t{line['id']}"} for line in impressions(4, thumb="up") if "thumb" in line])
    got = heedful("import cars thumbs.jsonl --json")
    assert got.json["lessons"] == {"feedback": 4, "moved": 4}
    assert "moved the model" not in heedful("import cars thumbs.jsonl").out  # nothing is new
    [told] = [each for each in heedful("doctor cars --json").json if each["check"] == "lessons"]
    assert (told["status"], told["told"]) == ("ok", "4 of 44 feedback moved the model")


def test_import_of_several_files_one_compressed() -> None:
    write("first.jsonl", GOOD[:3])
    Path("rest.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in GOOD[3:]).encode()))
    got = heedful("import cars first.jsonl rest.jsonl.gz --json")
    assert (got.code, got.json["lines"]) == (0, 8)
    assert got.json["counts"] == counts(**{kind: (n, 0, 0) for kind, n in ALL.items()})


WRONG = [
    DECISION,
    "oops",
    CLICK | {"id": "e7", "decision": "d7"},
    CLICK | {"id": "e8", "decision": "d8"},
    CLICK,
    CLICK | {"id": "e9", "clicks": ["i3"]},
    {"kind": "guess"},
    DECISION | {"id": "d9", "candidates": ["i0", "zz"], "shown": ["i0"]},
    DECISION | {"id": "d10", "candidates": ["i0", "yy"], "shown": ["i0"]},
]


def test_every_reason_is_told_once_with_its_first_line() -> None:
    write("wrong.jsonl", WRONG)
    got = heedful("import cars wrong.jsonl --json")
    assert (got.code, got.err) == (1, "")
    assert got.json["counts"] == counts(line=(0, 0, 2), decision=(1, 0, 2), feedback=(1, 0, 3))
    told = {each["first"]: (each["kind"], each["count"], each["reason"]) for each in got.json["reasons"]}
    assert told == {
        "wrong.jsonl:2": ("line", 1, "json: expected JSON, got invalid character at byte 1: 'oops'"),
        "wrong.jsonl:3": ("feedback", 2, "decision d7 is not in the log"),
        "wrong.jsonl:6": (
            "feedback",
            1,
            "clicks: expected items that were shown ('i1', 'i0', 'i2'), got 'i3'; answer the decision that showed it",
        ),
        "wrong.jsonl:7": (
            "line",
            1,
            "kind: expected item, withdraw, decision, activate, feedback, undo, rollback, "
            "experiment, stop, promote, style, got 'guess'",
        ),
        "wrong.jsonl:8": (
            "decision",
            2,
            "candidates: expected items on offer, such as 'i0', 'i1', 'i2', got 'zz'; put it on offer first",
        ),
    }
    assert {each["status"] for each in got.json["reasons"]} == {"rejected"}
    table = heedful("import cars wrong.jsonl")
    assert table.code == 1
    assert ["2", "wrong.jsonl:3", "feedback", "decision", "d7", "is", "not", "in", "the", "log"] in rows_of(table.out)


def test_a_reason_is_one_however_many_names_it_lists() -> None:
    shown = [["i0"], ["i0", "i1"], [f"i{j}" for j in range(7)]]
    decisions = [DECISION | {"id": f"n{len(names)}", "candidates": names, "shown": names} for names in shown]
    clicks = [CLICK | {"id": f"c{len(names)}", "decision": f"n{len(names)}", "clicks": ["i9"]} for names in shown]
    items = [{"kind": "item", "id": f"i{j}", "f0": 0, "f1": 0} for j in range(4, 7)]
    write("unseen.jsonl", [*items, *decisions, *clicks])
    [reason] = heedful("import cars unseen.jsonl --json").json["reasons"]
    told = "clicks: expected items that were shown ('i0'), got 'i9'; answer the decision that showed it"
    assert (reason["count"], reason["first"], reason["reason"]) == (3, "unseen.jsonl:7", told)


def test_import_refuses() -> None:
    bad(heedful("import cars none.jsonl"), "none.jsonl: no such file")
    bad(heedful("import cars good.jsonl ."), ".: expected a file, got a folder")
    bad(
        heedful("import cars good.jsonl good.jsonl --ubi good.jsonl"),
        "FILE: expected one with --ubi, the events, got 2",
    )
    bad(heedful("import cars"), "FILE: expected some events, or --features ITEMS, got none")
    bad(heedful("import cars --ubi good.jsonl"), "FILE: expected the events, got none")
    bad(heedful("import cars good.jsonl --chains"), "--chains: expected --ubi too, got none")
    bad(heedful("import cars good.jsonl --ubi none.jsonl"), "none.jsonl: no such file")
    assert refusal("import cars good.jsonl --features none.csv").startswith("none.csv: no such file")
    Path("cut.jsonl.gz").write_bytes(gzip.compress(b'{"kind": "undo"}\n' * 1000)[:60])
    assert refusal("import cars cut.jsonl.gz").startswith("cut.jsonl.gz: gzip: expected a whole stream")
    with Loop.open("cars.heedful") as loop:
        assert set(loop.projection.log.counts()) == {"loop", "item"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id\n", "more.txt: rows: expected at least one below the header, got none"),
        ('[\n [{"kind": "undo", "event": "e1"}]]\n', "more.txt: record 1: expected an object, got "),
        ("7", "more.txt:1: header: expected names of columns, got '7'"),
        ("name,f0\na,1\n", "more.txt: expected the column id, which names items in this loop, got name, f0"),
    ],
)
def test_a_file_of_another_kind_is_refused_once(text: str, told: str) -> None:
    Path("more.txt").write_text(text)
    Path("packed.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("more.txt", "packed.gz"):
        got = heedful(f"import cars good.jsonl {name}")
        assert (got.code, got.out) == (2, "")
        assert got.err.startswith(f"heedful: {told.replace('more.txt', name)}")
    first = text.strip().split("\n")[0]
    for line in ("validate cars more.txt", "validate more.txt"):
        assert f"more.txt: expected JSON lines, one object a line, got {first!r} first" in heedful(line).err
    with Loop.open("cars.heedful") as loop:
        assert set(loop.projection.log.counts()) == {"loop", "item"}  # nothing of good.jsonl either


def test_a_torn_first_line_is_a_line_that_was_rejected() -> None:
    write("torn.jsonl", ['2", "none": true}', *GOOD])
    got = heedful("import cars torn.jsonl --json")
    assert (got.code, got.json["lines"], got.json["counts"]["line"]["rejected"]) == (1, 9, 1)
    Path("nothing.jsonl").write_text("\n")
    assert heedful("import cars nothing.jsonl").code == 0


def test_import_puts_items_first() -> None:
    Path("more.csv").write_text("id,f0,f1\nlater,1,2\ni0,7,7\n")
    write("d.jsonl", [DECISION | {"candidates": ["later", "i0"], "shown": ["later"]}])
    assert heedful("import cars d.jsonl").code == 1
    got = heedful("import cars d.jsonl --features more.csv --json")
    assert (got.code, got.json["items_put"], got.json["items_changed"]) == (0, 2, ["i0"])
    Path("more.csv").write_text("id,f0,f1\nlater,1,2\ni0,7,8\n")
    told = heedful("import cars --features more.csv").out
    assert "i0 had other attributes before: what was answered still counts, for what was shown then" in told
    assert "0 items were new or changed" in heedful("import cars d.jsonl --features more.csv").out
    alone = heedful("import cars --features more.csv").out
    assert "0 items were new or changed" in alone
    assert "What became of" not in alone
    Path("odd.csv").write_text("id,f0,f1\nlater,far,2\n")
    assert "f0: expected" in refusal("import cars d.jsonl --features odd.csv")


# ---------------------------------------------------------------------------- UBI


def query(id: str, minute: int, **more: Any) -> dict[str, Any]:
    time = f"2026-01-31T12:{minute:02d}:00Z"
    return {"query_id": id, "client_id": "c7", "user_query": "toner", "timestamp": time,
            "query_response_hit_ids": ["i0", "i1", "i2"]} | more  # fmt: skip


def event(query: str, action: str, item: str) -> dict[str, Any]:
    attributes = {"object": {"object_id": item}, "position": {"ordinal": 2}}
    time = "2026-01-31T12:20:05Z"
    return {"query_id": query, "action_name": action, "timestamp": time, "event_attributes": attributes}


@pytest.fixture
def ubi() -> None:
    write("queries.jsonl", [query("q1", 0), query("q2", 10), query("q3", 15, query_response_hit_ids=["i1", "gone"])])
    happened = [event("q1", "click", "i2"), event("q2", "click", "i1"), event("q2", "purchase", "i1")]
    write("events.jsonl", [*happened, event("q9", "click", "i0"), event("q1", "product_hover", "i1")])


def test_ubi_logs_are_imported(ubi: None) -> None:
    got = done("import cars events.jsonl --ubi queries.jsonl --json")
    assert got.json["counts"] == counts(decision=(3, 0, 0), feedback=(3, 0, 0))
    [(told, times)] = got.json["ubi"]["left_out"].items()  # of q3, whose other hits stay
    assert (told.split(" (")[0], times) == ("hits that are not on offer", 1)
    assert got.json["ubi"]["rows"] == {"queries": 3, "events": 5}
    assert got.json["ubi"]["used"] == {"queries": 3, "events": 3}
    assert got.json["ubi"]["dropped"] == {"event of an unknown query": 1, "not a choice": 1}
    assert got.json["ubi"]["examples"]["not a choice"].startswith("events.jsonl:5: ")
    with Loop.open("cars.heedful") as loop:
        forms = [(record.form, record.text) for _, _, record in loop.projection.lessons()]
        assert forms == [("clicks", None), ("clicks", None), ("action", "buy")]  # what the loop calls a purchase
        assert loop.projection.find_decision("q1") is not None
    again = heedful("import cars events.jsonl --ubi queries.jsonl --json")
    assert again.json["counts"] == counts(decision=(0, 3, 0), feedback=(0, 3, 0))


def test_a_ubi_file_of_which_nothing_was_used_ends_with_1(ubi: None) -> None:
    got = heedful("import cars queries.jsonl --ubi events.jsonl --json")
    assert got.code == 1
    assert (set(got.json["ubi"]["rows"].values()), got.json["ubi"]["used"]) == ({5, 3}, {})
    are = "is events.jsonl the queries and queries.jsonl the events?"
    assert got.err.splitlines() == [
        f"heedful: events.jsonl: none of its 5 rows was used as queries: {are}",
        f"heedful: queries.jsonl: none of its 3 rows was used as events: {are}",
    ]
    write("events.jsonl", [])
    assert heedful("import cars events.jsonl --ubi queries.jsonl").code == 0


def test_ubi_chains(ubi: None) -> None:
    write("queries.jsonl", [query("q1", 0), query("q2", 10, query_response_hit_ids=["i3"])])
    write("events.jsonl", [event("q1", "click", "i2"), event("q2", "click", "i3")])
    got = heedful("import cars events.jsonl --ubi queries.jsonl --chains --json")
    assert (got.code, got.json["counts"]) == (0, counts(decision=(2, 0, 0), feedback=(1, 0, 0)))
    with Loop.open("cars.heedful") as loop:
        [(_, _, record)] = loop.projection.lessons()
        assert (len(record.chosen), len(record.chain)) == (2, 1)


def test_a_loop_that_knows_a_purchase_by_its_name_keeps_it(ubi: None) -> None:
    Path("items.csv").write_text("id,f0\ni0,1\ni1,2\ni2,3\n")
    assert heedful("init shop items.csv --action purchase=1 --action buy=0.5").code == 0
    heedful("import shop events.jsonl --ubi queries.jsonl")
    with Loop.open("shop.heedful") as loop:
        assert [record.text for _, _, record in loop.projection.lessons()][-1] == "purchase"


# ---------------------------------------------------------------------------- export


def test_export_and_import_give_the_same_model(folder: Path) -> None:
    heedful("import cars good.jsonl")
    with Loop.open("cars.heedful") as loop:
        for round in range(6):
            d = loop.decide(person="bob", id=f"own{round}")
            loop.feedback(d.id, clicks=[d.shown[2]])
        wanted = bits(loop)
    got = done("export cars out.jsonl --json")
    told = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert got.json["path"] == str(folder / "out.jsonl")
    assert got.json["lines"] == len(told)
    assert got.json["counts"] == {"item": 5, "decision": 8, "feedback": 8, "activate": 1, "undo": 1, "withdraw": 1}
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    assert heedful("validate cars out.jsonl").code == 0
    small_loop("new.heedful", n_items=4, n_features=2).close()
    got = heedful("import new out.jsonl --json")
    assert (got.code, got.json["counts"]["item"]) == (0, {"applied": 1, "duplicate": 4, "rejected": 0})
    with Loop.open("new.heedful") as loop:
        assert bits(loop) == wanted
    with Loop.open("cars.heedful") as loop:
        [event] = loop.projection.log.events(kinds=["export"])
        assert json.loads(event.payload) == {"path": str(folder / "out.jsonl")}


def test_export_compressed_and_over_an_older_one() -> None:
    heedful("import cars good.jsonl")
    assert heedful("export cars out.jsonl.gz").out == (
        "out.jsonl.gz: 12 lines: item 5, decision 2, withdraw 1, activate 1, feedback 2, undo 1\n"
    )
    first = gzip.decompress(Path("out.jsonl.gz").read_bytes())
    assert heedful("export cars out.jsonl.gz").code == 0
    assert gzip.decompress(Path("out.jsonl.gz").read_bytes()) == first
    assert heedful("import cars out.jsonl.gz --json").json["counts"]["feedback"]["duplicate"] == 2
    assert sorted(file.name for file in Path().iterdir()) == ["cars.heedful", "good.jsonl", "out.jsonl.gz"]


def test_export_to_stdout() -> None:
    got = heedful("export cars -")
    assert (got.code, got.err) == (0, "heedful: 4 lines: item 4\n")
    assert [json.loads(line)["id"] for line in got.out.splitlines()] == ["i0", "i1", "i2", "i3"]
    with Loop.open("cars.heedful") as loop:
        [event] = loop.projection.log.events(kinds=["export"])
        assert json.loads(event.payload) == {"path": "-"}


def test_export_refuses() -> None:
    bad(heedful("export cars - --json"), "--json: expected a FILE, as with - the lines themselves go to stdout")
    bad(heedful("export cars ."), ".: expected a file, got a folder")
    assert refusal("export cars none/out.jsonl").startswith(
        "none/out.jsonl: expected a file in a folder that is there, got none at "
    )
    with Loop.open("cars.heedful") as loop:
        assert "export" not in loop.projection.log.counts()


def test_export_goes_where_a_link_points_and_replaces_no_device(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    for link, target in (("there", "elsewhere/old.jsonl"), ("new.gz", "elsewhere/new"), ("lost", "none/a"), ("o", "o")):
        Path(link).symlink_to(target)
    Path("elsewhere/old.jsonl").write_text("old")
    got = heedful("export cars there --json")
    assert (got.code, got.json["path"]) == (0, str(folder / "there"))
    assert heedful("export cars new.gz").code == 0
    assert Path("there").is_symlink()
    assert Path("elsewhere/old.jsonl").read_bytes() == gzip.decompress(Path("elsewhere/new").read_bytes())
    os.mkfifo("pipe")
    Path("to_pipe").symlink_to("pipe")
    for file in ("pipe", "to_pipe", "/dev/null"):
        told = f"{file}: expected a file, got a pipe, a socket or a device; - writes to stdout"
        bad(heedful(f"export cars {file}"), told)
    assert heedful("export cars lost").err.startswith(
        "heedful: lost: expected a file in a folder that is there, got none"
    )
    bad(heedful("export cars o"), "o: expected a file, got links that go round in a circle")
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert sorted(file.name for file in Path("elsewhere").iterdir()) == ["new", "old.jsonl"]


def test_an_export_that_stops_half_way_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out.jsonl").write_text("as it was")

    def stops(loop: Loop) -> Any:
        yield {"kind": "item"}
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.io.export_lines", stops)
    bad(heedful("export cars out.jsonl"), "stopped", 130)
    assert Path("out.jsonl").read_text() == "as it was"
    assert sorted(file.name for file in Path().iterdir()) == ["cars.heedful", "good.jsonl", "out.jsonl"]


def test_what_a_killed_export_left_is_named_and_goes_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed removes nothing: its file is put back as it was before it got its name."""
    made, replace = dict[str, bytes](), os.replace

    def put_in_place(aside: str, path: Path) -> None:
        made[aside] = Path(aside).read_bytes()
        replace(aside, path)

    with Loop.open("cars.heedful") as loop:
        loop.decide(person="ann", id="of-ann")
    monkeypatch.setattr("heedful.cli.export.os.replace", put_in_place)
    os.symlink("sub/real.jsonl", "out.jsonl")
    Path("sub").mkdir()
    assert heedful("export cars out.jsonl").code == 0
    [(left, content)] = made.items()
    assert b"of-ann" in content
    assert "did not end" not in heedful("doctor cars").out
    Path(left).write_bytes(content)
    [found] = [each for each in heedful("doctor cars --json").json if each["check"] == "exports"]
    assert (found["status"], Path(found["told"].partition(" left ")[2])) == ("warning", Path(left))
    gone = heedful("forget cars ann --yes --json").json
    assert [Path(each) for each in gone["exports"]] == [Path("out.jsonl").absolute(), Path(left)]
    assert heedful("export cars out.jsonl").code == 0
    assert Path(left).exists()  # one that is running writes to it
    os.utime(left, (0, 0))
    others = [Path("sub/real.jsonl.tmp"), Path("sub/real.jsonl-of-1999.tmp")]
    for each in others:
        each.touch()
        os.utime(each, (0, 0))
    assert heedful("export cars out.jsonl").code == 0
    assert not Path(left).exists()
    assert all(each.exists() for each in others)
    assert "did not end" not in heedful("doctor cars").out


# ---------------------------------------------------------------------------- validate


def test_validate_against_a_loop_writes_nothing() -> None:
    write("wrong.jsonl", WRONG)
    before = Path("cars.heedful/log.db").read_bytes()
    got = heedful("validate cars wrong.jsonl")
    assert (got.code, got.err) == (1, "")
    assert got.out.splitlines() == [
        "wrong.jsonl:2: json: expected JSON, got invalid character at byte 1: 'oops'",
        "wrong.jsonl:3: decision d7 is not in the log",
        "wrong.jsonl:4: decision d8 is not in the log",
        "wrong.jsonl:6: clicks: expected items that were shown ('i1', 'i0', 'i2'), got 'i3'; answer the decision that "
        "showed it",
        "wrong.jsonl:7: kind: expected item, withdraw, decision, activate, feedback, undo, rollback, "
        "experiment, stop, promote, style, got 'guess'",
        "wrong.jsonl:8: candidates: expected items on offer, such as 'i0', 'i1', 'i2', got 'zz'; put it on offer first",
        "wrong.jsonl:9: candidates: expected items on offer, such as 'i0', 'i1', 'i2', got 'yy'; put it on offer first",
        "wrong.jsonl: 9 lines: line 2, decision 3, feedback 4; 7 wrong",
    ]
    as_json = heedful("validate cars wrong.jsonl --json")
    assert (as_json.code, as_json.err, as_json.json["lines"]) == (1, "", 9)
    assert as_json.json["problems"][1] == {
        "line": 3, "kind": "feedback", "id": "e7", "problem": "decision d7 is not in the log"
    }  # fmt: skip
    assert as_json.json["counts"] == counts(line=(0, 0, 2), decision=(1, 0, 2), feedback=(1, 0, 3))
    assert Path("cars.heedful/log.db").read_bytes() == before
    assert sorted(file.name for file in Path("cars.heedful").iterdir()) == ["log.db"]


def test_validate_of_a_good_file() -> None:
    got = heedful("validate cars good.jsonl")
    remark = "good.jsonl:6: nothing in it was preferred to anything (1 line)"
    told = "decision 2, item 1, withdraw 1, activate 1, feedback 2, undo 1; all are right"
    assert (got.code, got.err, got.out) == (0, "", f"{remark}\ngood.jsonl: 8 lines: {told}\n")
    heedful("import cars good.jsonl")
    assert heedful("validate cars good.jsonl").out.endswith("; all are right; 8 known to the loop already\n")


def test_validate_without_a_loop_looks_at_the_form_alone() -> None:
    write("wrong.jsonl", [*WRONG, DECISION | {"shown": ["i9"]}])
    got = heedful("validate wrong.jsonl")
    assert (got.code, got.err) == (1, "")
    assert [line.split(":")[1] for line in got.out.splitlines()[:-1]] == ["2", "7", "10"]
    assert got.out.endswith("; 3 wrong; only their form was checked, as no loop was named\n")
    assert heedful("validate good.jsonl --json").json["problems"] == []


def test_validate_refuses() -> None:
    bad(heedful("validate none.jsonl"), "none.jsonl: no such file")
    bad(heedful("validate cars none.jsonl"), "none.jsonl: no such file")
    bad(heedful("validate cars.heedful"), "cars.heedful: expected a file, got a folder")
    bad(heedful("validate good.jsonl --own none.py:Rule"), "none.py: no such file; expected FILE.py:Class")
    Path("cut.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:30])
    assert refusal("validate cut.jsonl.gz").startswith("cut.jsonl.gz: gzip: expected a whole stream")


# ---------------------------------------------------------------------------- in processes of their own


@pytest.mark.slow
def test_a_round_trip_in_processes_of_their_own(folder: Path) -> None:
    program = shutil.which("heedful", path=str(Path(sys.executable).parent))
    assert program, "the entry point is not installed"

    def process(*args: str, given: str = "") -> Any:
        got = subprocess.run([program, *args], input=given, capture_output=True, text=True, env=os.environ, check=False)
        assert (got.returncode, got.stderr if "-" not in args else "") == (0, ""), got.stderr
        return got.stdout

    Path("bikes.csv").write_text("name,gears,note\n" + "".join(f"b{j},{j * j % 11},note {j} here\n" for j in range(9)))
    small_loop("some.heedful", n_items=4, n_features=2).close()
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            got = subprocess.run([program, "export", "some", "-"], stdout=full, stderr=subprocess.PIPE, check=False)
        assert (got.returncode, got.stderr) == (1, b"heedful: stdout: No space left on device\n")
    told = json.loads(process("init", "bikes", "bikes.csv", "--people", "3", "--kind", "note=text", "--json"))
    assert told["items"] == 9
    for round in range(2):
        decision = json.loads(process("decide", "bikes", "--person", "ann", "--show", "5", "--json"))
        line = ("--clicks", decision["shown"][3], "--clicks", decision["shown"][1])
        answer = json.loads(process("feedback", "bikes", decision["id"], *line, "--id", f"e{round}", "--json"))
        assert answer["status"] == "applied"
    come = process("decide", "bikes", "--candidates", "-", "--id", "own", "--json", given='[{"name": "x", "gears": 3}]')
    assert json.loads(come)["shown"] == ["x"]
    process("undo", "bikes", "e1")
    why = json.loads(process("why", "bikes", decision["id"], "--json"))
    assert why["decision"] == decision["id"]
    process("export", "bikes", "bikes.jsonl")
    assert process("export", "bikes", "-") == Path("bikes.jsonl").read_text()
    process("init", "twin", "bikes.csv", "--people", "3", "--kind", "note=text")
    process("import", "twin", "bikes.jsonl")
    with Loop.open("bikes.heedful") as one, Loop.open("twin.heedful") as two:
        assert bits(one) == bits(two)
    assert {found["status"] for found in json.loads(process("doctor", "twin", "--json"))} <= {"ok", "warning"}
    gone = json.loads(process("forget", "bikes", "ann", "--yes", "--json"))
    assert gone["exports"] == [str(folder / "bikes.jsonl"), "-"]


# ---------------------------------------------------------------------------- formats of others


def drafted() -> None:
    """A loop of texts "notes" with an edit, a thumb, and an edit that was undone."""
    done("init notes --texts --k 1 --control 0")
    drafts = [{"id": "a", "text": "We would perhaps like to."}, {"id": "b", "text": "Perhaps we might."}]
    with Loop.open("notes.heedful") as loop:
        loop.decide(drafts, id="d", context={"prompt": "What now?"})
        loop.feedback("d", id="e1", edit="Go.")
        loop.feedback("d", id="e2", thumb="down")
        loop.feedback("d", id="e3", edit="Gone.")
        loop.undo("e3")


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz", "pairs.parquet"])
def test_a_format_of_others_goes_out_and_comes_in(name: str) -> None:
    drafted()
    got = done(f"export notes {name} --as preference-data --json")
    assert (got.json["lines"], got.json["counts"]) == (1, {"pair": 1})
    assert got.json["report"]["dropped"] == {"compares no two answers": 1, "undone or rolled back": 1}
    assert "undone or rolled back" in done(f"export notes {name} --as preference-data").out
    done("init other --texts")
    got = done(f"import other {name} --as preference-data --json")
    assert got.json["counts"] == counts(decision=(1, 0, 0), feedback=(1, 0, 0))
    assert got.json["report"]["used"] == {"pairs": 1}
    got = done(f"import other {name} --as preference-data --json")
    assert got.json["counts"] == counts(decision=(0, 1, 0), feedback=(0, 1, 0))
    assert done(f"import notes {name} --as preference-data --json").json["counts"] == {}
    with Loop.open("notes.heedful") as loop:
        assert len(list(loop.projection.log.events(kinds=["export"]))) == 2
    assert "1 pair, 1 used" in done(f"import other {name} --as preference-data").out


def test_a_table_has_the_columns_of_all_rows_and_not_of_the_first_alone() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with Loop.create("t.heedful", encoding=TEXTS, settings=Settings(k=1, control=0.0)) as loop:
        for i, context in enumerate([None, {"prompt": "Why?"}]):
            loop.decide([{"id": "a", "text": f"Draft {i}"}], id=f"d{i}", context=context)
            loop.feedback(f"d{i}", id=f"e{i}", edit=f"Text {i}")
    done("export t t.parquet --as preference-data --option without-prompt=yes")
    assert parquet.read_table("t.parquet").column("prompt").to_pylist() == [None, "Why?"]


def test_rows_to_stdout_say_on_stderr_what_is_left_out() -> None:
    drafted()
    got = heedful("export notes - --as unpaired")
    assert json.loads(got.out)["label"] is False
    assert "1 left out: no thumb; such as feedback e1" in got.err


def test_a_table_without_rows_is_refused_with_the_reasons() -> None:
    pytest.importorskip("pyarrow")
    with Loop.create("e.heedful", encoding=TEXTS, settings=Settings(k=1, control=0.0)) as loop:
        loop.decide([{"id": "a", "text": "Draft"}], id="d")
        loop.feedback("d", id="e", edit="Text")
    got = heedful("export e e.parquet --as unpaired")
    refused = "heedful: FILE: expected rows to write, as a Parquet file has columns, got none\n"
    assert (got.code, got.err) == (2, "heedful: 1 left out: no thumb; such as feedback e\n" + refused)
    assert not Path("e.parquet").exists()


def test_the_value_of_an_option_may_have_an_equals_sign() -> None:
    """`--option` is split at the first one: the context of a model and the names of its fields have more."""
    write("clicked.jsonl", [DECISION, CLICK])
    done("import cars clicked.jsonl")
    done("export cars m.json --as opensearch --option fields=f0=price.raw --option without=prior")
    assert "price.raw" in Path("m.json").read_text()
    wrong = 'context={"query":"a=b",'
    got = heedful("export cars n.json --as opensearch --option {}", wrong)
    assert (got.code, got.err.startswith("heedful: context: expected")) == (2, True), got.err


def test_outputs_that_are_not_there_are_refused_as_other_files_are() -> None:
    write("scores.jsonl", [{"id": "s", "name": "n", "dataType": "BOOLEAN", "value": True}])
    done("init replies --texts")
    bad(heedful("import replies scores.jsonl --as langfuse --traces nope.json"), "nope.json: no such file")
    Path("folder").mkdir()
    bad(heedful("import replies scores.jsonl --as langfuse --traces folder"), "folder: expected a file, got a folder")


def test_a_format_that_is_none_or_does_not_fit_is_refused() -> None:
    drafted()
    write("pairs.jsonl", [{"prompt": "?", "chosen": "a", "rejected": "a"}])
    bad(heedful("export notes x --as tea"), "--as: expected " + told_formats("write") + ", got 'tea'")
    bad(heedful("import notes pairs.jsonl --as tea"), "--as: expected " + told_formats("read") + ", got 'tea'")
    bad(heedful("export notes x --option text=a"), "--option: expected --as FORMAT too, got none")
    bad(heedful("import notes pairs.jsonl --option a=b"), "--option: expected --as FORMAT too, got none")
    bad(heedful("import notes --as unpaired --features pairs.jsonl"), "FILE: expected some with --as, got none")
    bad(heedful("import notes pairs.jsonl --as unpaired --ubi pairs.jsonl"), "--ubi: expected none with --as, got it")
    wrong = "pairs.jsonl:1: columns: expected prompt, completion, label, got prompt, chosen, rejected"
    bad(heedful("import notes pairs.jsonl --as unpaired"), wrong)
    told = "text: expected the column of an item that has its text, as --option text=COLUMN, got a loop without texts"
    bad(heedful("export cars x --as preference-data"), told)
    bad(
        heedful("export cars x.parquet --as unpaired --option text=id"),
        "FILE: expected rows to write, as a Parquet file has columns, got none",
    )
    assert not Path("x").exists()
    got = heedful("import notes pairs.jsonl --as preference-data --json")
    assert (got.code, got.err) == (1, "heedful: the only row was not used\n")
    assert got.json["report"]["dropped"] == {"both answers are equal": 1}


def told_formats(verb: str) -> str:
    return ", ".join(each.name for each in FORMATS.values() if getattr(each, verb) is not None)


def scored(n: int) -> list[dict[str, Any]]:
    """n decisions of a search on items that objects name, with a score that the loop does not know, and an answer."""
    lines: list[dict[str, Any]] = []
    for i in range(n):
        hits = [{"id": f"i{j}", "bm25": 6.4 - j} for j in range(4)]
        shown = [hit["id"] for hit in hits]
        lines.append({"kind": "decision", "id": f"d{i}", "candidates": hits, "shown": shown})
        lines.append({"kind": "feedback", "id": f"e{i}", "decision": f"d{i}", "better": [f"i{i % 3 + 1}"]})
    return lines


def test_fields_that_a_loop_does_not_know_are_named_by_import_validate_decide_and_doctor() -> None:
    """... and counted, with the option that would use them."""
    write("log.jsonl", scored(20))
    got = done("validate cars log.jsonl")
    assert "all are right" in got.out
    assert "candidates.bm25" in got.out
    assert "--query-features" in got.out
    [why] = heedful("validate cars log.jsonl --json").json["reasons"]
    assert (why["kind"], why["status"], why["count"], why["first"]) == ("decision", "applied", 20, "log.jsonl:1")
    got = done("import cars log.jsonl --json")
    [why] = [each for each in got.json["reasons"] if each["kind"] == "decision"]
    assert (why["status"], why["count"]) == ("applied", 20)
    assert "candidates.bm25" in why["reason"]
    assert "--query-features" in why["reason"]
    Path("hits.json").write_text(json.dumps([{"id": "i0", "bm25": 1.0, "title": "a"}, {"id": "i1"}]))
    got = heedful("decide cars --candidates hits.json")
    assert "candidates.bm25, candidates.title" in " ".join(got.out.split())
    assert "--query-features" in got.out
    found = {each["check"]: each for each in heedful("doctor cars --json").json}
    assert found["fields"]["status"] == "warning"
    assert "candidates.bm25 (21 times)" in found["fields"]["told"]
    assert "--query-features" in found["fields"]["next"]
    assert heedful("decide cars --json").code == 0


def test_doctor_finds_that_a_loop_knows_all_fields() -> None:
    heedful("import cars good.jsonl --json")
    found = {each["check"]: each for each in heedful("doctor cars --json").json}
    assert found["fields"]["status"] == "ok"


def test_pairs_that_the_loop_has_already_are_said_in_the_line_that_says_how_many_were_used() -> None:
    with Loop.create("texts.heedful", encoding=TEXTS, settings=Settings(k=1, control=0.0, exploration=0.0)):
        pass
    write("pairs.jsonl", [{"prompt": f"p{i}", "chosen": f"good {i}", "rejected": f"bad {i}"} for i in range(4)])
    assert "4 pairs, 4 used" in heedful("import texts pairs.jsonl --as preference-data").out
    write("more.jsonl", [{"prompt": f"p{i}", "chosen": f"good {i}", "rejected": f"bad {i}"} for i in range(6)])
    assert (
        "6 pairs, 6 used: 2 new, 4 in the loop already" in heedful("import texts more.jsonl --as preference-data").out
    )


def test_where_no_bar_can_be_drawn_a_long_import_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a stderr that is no terminal, a note from time to time; of validate and of formats of others, too."""
    monkeypatch.setattr(exchange, "EVERY", 3)
    monkeypatch.setattr(exchange, "SECONDS", 0.0)
    expected = "heedful: good.jsonl: 3 lines read\nheedful: good.jsonl: 6 lines read\n"
    assert heedful("validate cars good.jsonl").err == expected
    assert heedful("import cars good.jsonl --json").err == expected
    with Loop.create("texts.heedful", encoding=TEXTS, settings=Settings(k=1, control=0.0, exploration=0.0)):
        pass
    write("pairs.jsonl", [{"prompt": f"p{i}", "chosen": f"good {i}", "rejected": f"bad {i}"} for i in range(2)])
    assert heedful("import texts pairs.jsonl --as preference-data").err == "heedful: pairs.jsonl: 3 lines read\n"
