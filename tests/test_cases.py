"""What people bring, in small, through the command line: each row is an input of a kind that was reported of tools like
this one, what is typed, and what has to come of it.

What is not said here is that of the doors' own tests: what a reader makes of each cell (`data/test_brought_tables.py`,
`data/test_wide_choices.py`, `data/test_set_aside.py`)."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent / "cli"))

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


def battle(a: str, b: str, winner: str, **more: object) -> dict[str, object]:
    return {"model_a": a, "model_b": b, "winner": winner, **more}


def pair(i: int, **more: object) -> dict[str, object]:
    return {"prompt": f"Which bird, {i}?", "chosen": "A wren sings here.", "rejected": "Perhaps a bird."} | more


def used(n: int, **dropped: str) -> tuple[Step, ...]:
    """Return the steps that import pairs.jsonl as preference data, of which n are used."""
    return Step("init texts --texts"), Step(
        "import texts pairs.jsonl --as preference-data", (f"{n} used", *dropped.values())
    )


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}],
}
SAYS = [{"role": "user", "content": "A bird?"}, {"role": "assistant", "content": "A wren."}]
MAYBE = [SAYS[0], {"role": "assistant", "content": "Perhaps it's a bird."}]
NEWS = "paper,section,year\n" + "".join(f"n{i},{'xyz'[i % 3]},{2000 + i}\n" for i in range(6))
WORDS = ("pool", "sauna", "lift")
FEEDBACK = [
    {
        "id": f"f{i}",
        "user_id": f"u{i % 3}",
        "type": "rating",
        "meta": {},
        "snapshot": {},
        "data": {"rating": 1 if i % 4 else -1, "model_id": "tiny", "sibling_model_ids": ["huge"]},
    }
    for i in range(12)
]
DAYS = {
    f"day{day}.jsonl": lines(
        *(
            line
            for i in range(4)
            for line in (
                {
                    "kind": "decision",
                    "id": str(i),
                    "person": f"p{day}{i}",
                    "candidates": ["a", "b", "c"],
                    "shown": ["a", "b", "c"],
                    "time": f"2026-03-0{day}T10:00:00Z",
                },
                {
                    "kind": "feedback",
                    "id": f"{day}-{i}",
                    "decision": str(i),
                    "clicks": ["b"],
                    "time": f"2026-03-0{day}T10:01:00Z",
                },
            )
        )
    )
    for day in (1, 2)
}
DAYS |= {
    name.replace("day", "bare"): lines(
        *(
            {key: value for key, value in json.loads(line).items() if key not in ("person", "time")}
            for line in text.splitlines()
        )
    )
    for name, text in DAYS.items()
}
LOOP = lines(
    *({"kind": "item", "id": name, "attributes": {"id": name}} for name in "ab"),
    *(
        {"kind": "decision", "id": f"d{i}", "person": f"p{i}", "candidates": ["a", "b"], "shown": ["a", "b"]}
        for i in range(4)
    ),
    *({"kind": "feedback", "id": f"f{i}", "decision": f"d{i}", "choice": "second"} for i in range(4)),
)


def clicks() -> str:
    """Return a log of a page that sends clicks alone: 15 of 20 learned lists have one, 5 of 20 of the control."""
    made = []
    for i in range(40):
        arm = "learned" if i % 2 else "control"
        made.append(
            {
                "kind": "decision",
                "id": f"d{i}",
                "person": f"p{i}",
                "candidates": ["a", "b", "c"],
                "shown": ["a", "b", "c"],
                "arm": arm,
                "probability": 0.5,
            }
        )
        if i // 2 < (15 if i % 2 else 5):
            made.append({"kind": "feedback", "id": f"f{i}", "decision": f"d{i}", "clicks": ["a"]})
    return lines(*made)


def wrong() -> str:
    """Return a log whose probabilities are said to be .5 and are .8 and .2."""
    rng = random.Random(1)
    shown = [rng.random() < 0.8 for _ in range(400)]
    rows = (f"{'oak' if oak else 'elm'},0.5,{int(rng.random() < 0.3)}\n" for oak in shown)
    return "action,probability,reward\n" + "".join(rows)


ITEMS = "id,price,beds\na,10,1\nb,12,2\nc,31,1\n"

CASES: dict[str, tuple[Mapping[str, str | bytes], tuple[Step, ...]]] = {
    "a page that sends clicks and nothing else": (
        {"items.csv": ITEMS, "log.jsonl": clicks()},
        (
            Step("init shop items.csv"),
            Step("import shop log.jsonl"),
            Step("report shop", ("With a click", "75 %", "25 %")),
        ),
    ),
    "one of three banners, which a click judges": (
        {
            "items.csv": "id,label\nx,x\ny,y\nz,z\n",
            "context.csv": "device\nphone\ndesk\ntablet\n",
            "log.jsonl": lines(
                {
                    "kind": "decision",
                    "id": "d",
                    "candidates": ["x", "y", "z"],
                    "shown": ["x"],
                    "context": {"device": "desk"},
                },
                {"kind": "feedback", "id": "f", "decision": "d", "clicks": ["x"]},
            ),
        },
        (
            Step(
                "init ad items.csv --k 1 --context context.csv --cross device:label --kind label=category",
                ("Each decision shows one item, by posterior",),
            ),
            Step("import ad log.jsonl", ("moved the model: 1 of 1 feedback",)),
        ),
    ),
    "preference pairs with calls of tools": (
        {"pairs.jsonl": lines(pair(0), pair(1, chosen=[SAYS[0], CALL], rejected=MAYBE))},
        used(1, tools="an answer or the prompt holds something other than text"),
    ),
    "a European spreadsheet": (
        {"flats.csv": "id;rent;share\na;1.234,50;12,5 %\nb;99,90;7,0 %\nc;5,25;45,0 %\n"},
        (
            Step(
                "init flats flats.csv", ("numbers: rent (1.234,50 is 1234.50), share (12,5 % is 12.5)", "5.25 to 1234")
            ),
        ),
    ),
    "a reader's library": (
        {"library.csv": "Book Id,Title,My Rating\n" + "".join(f"{i},T{i},{i % 4 and i % 4 + 2}\n" for i in range(9))},
        (
            Step(
                "simulate ratings library.csv --rounds 3",
                ("person: expected a column of person", "0 in 3 of 9", "--missing 0 if it stands for none"),
                2,
            ),
            Step("init films --ratings 1..5"),
            Step("import films library.csv", ("person: expected a column of person", "--missing 0"), 2),
        ),
    ),
    "counts of plays": (
        {"plays.dat": "userID\tartistID\tweight\n1\t7\t300\n1\t8\t20\n2\t7\t4000\n"},
        (Step("simulate ratings plays.dat --rounds 3", ("weight has counts, which are no ratings",), 2),),
    ),
    "kinds of feedback": (
        {"did.csv": "feedback_type,user_id,item_id\nstar,u0,i0\nread,u1,i0\n"},
        (
            Step("simulate ratings did.csv --rounds 3", ("such as --worth star=1 --worth read=2",), 2),
            Step("init films --ratings 1..5"),
            Step("import films did.csv --worth star=5 --worth read=2 --json", has={"counts.feedback.applied": 2}),
        ),
    ),
    "battles of an arena, as an array and as lines": (
        {
            "a.json": json.dumps([battle("m1", "m2", "model_a", anony=i > 1) for i in range(8)]),
            "a.jsonl": lines(*(battle("m1", "m2", "model_a", anony=i > 1) for i in range(8))),
        },
        tuple(
            Step(
                f"rank {name} --json", (f"{name}: 2 rows left out, as anony is false in 2",), 0, "m1 m2", {"answers": 6}
            )
            for name in ("a.json", "a.jsonl")
        ),
    ),
    "tables as a JSON array": (
        {
            "items.json": json.dumps([{"name": name, "hp": hp} for name, hp in (("a", 1), ("b", 2), ("c", 4))]),
            "choices.json": json.dumps([{"winner": "a", "loser": "b"}, {"winner": "b", "loser": "c"}]),
            "shown.json": json.dumps(
                [{"action": "ab"[i % 2], "probability": 0.5, "reward": i % 3 == 0} for i in range(9)]
            ),
            "ratings.json": json.dumps([{"user": "u", "item": "ab"[i % 2], "rating": i} for i in (2, 3)]),
            "wine.json": json.dumps([{"hp": 1, "grade": "good"}]),
        },
        (
            Step("init cars items.json", ("3 items by name",)),
            Step("rank choices.json --json", ranking="a b c"),
            Step("evaluate shown.json --json", has={"decisions": 9}),
            Step("init films --ratings 1..5"),
            Step("import films ratings.json --json", has={"counts.feedback.applied": 2}),
            Step("simulate ordinal wine.json --target grade", ("labels need their order",), 2),
        ),
    ),
    "a survey's CSV with three headers": (
        {
            "survey.csv": 'ResponseId,winner,loser\nResponse ID,Better,Worse\n"{""ImportId"":""_recordId""}",'
            '"{""ImportId"":""Q1""}","{""ImportId"":""Q2""}"\nR1,Tram,Bus\nR1,Tram,Bike\nR2,Tram,Bus\nR2,Bike,Bus\n'
        },
        (
            Step(
                "rank survey.csv --arena --json",
                ("2 further headers of a survey left out",),
                0,
                "Tram Bike Bus",
                {"people": 2, "answers": 4},
            ),
        ),
    ),
    "a log of Vowpal Wabbit": (
        {
            "log.dsjson": lines(
                *(
                    {
                        "_label_cost": -1.0 if i % 4 == 0 else 0.0,
                        "_label_probability": 0.5,
                        "_label_Action": i % 2 + 1,
                        "_labelIndex": i % 2,
                        "EventId": f"e{i}",
                        "c": {"_multi": [{"id": "news"}, {"id": "food"}]},
                    }
                    for i in range(80)
                )
            )
        },
        (Step("evaluate log.dsjson", ("as logged 25 %", "always news 50 %", "always food 0 %")),),
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
    "best and worst of four": (
        {"tasks.csv": "person,item1,item2,item3,item4,best,worst\n" + "r,a,b,c,d,a,d\n" * 3},
        (
            Step(
                "rank tasks.csv --json",
                ("the best and the worst of 4",),
                has={"ranking.0.item": "a", "ranking.3.item": "d"},
            ),
        ),
    ),
    "a column for each option": (
        {
            "ballots.csv": "VoterID,Tram,Bus,Bike\nV1,2,3,1\nV2,2,3,1\nV3,1,,2\n",
            "form.csv": 'Timestamp,"Now [Tram]","Now [Bus]"\n2026/03/01 9:12 AM,2nd,1st\n2026/03/02 9:14 AM,2nd,1st\n',
        },
        (
            Step(
                "rank ballots.csv --json",
                ("a rank in each of the columns Tram, Bus, Bike",),
                0,
                "Bike Tram Bus",
                {"people": 3},
            ),
            Step("rank form.csv --json", ranking="Bus Tram"),
        ),
    ),
    "counts of wins, in rows and as a matrix": (
        {
            "pairs.csv": "item1,item2,wins1,wins2\noak,elm,9,2\nelm,ash,8,3\noak,ash,9,1\n",
            "wins.csv": ",oak,elm,ash\noak,0,9,9\nelm,2,0,8\nash,1,3,0\n",
        },
        tuple(
            Step(
                f"rank {name} --json", ranking="oak elm ash", has={"answers": 32}, never=("took the first of the two",)
            )
            for name in ("pairs.csv", "wins.csv")
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
    "the feedback history of a chat page": (
        {"history.json": json.dumps(FEEDBACK)},
        (Step("rank history.json --json", ranking="tiny huge", has={"answers": 12, "people": 3}),),
    ),
    "two groups that never met": (
        {
            "two.csv": "model_a,model_b,winner\n"
            + "dog,elk,model_a\n" * 9
            + "elk,fox,model_a\n" * 5
            + "ace,bee,model_a\n" * 3
        },
        (
            Step(
                "rank two.csv --json",
                ("Models fall into 2 parts that never met", "dog, elk, fox; ace, bee"),
                ranking="dog elk fox ace bee",
                has={"ranking.3.place": 1, "ranking.2.told_apart": None},
            ),
        ),
    ),
    "a row in which an item meets itself": (
        {"battles.csv": "model_a,model_b,winner\nx,x,model_a\nx,y,model_a\ny,x,model_b\n"},
        (
            Step(
                "rank battles.csv",
                ("1 row in which an item meets itself left out", "2 votes"),
                never=("count 0 times",),
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
    "a spreadsheet": (
        {"items.xlsx": b"PK\x03\x04\x14\x00\xa7"},
        tuple(
            Step(line, ("expected CSV in UTF-8, got a spreadsheet or a zip: save it as CSV UTF-8",), 2)
            for line in (
                "init loop items.xlsx",
                "rank items.xlsx",
                "simulate ratings items.xlsx",
                "evaluate items.xlsx",
                "simulate ordinal items.xlsx --target x",
            )
        ),
    ),
    "messages in a cell, as JSON and as Python prints them": (
        {
            "json.csv": "prompt,chosen,rejected\n"
            + ",".join('"' + json.dumps(each).replace('"', '""') + '"' for each in (SAYS[:1], SAYS[1:], MAYBE[1:])),
            "printed.csv": "prompt,chosen,rejected\n"
            + ",".join('"' + repr(each).replace('"', '""') + '"' for each in (SAYS[:1], SAYS[1:], MAYBE[1:])),
        },
        tuple(
            step
            for name in ("json", "printed")
            for step in (
                Step(f"init {name} --texts"),
                Step(f"import {name} {name}.csv --as preference-data", ("1 pair, 1 used",)),
                Step(f"export {name} {name}.jsonl --as preference-data"),
                Step(f"cat {name}.jsonl", ('"content":"A wren."}]', '"content":"Perhaps it\'s a bird."}]')),
            )
        ),
    ),
    "N/A, - and ?, a region called NA, empty rows and columns": (
        {
            "flats.csv": "name,rent,size\n"
            + "".join(f"f{i},{600 + i},{'-' if i == 2 else 30 + i}\n" for i in range(5)),
            "regions.csv": "code,price\nNA,10\nEU,12\nAS,14\n",
            "trailing.csv": "name,price,,\nada,10,,\nbob,12,,\ncid,9,,\n,,,\n,,,\n",
            "choices.csv": "winner,loser,,\nNA,SA,,\nNA,EU,,\nEU,SA,,\n,,,\n",
        },
        (
            Step("init flats flats.csv", ("missing numbers: size (-)",)),
            Step("init regions regions.csv", ("3 items by code",)),
            Step(
                "init trailing trailing.csv", ("2 empty columns left out", "2 empty rows left out", "3 items by name")
            ),
            Step("rank choices.csv --json", ("1 empty row left out",), 0, "NA EU SA"),
        ),
    ),
    "a column of lists of words": (
        {"flats.jsonl": lines(*({"id": f"f{i}", "price": i, "has": [WORDS[i % 3], WORDS[i % 2]]} for i in range(12)))},
        (Step("init flats flats.jsonl", ("lists of 3 different words",)),),
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
    "reviews of a shop, where a title is no item": (
        {"reviews.jsonl": lines(*({"rating": i, "title": f"T{i}", "asin": "B1", "user_id": f"u{i}"} for i in (3, 4)))},
        (
            Step("init films --ratings 1..5"),
            Step("import films reviews.jsonl --json", has={"counts.item.applied": 1, "counts.feedback.applied": 2}),
        ),
    ),
    "a matrix of ratings with 99 for none": (
        {"wide.csv": "user,j1,j2,j3\nu1,-9.5,99,3\nu2,99,8.25,-1\nu3,4.5,99,99\n"},
        (
            Step("init jokes --ratings -10..10"),
            Step("import jokes wide.csv", ("a matrix: each of 3 columns is taken for an item", "--missing 99"), 2),
            Step("import jokes wide.csv --missing 99 --json", has={"counts.feedback.applied": 5}),
        ),
    ),
    "ratings that are nothing but ones": (
        {"ones.csv": "user_id,item_id,rating\nu1,i1,1\nu2,i1,1\nu1,i2,1\n"},
        (
            Step("init films --ratings 1..5"),
            Step("import films ones.csv", ("all 3 ratings are the same, 1: nothing can be learned of them",)),
        ),
    ),
    "votes with names of both, of the chosen, and whether equal": (
        {
            "votes.csv": "model_a_name,model_b_name,chosen_model_name,both_equal\n"
            + "oak,elm,oak,False\n" * 3
            + "elm,oak,,True\n"
        },
        (
            Step("rank votes.csv", ("leaderboard of 2 models from 4 votes",)),
            Step("rank votes.csv --json", ranking="oak elm", has={"ties.votes": 1, "model": "arena"}),
        ),
    ),
    "a log whose probabilities are wrong": (
        {"log.csv": wrong()},
        (Step("evaluate log.csv", ("always elm unknown", "not 1: logged probabilities are wrong")),),
    ),
    "a log that numbers its lists anew each day": (
        {"items.csv": ITEMS, **DAYS},
        (
            Step("init shop items.csv"),
            Step("import shop day1.jsonl --json", has={"counts.feedback.applied": 4}),
            Step("import shop day2.jsonl", ("with other content: another person", "so its answer is not joined to"), 1),
            Step(
                "import shop day2.jsonl --json",
                code=1,
                has={"counts.decision.rejected": 4, "counts.feedback.rejected": 4, "counts.feedback.applied": 0},
            ),
            Step("init other items.csv"),
            *(
                Step(f"import other bare{day}.jsonl", says)
                for day, says in ((1, ()), (2, ("decision 0 had an answer before", "Then give it another")))
            ),
        ),
    ),
    "five people judge one pair": (
        {"pairs.jsonl": lines(*[pair(0)] * 4, pair(0, chosen="Perhaps a bird.", rejected="A wren sings here."))},
        (*used(5), Step("import texts pairs.jsonl --as preference-data", ("0 new, 5 in the loop already",))),
    ),
    "an export that has each annotation twice": (
        {
            "twice.csv": "annotation_id,person,first,second,answer,updated_at\n"
            + "".join(f"n{i},p{i},clay,slate,first,2026-03-01 10:0{i}\n" * 2 for i in range(4)),
            "changed.csv": "annotation_id,person,first,second,answer,updated_at\n"
            "n1,p,clay,slate,first,2026-03-01 10:00\nn1,p,clay,slate,second,2026-03-02 10:00\n",
        },
        (
            Step("rank twice.csv --arena", ("4 votes",)),
            Step("rank twice.csv --arena --json", has={"answers": 4}),
            Step("rank changed.csv --arena --json", ranking="slate clay", has={"answers": 1}),
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
    "pairs that were cancelled or discarded": (
        {"pairs.jsonl": lines(pair(0, was_cancelled=False), pair(1, was_cancelled=True), pair(2, status="discarded"))},
        (
            *used(1, cancelled="was_cancelled: true", discarded="status: discarded"),
            Step("import texts pairs.jsonl --as preference-data --column aside=none", ("3 used",)),
            Step("import texts pairs.jsonl --as preference-data --column aside=was_cancelled", ("2 used",)),
            Step("import texts pairs.jsonl --as preference-data --column person=who", ("got 'person'",), 2),
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
    "several answers to a prompt, with scores, or lists of chosen": (
        {
            "pairs.jsonl": lines(
                {"prompt": "?", "completions": ["Yes, it is.", "No.", "Perhaps."], "scores": [0.9, 0.1, 0.5]},
                {"prompt": "!", "chosen": ["A wren.", "A lark."], "rejected": ["Perhaps.", "Hm."]},
            )
        },
        used(7),
    ),
    "the export of a loop of choices": (
        {"marks.jsonl": LOOP},
        (Step("rank marks.jsonl --json", ranking="b a", has={"answers": 4, "people": 4}),),
    ),
    "rewards that are money": (
        {
            "sales.csv": "action,probability,reward\n"
            + "".join(f"{'xy'[i % 2]},0.5,{5000 if i == 7 else 0}\n" for i in range(60))
        },
        (
            Step("evaluate sales.csv", ("There is no interval, as nobody said how low and how high a reward may be",)),
            Step(
                "evaluate sales.csv --least-reward 0 --most-reward 10000",
                ("Intervals hold if each reward lies between 0 and 10,000",),
            ),
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


SLOW = ("two groups that never met", "a page that sends clicks and nothing else", "tables as a JSON array")


@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=pytest.mark.slow) if each in SLOW else each for each in CASES]
)
def test_what_people_bring(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files, steps = CASES[case]
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for step in steps:
        if step.line.startswith("cat "):
            code, out, err = 0, Path(step.line[4:]).read_text(), ""
        else:
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


def test_the_order_of_rows_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["oak,elm\n"] * 7 + ["elm,oak\n"] * 5 + ["elm,ash\n"] * 6 + ["ash,elm\n"] * 3
    found = []
    for i in range(2):
        Path("votes.csv").write_text("winner,loser\n" + "".join(rows))
        random.Random(i).shuffle(rows)
        got = heedful("rank votes.csv --json").json
        found.append((got["ranking"], {name: value for name, value in got.items() if name != "ranking"}))
    assert found[0] == found[1]
