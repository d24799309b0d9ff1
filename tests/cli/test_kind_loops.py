"""The command line and loops of every kind of feedback: how they are made, or not; that it says what the loop says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import done, heedful, refusal

from heedful import Loop
from kinds import Kind, ask, each_kind, teach
from loops import as_json, bits, diverged

FILMS = "title,minutes,year\n" + "".join(f"film {j},{80 + 7 * j},{1950 + 11 * (j % 5)}\n" for j in range(8))
GRADES = "init films films.csv --kind year=number --kind minutes=number --control 0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(FILMS)
    (tmp_path / "models.csv").write_text(MODELS)
    return tmp_path


@pytest.mark.slow
@each_kind
def test_the_command_line_says_what_the_loop_says(kind: Kind) -> None:
    """Of a decision and an answer, looking back, and out and in again."""
    pytest.importorskip("matplotlib")
    own = f"--own {kind.own}" if kind.own else ""
    with kind.make("l.heedful") as loop:
        teach(kind, loop, range(24))
    person = ask(kind, 24)["person"]
    about = ask(kind, 24).get("context")
    context = "" if about is None else "--context " + json.dumps(about, separators=(",", ":"))
    decided = done(f"decide l --id d24 --person {person} --json {context} {own}").json
    answer = kind.answer(24, tuple(decided["shown"]))
    said = done(f"feedback l d24 --id e24 --json --form {{}} {own}", json.dumps(answer)).json
    assert (said["status"], said["learned"]) == ("applied", True)
    assert done(f"feedback l d24 --id e24 --json --form {{}} {own}", json.dumps(answer)).json["status"] == "duplicate"
    assert done(f"undo l e23 --json {own}").json["status"] == "applied"
    learner = "" if kind.own else f"--learner {kind.other}"
    with Loop.open("l.heedful", learner=kind.own) as loop:
        assert decided == as_json(loop.decide(person=person, id="d24").plain())  # as it was then
        why, report = as_json(loop.why("d23", top=3)), as_json(loop.report())
        evaluated = as_json(loop.evaluate(*[] if kind.own else [kind.other]))
    for item in ("", why["item"]):
        assert done(f"why l d23 {item} --top 3 --json {own}").json == why
    assert done(f"report l --json {own}").json == report
    assert done(f"evaluate l {learner} --json {own}").json == evaluated
    for line in ("why l d23", "report l", f"evaluate l {learner}"):
        assert done(f"{line} {own}").out
    with Loop.open("l.heedful", learner=kind.own) as loop:
        loop.withdraw("i2")
    done(f"export l out.jsonl {own}")
    kind.make("again.heedful", n_items=0).close()
    done(f"validate again out.jsonl {own}")
    counts = done(f"import again out.jsonl --json {own}").json["counts"]
    assert [(count["duplicate"], count["rejected"]) for count in counts.values()] == [(0, 0)] * len(counts)
    for name in ("l", "again"):
        done(f"doctor {name} {own}")
    with Loop.open("l.heedful", learner=kind.own) as one, Loop.open("again.heedful", learner=kind.own) as two:
        assert bits(one) == bits(two)
        assert one.items == two.items
        assert one.rank() == two.rank()
    assert done(f"forget l p1 --yes --json {own}").json["events"] >= 8


MADE: list[tuple[str, list[str], dict[str, Any]]] = [
    (
        f"{GRADES} --grades 5",
        ["It predicts a grade from 1 to 5 for each, by ordinal-logistic:n_ranks=5, and learns from grades."],
        {"learner": "ordinal-logistic:n_ranks=5", "grades": 5},
    ),
    (
        "init films films.csv --ratings 1..5 --k 2 --control 0",
        [
            "It learns who likes what from ratings from 1 to 5, by bmf. Each item is known by its name alone.",
            "buy: a rating of 5 that counts as 1",
            "Next: heedful decide films --person NAME",
        ],
        {"learner": "bmf", "ratings": [1.0, 5.0]},
    ),
    (
        "init films films.csv --ratings 1..5 --features --kind year=number --control 0",
        ["What is liked of one item tells of others that are like it, by "],
        {"learner": "bmf", "ratings": [1.0, 5.0]},
    ),
    (
        "init films films.csv --choices --control 0",
        [
            "It asks which of two is better, by hierarchical-gp and eubo, to find which item is the best.",
            "Each item is known by its name alone.",
            "Note: control 0: only what it is least sure of is asked",
            "Next: heedful decide films --person NAME",
        ],
        {"learner": "hierarchical-gp", "choices": "best"},
    ),
]
MODELS = "id,cost,vendor\nsmall,0.5,x\nlarge,15,y\n"
ROUTED = "init films models.csv --route"


@pytest.mark.parametrize(("line", "told", "facts"), MADE)
def test_a_loop_is_made_and_says_so(line: str, told: list[str], facts: dict[str, Any]) -> None:
    got = done(line)
    assert [text for text in told if text not in got.out] == []
    with Loop.open("films.heedful") as loop:
        assert {"learner": loop.manifest.learner, **loop.facts}.items() >= facts.items()
        assert (len(loop.items), loop.settings.repeats) == (8, False)
        assert (loop.manifest.encoding.size > 0) == ("grades" in facts or "--features" in line)


RATED, CHOSEN = "init films films.csv", "init films films.csv --choices"
NAMED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (f"{GRADES} --learner prank:n_ranks=3", {"grades": 3, "learner": "prank:n_ranks=3"}, {}),
    (f"{GRADES} --learner prank --grades 3", {"grades": 3, "learner": "prank:n_ranks=3"}, {}),
    (
        f"{GRADES} --learner widrow-hoff:eta=0.1 --grades 3",
        {"grades": 3, "learner": "widrow-hoff:eta=0.1,n_ranks=3"},
        {},
    ),
    (
        "init films --ratings=-10..10 --learner item-mean --repeats --action skip=-10:0.5",
        {"ratings": [-10.0, 10.0], "learner": "item-mean", "items": 0},
        {"repeats": True, "actions": {"skip": (-10.0, 0.5)}},
    ),
    (
        f"{CHOSEN} --goal ranking --learner gp:rule=mes --repeats",
        {"choices": "ranking", "learner": "gp:rule=mes", "features": 0},
        {"repeats": True},
    ),
    (
        f"{CHOSEN} --features --kind title=ignored --kind year=ignored --kind minutes=number",
        {"choices": "best", "features": 1},
        {},
    ),
]
"""Options that make a loop, what `init` says of it as JSON, and settings."""


@pytest.mark.parametrize(("line", "facts", "settings"), NAMED)
def test_options_and_learners_are_those_of_the_loop(line: str, facts: dict[str, Any], settings: dict[str, Any]) -> None:
    assert done(f"{line} --json").json.items() >= facts.items()
    with Loop.open("films.heedful") as loop:
        assert {name: getattr(loop.settings, name) for name in settings} == settings


@pytest.mark.parametrize(("options", "items"), [("--ratings 1..5", ["a"]), ("--choices", ["a", "b"])])
def test_without_a_file_items_come_later(options: str, items: list[str]) -> None:
    assert "no items yet" in done(f"init bare {options}").out
    Path("more.jsonl").write_text("".join(json.dumps({"kind": "item", "id": name}) + "\n" for name in items))
    done("import bare more.jsonl")
    assert sorted(done("decide bare --person ann --json").json["shown"]) == items


def test_of_what_was_consumed_and_done_with_each_item() -> None:
    done("init films films.csv --ratings 1..5 --k 2 --control 0")
    first, second = done("decide films --person ann --id d1 --json").json["shown"]
    done("feedback films d1 --did {} --did {} --did {}", f"{first}=view", f"{first}=buy", f"{second}=hide")
    with Loop.open("films.heedful") as loop:
        [lesson] = loop.lessons(1)
        assert (lesson.chosen, lesson.text) == ((first, second), "view, buy; hide")
    assert len(done("decide films --person ann --show 8 --json").json["shown"]) == 6
    assert len(done("decide films --person ann --show 8 --repeats --json").json["shown"]) == 8
    assert refusal("feedback films d1 --did film") == "--did: expected ITEM=TEXT, such as a=buy, got 'film'"


WRONG = [
    (
        f"{GRADES} --learner prank",
        "learner: expected n_ranks, how many grades there are, got prank; write prank:n_ranks=5",
    ),
    (f"{GRADES} --grades 1", "--grades: expected a whole number, 2 to 1000, got 1"),
    (f"{GRADES} --grades 101", "--grades: expected at most 100 with ordinal-logistic, or another learner with it"),
    (f"{GRADES} --learner prank:n_ranks=4 --grades 5", "learner: expected one that does not say n_ranks itself"),
    (
        f"{GRADES} --learner perceptron --grades 5",
        "--grades: expected a --learner that predicts grades with it, such as ordinal-logistic",
    ),
    (f"{RATED} --ratings 5", "--ratings: expected LOW..HIGH, such as 1..5, got '5'"),
    (f"{RATED} --ratings a..b", "--ratings: expected LOW..HIGH, such as 1..5, got 'a..b'"),
    (f"{GRADES} --grades 0", "--grades: expected a whole number, 2 to 1000, got 0"),
    (
        f"{RATED} --ratings 5..1",
        "ratings: expected the lowest and the highest, such as (1, 5), between -1e6 and 1e6, got (5.0, 1.0)",
    ),
    (f"{RATED} --ratings 1..5 --grades 3", "--ratings: expected none with --grades"),
    (f"{RATED} --ratings 1..5 --kind year=number", "--kind: expected --features with it"),
    (f"{RATED} --ratings 1..5 --texts", "--texts: expected none with --ratings"),
    (f"{RATED} --ratings 1..5 --learner perceptron", "learner: expected one of ratings, such as bmf, got perceptron"),
    (f"{RATED} --ratings 1..5 --action buy=9", "actions: buy: value: expected a number from 1 to 5, got 9"),
    (
        f"{RATED} --ratings 1..5 --action buy=x:1",
        "--action: expected NAME=RATING:WEIGHT, got 'buy=x:1'",
    ),
    (f"{RATED} --goal best", "--goal: expected --choices with it, got none"),
    (f"{RATED} --features", "--features: expected --choices or --ratings with it, got none"),
    (f"{CHOSEN} --ratings 1..5", "--ratings: expected none with --choices"),
    (f"{CHOSEN} --grades 5", "--grades: expected none with --choices"),
    (f"{CHOSEN} --context films.csv", "--context: expected none with --choices"),
    (f"{CHOSEN} --kind year=number", "--kind: expected --features with it"),
    (f"{CHOSEN} --learner perceptron", "learner: expected one of choices, such as hierarchical-gp"),
    (f"{ROUTED} --choices", "--route: expected none with --choices"),
    (f"{ROUTED} --cost-weight -1", "--cost-weight: expected a number from 0 to 1000, got -1"),
    (f"{ROUTED} --cost-weight nan", "--cost-weight: expected a number from 0 to 1000, got nan"),
    (f"{ROUTED} --embedding 0", "--embedding: expected a whole number"),
    (f"{ROUTED} --embedding 3 --context models.csv", "--context: expected none where another option says"),
    (f"{ROUTED} --cross all", "--cross: expected none in a loop of routes"),
    (f"{ROUTED} --kind vendor=category", "--kind: expected none in a loop of routes"),
    (f"{ROUTED} --query-features -", "--query-features: "),
    (f"{ROUTED} --learner perceptron", "learner: expected one that learns from thumbs, such as posterior"),
    (f"{RATED} --cost-weight 0", "--cost-weight: expected --route with it, got none"),
    (f"{RATED} --embedding 3", "--embedding: expected --route with it, got none"),
]


def test_a_loop_of_routes_is_made_and_says_so() -> None:
    """A request may say another cost weight."""
    got = done(f"{ROUTED} --cost-weight 0.02 --embedding 900")
    assert "For each prompt it chooses one of 2 models by embedding" in got.out
    assert "less 0.02 for each unit of cost" in got.out
    assert "--kind" not in got.out
    assert "Next: heedful decide films --context '{\"embedding\": [...]}'" in got.out
    with Loop.open("films.heedful") as loop:
        assert (loop.manifest.learner, loop.settings.cost_weight) == ("posterior", 0.02)
    asked = "".join(f"{a} {b} of rain,{t}\n" for t, a in (("art", "poem"), ("trade", "sum")) for b in "abcdefgh")
    Path("asked.csv").write_text(f"prompt,task\n{asked}")
    done("init asked models.csv --route --context asked.csv")
    with Loop.open("asked.heedful") as loop:
        assert {"task=art × id=small", "prompt~poem × id=large"} <= set(loop.feature_names)
    made = done("init words models.csv --route --json").json
    assert (made["learner"], made["items"]) == ("posterior", 2)
    assert [each["column"] for each in made["context"]] == ["prompt", "cost_weight"]


def test_a_route_is_decided_for_a_prompt_alone() -> None:
    """Unless the decision was made before; what is missing is said as it would have to be written."""
    done("init words models.csv --route")
    for line in ("decide words", "decide words --id d1"):
        got = heedful(line)
        assert (got.code, got.out) == (2, "")
        told = 'expected one in a loop of routes, such as --context \'{"prompt": "THE PROMPT"}\', got none'
        assert got.err == f"heedful: --context: {told}\n"
    with Loop.open("words.heedful") as loop:
        assert "decision" not in loop.projection.log.counts()
    made = done('decide words --id d1 --json --context {"prompt":"rain"}').json
    [head] = [line.split() for line in heedful("decide words --id d1").out.splitlines() if "item" in line.split()]
    assert head == ["thumb", "item", "cost"]  # and not the name twice
    assert heedful("decide words --id d1 --json").json == made


@pytest.mark.parametrize(("line", "told"), WRONG)
def test_what_makes_no_sense_is_bad_input_and_nothing_is_made(line: str, told: str, folder: Path) -> None:
    assert told in refusal(line)
    assert not (folder / "films.heedful").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_are_a_problem_and_said(folder: Path) -> None:
    diverged(folder / "films.heedful").close()
    got = heedful("doctor films --json")
    assert got.code == 1
    [found] = [each for each in got.json if each["status"] == "problem"]
    assert found["check"] == "weights"
    assert "because eta=1e+20 is too large for these features" in found["told"]
    assert "heedful export" in found["next"]
    told: Any = done("why films d29 --json").json
    assert (told["score"], told["place"]) == (None, 1)
    said = done("why films d29").out
    assert "no number" in said
    assert "nan" not in said
    rows = [line for line in done("evaluate films").out.splitlines() if not line.rstrip().endswith((".", "%"))]
    assert max(map(len, rows)) <= 160
    assert None in done("evaluate films --json").json["learners"][0]["weights"].values()
    assert "settings" not in [each["check"] for each in got.json]  # what is frozen is another matter
