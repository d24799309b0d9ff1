"""Files of votes that are malformed, each in another way: their name, their bytes, and what has to be said of them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HEAD = "model_a,model_b,winner"
GOOD = "x,y,model_a\ny,x,tie\n"


def csv(*lines: str, head: str = HEAD) -> bytes:
    return ("\n".join([head, *lines]) + "\n").encode()


def lines(*rows: Any) -> bytes:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()


def vote(**more: Any) -> dict[str, Any]:
    return {"model_a": "x", "model_b": "y", "winner": "model_a", **more}


def parquet(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def cut(content: bytes, share: float = 0.5) -> bytes:
    return content[: int(share * len(content))]


WHOLE = parquet({"model_a": ["x", "y"] * 50, "model_b": ["y", "x"] * 50, "winner": ["model_a", "tie"] * 50})


def malformed() -> Iterator[tuple[str, str, bytes, str]]:
    """(what is wrong, name of the file, its bytes, a pattern of what has to be said)."""
    # ------------------------------------------------------------------------ what is not there
    yield "empty", "a.csv", b"", r"a.csv"
    yield "blank lines alone", "a.csv", b"\n\n\n", r"a.csv"
    yield "a header alone", "a.csv", csv(), r"a.csv: \w+: expected at least one"
    yield "no header", "a.csv", b"x,y,model_a\ny,x,tie\n", r"a.csv: columns: expected winner and loser; "
    yield "no winner", "a.csv", csv("x,y", head="model_a,model_b"), r"a.csv: answer: expected a column"
    yield "no second model", "a.csv", csv("x,model_a", head="model_a,winner"), r"a.csv: columns: expected "
    yield "a header of other words", "a.csv", csv("x,y,z", head="foo,bar,baz"), r"a.csv: columns: expected "
    yield "a column twice", "a.csv", csv("x,y,x,model_a", head="model_a,model_b,model_a,winner"), r"a.csv.*model_a"
    # ------------------------------------------------------------------------ cells
    yield "no first model", "a.csv", csv(",y,model_a"), r"a.csv:2: model_a: expected a name, got nothing"
    yield "a blank second model", "a.csv", csv(GOOD.strip(), "x,  ,model_a"), r"a.csv:4: model_b: expected a name"
    yield "NaN for a model", "a.csv", csv("x,NaN,model_a"), r"a.csv:2: model_b: expected a name, got nothing"
    yield "a model against itself", "a.csv", csv("x,x,tie"), r"a.csv:2: model_b: expected another item than in model_a"
    yield (
        "a winner that was not shown",
        "a.csv",
        csv("x,y,z"),
        r"a.csv:2: winner: expected model_a, model_b, tie, both_bad, skip, or .*, got 'z'; .*--answer z=unsure",
    )
    yield "a winner of another arena", "a.csv", csv("x,y,model_c"), r"a.csv:2: winner: .*got 'model_c'"
    yield "a winner in another language", "a.csv", csv("x,y,Gleichstand"), r"a.csv:2: winner: .*'Gleichstand'"
    yield "a winner that is a number", "a.csv", csv("x,y,0.5"), r"a.csv:2: winner: .*got '0.5'"
    yield "two winners", "a.csv", csv('x,y,"model_a,model_b"'), r"a.csv:2: winner: .*model_a,model_b"
    yield "a side that is also a model", "a.csv", csv("b,x,b", "x,y,model_a"), r"a.csv:2: winner: .*which is both"
    yield "nobody could judge", "a.csv", csv("x,y,", "y,x,skip"), r"a.csv: answers: expected at least one"
    yield "a person without a name", "a.csv", csv("x,y,tie,", head=f"{HEAD},judge"), r"a.csv:2: judge: expected a name"
    yield "a count below 0", "a.csv", csv("x,y,tie,-1", head=f"{HEAD},times"), r"a.csv:2: times: expected .*-1"
    yield "half a vote", "a.csv", csv("x,y,tie,0.5", head=f"{HEAD},times"), r"a.csv:2: times: expected .*0.5"
    yield "a count that is a word", "a.csv", csv("x,y,tie,many", head=f"{HEAD},times"), r"a.csv:2: times: .*many"
    yield "an endless count", "a.csv", csv("x,y,tie,inf", head=f"{HEAD},times"), r"a.csv:2: times: .*inf"
    yield "a count beyond all", "a.csv", csv("x,y,tie,1e15", head=f"{HEAD},times"), r"a.csv:2: times: .*1e15"
    yield "no vote counts", "a.csv", csv("x,y,tie,0", head=f"{HEAD},times"), r"a.csv: answers: expected at least one"
    yield "a model's name of many lines", "a.csv", csv(f'"{"x" * 300_000}",y,model_a'), r"a.csv:2"
    # ------------------------------------------------------------------------ CSV
    yield "a row too short", "a.csv", csv("x,y,tie", "x,y"), r"a.csv:3: .*expected"
    yield "a row too long", "a.csv", csv("x,y,tie", "x,y,tie,more"), r"a.csv:3: .*expected"
    yield "a quote without end", "a.csv", csv('x,"y,tie', "x,y,tie"), r"a.csv:2"
    yield "UTF-16", "a.jsonl", lines(vote()).decode().encode("utf-16"), r"a.jsonl: text: expected CSV in UTF-8, got UTF"
    yield "Latin-1", "a.csv", csv("x,y,tie") + "é,y,tie\n".encode("latin-1"), r"a.csv:3: .*UTF-8"
    yield "a spreadsheet", "a.csv", b"PK\x03\x04" + bytes(100), r"a.csv: text: expected CSV in UTF-8, got "
    yield "another spreadsheet", "a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), r"a.csv: text: expected"
    yield "a picture", "a.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), r"a.csv"
    yield "gzip that is cut off", "a.csv.gz", cut(gzip.compress(csv(*["x,y,tie"] * 500))), r"a.csv.gz"
    yield "gzip that is none", "a.csv.gz", b"\x1f\x8b" + bytes(30), r"a.csv.gz"
    # ------------------------------------------------------------------------ JSON lines
    yield "a JSON array", "a.jsonl", json.dumps([vote(), 3]).encode(), r"a.jsonl: record 2: expected an object, got 3"
    yield "a list in a line", "a.jsonl", lines(vote(), ["x", "y", "tie"]), r"a.jsonl:2: "
    yield "a line cut off", "a.jsonl", lines(vote()) + b'{"model_a": "x", "mod', r"a.jsonl:2: "
    yield "two objects in a line", "a.jsonl", lines(f"{json.dumps(vote())} {json.dumps(vote())}"), r"a.jsonl:1: "
    yield "NaN in JSON", "a.jsonl", lines('{"model_a": "x", "model_b": NaN, "winner": "tie"}'), r"a.jsonl:1: "
    yield "no winner in a line", "a.jsonl", lines(vote(), {"model_a": "x"}), r"a.jsonl:2: model_b: expected a name"
    yield "an object for a model", "a.jsonl", lines(vote(model_b={"name": "y"})), r"a.jsonl:1: model_b: expected"
    yield "true for a model", "a.jsonl", lines(vote(model_b=True)), r"a.jsonl:1: model_b: expected .*[Tt]rue"
    yield "a list for a winner", "a.jsonl", lines(vote(winner=["model_a"])), r"a.jsonl:1: winner: expected"
    yield "a lone surrogate", "a.jsonl", b'{"model_a": "\\ud800", "model_b": "y", "winner": "tie"}\n', r"a.jsonl:1: "
    yield "bytes that are no UTF-8 in JSON", "a.jsonl", lines(vote()).replace(b'"y"', b'"\xff"'), r"a.jsonl:1: "
    # ------------------------------------------------------------------------ Parquet
    yield "Parquet cut off", "a.parquet", cut(WHOLE, 0.6), r"a.parquet"
    yield "Parquet with a broken end", "a.parquet", WHOLE[:-8] + b"\xff\xff\xff\x7fPAR1", r"a.parquet"
    yield "Parquet without rows", "a.parquet", parquet({"model_a": [], "model_b": [], "winner": []}), r"a.parquet"
    yield "Parquet without a winner", "a.parquet", parquet({"model_a": ["x"], "model_b": ["y"]}), r"a.parquet: answer: "
    yield (
        "a list of models in Parquet",
        "a.parquet",
        parquet({"model_a": [["x"]], "model_b": ["y"], "winner": ["tie"]}),
        r"a.parquet: row 1: model_a: expected",
    )
    yield (
        "no model in Parquet",
        "a.parquet",
        parquet({"model_a": ["x", None], "model_b": ["y", "x"], "winner": ["tie", "tie"]}),
        r"a.parquet: row 2: model_a: expected a name, got nothing",
    )
