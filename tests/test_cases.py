"""What people bring, in small, through the command line: an input, what is typed, and what has to come of it.

Each is here for an option or a sentence of a command. What a reader makes of a file is tried at the reader
(`data/test_brought_tables.py`, `data/test_wide_choices.py`, `data/test_set_aside.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import heedful


class Step(NamedTuple):
    """A command `line`, its exit `code`, texts that it says on stdout or stderr, and, if it prints JSON, the names in
    its ranking and what stands at paths in it."""

    line: str
    says: tuple[str, ...] = ()
    code: int = 0
    ranking: str = ""
    has: Mapping[str, Any] = {}
    never: tuple[str, ...] = ()


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


NEWS = "paper,section,year\n" + "".join(f"n{i},{'xyz'[i % 3]},{2000 + i}\n" for i in range(6))
CASES: dict[str, tuple[Mapping[str, str], tuple[Step, ...]]] = {
    "kinds of feedback": (
        {"did.csv": "feedback_type,user_id,item_id\nstar,u0,i0\nread,u1,i0\n"},
        (
            Step("simulate ratings did.csv --rounds 3", ("such as --worth star=1 --worth read=2",), 2),
            Step("init films --ratings 1..5"),
            Step("import films did.csv --worth star=5 --worth read=2 --json", has={"counts.feedback.applied": 2}),
        ),
    ),
    "the table of off-policy evaluation": (
        {
            "obp.csv": "timestamp,item_id,propensity_score,click\n"
            + "".join(f"{i},{i % 2},0.5,{i % 4 // 3}\n" for i in range(80))
        },
        (
            Step("evaluate obp.csv", ("as logged 25 %", "always 1 50 %")),
            Step("evaluate obp.csv --column reward=nope", ("reward: expected one of the columns",), 2),
        ),
    ),
    "headers of one's own": (
        {
            "mine.csv": "Prompt,Response 1,Response 2,Preferred\n" + "q,terse,chatty,Response 2\n" * 3,
            "odd.csv": "Prompt,one,other,which\nq,terse,chatty,one\n",
        },
        (
            Step("rank mine.csv --json", ranking="chatty terse", has={"answers": 3}),
            Step("rank odd.csv", ("--column",), 2),
            Step(
                "rank odd.csv --column first=one --column second=other --column answer=which --json",
                ranking="terse chatty",
            ),
        ),
    ),
    "thousands of columns": (
        {
            "wide.csv": "id,"
            + ",".join(f"c{k}" for k in range(900))
            + "\n"
            + "".join(f"i{i}," + ",".join(str(i * k % 7) for k in range(900)) + "\n" for i in range(4))
        },
        (Step("init wide wide.csv", ("and 861 more columns: ", "number"), never=("c500",)),),
    ),
    "new items as a table, with a new column, with a renamed one": (
        {
            "news.csv": NEWS,
            "new.csv": "paper,section,year\nn7,x,2020\nn8,z,2021\n",
            "new-column.csv": "paper,section,year,mood\nn9,y,2022,glad\n",
            "renamed.csv": "paper,part,year\nm1,y,2016\n",
            "other.csv": "name,year\nx,2016\n",
        },
        (
            Step("init press news.csv"),
            Step("import press new.csv", ("2 items were new or changed",)),
            Step("import press new.csv --json", has={"items_put": 0}),
            Step("import press new-column.csv", ("1 item was new or changed", "learns nothing: mood")),
            Step("import press renamed.csv", ("missing, and so without a value: section; was part",)),
            Step("import press other.csv", ("expected the column paper, which names items",), 2),
        ),
    ),
    "votes with names of both, of the chosen, and whether equal": (
        {
            "votes.csv": "model_a_name,model_b_name,chosen_model_name,both_equal\n"
            + "oak,elm,oak,False\n" * 3
            + "elm,oak,,True\n"
        },
        (
            Step(
                "rank votes.csv", ("leaderboard of 2 models from 4 votes", "win 64 of 100 votes if a choice has to be")
            ),
        ),
    ),
    "votes with weights that are counts, and with weights that are none": (
        {
            "votes.csv": "model_a,model_b,winner,weight\noak,elm,model_a,3\noak,elm,model_b,1\nelm,ash,model_a,2\n",
            "alone.csv": "model_a,model_b,winner\n"
            + "oak,elm,model_a\n" * 3
            + "oak,elm,model_b\n"
            + "elm,ash,model_a\n" * 2,
            "parts.csv": "model_a,model_b,winner,weight\noak,elm,model_a,0.7\noak,elm,model_b,1\n",
        },
        (
            *(Step(f"rank {name}.csv", ("6 votes about 3 models",)) for name in ("votes", "alone")),
            Step("rank votes.csv --json", ranking="oak elm ash", has={"answers": 6}),
            Step("rank parts.csv", ("parts.csv:2: times: expected a whole number", "--column times=none"), 2),
            Step("rank parts.csv --column times=none --json", has={"answers": 2}),
        ),
    ),
    "answers with labels, and grades, that do not count": (
        {
            "thumbs.jsonl": lines(
                *({"prompt": "?", "completion": f"Yes, {i}.", "label": True, "skipped": i > 0} for i in range(3))
            ),
            "wine.csv": "acid,grade,draft\n1,bad,0\n2,good,0\n3,odd,1\n",
        },
        (
            Step("init texts --texts"),
            Step("import texts thumbs.jsonl --as unpaired", ("3 rows of labels, 1 used", "--column aside=none")),
            Step("import texts thumbs.jsonl --as unpaired --column aside=none", ("3 rows of labels, 3 used",)),
            Step(
                "simulate ordinal wine.csv --target grade --order bad,good --column aside=none",
                ("wine.csv:4: grade: expected one of bad, good, got 'odd'",),
                2,
            ),
            Step("simulate ordinal wine.csv --target grade --column rating=acid", ("expected aside, got 'rating'",), 2),
        ),
    ),
    "a table whose last row is its sum": (
        {
            "total.csv": "name,price,rooms\nada,10,2\nbob,12,3\ncid,9,1\nTotal,31,6\n",
            "none.csv": "name,price,rooms\nada,10,2\nbob,12,3\ncid,22,5\n",
            "new.csv": "name,price,rooms\neve,1,2\nfay,2,3\nSum,3,5\n",
        },
        (
            Step(
                "init flats total.csv",
                ("total.csv:5: expected an item, got Total, the sum of the rows above it", "head -n -1 total.csv"),
                2,
            ),
            Step("init flats none.csv", ("the last row, cid, has the sum of the rows above it in each column",)),
            Step("import flats new.csv", ("new.csv:4: expected an item, got Sum",), 2),
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_people_bring(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files, steps = CASES[case]
    for name, content in files.items():
        Path(name).write_text(content)
    for step in steps:
        code, out, err = heedful(step.line)
        said = " ".join(f"{err} {out}".split())
        assert code == step.code, said
        assert [text for text in step.says if text not in said] == [], said
        assert [text for text in step.never if text in said] == [], said
        if step.ranking:
            assert " ".join(row["item"] for row in json.loads(out)["ranking"]) == step.ranking
        for path, value in step.has.items():
            found = json.loads(out)
            for key in path.split("."):
                found = found[int(key)] if isinstance(found, list) else found[key]
            assert (path, found) == (path, value)
