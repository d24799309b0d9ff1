"""`heedful init`, `decide`, `feedback`, `undo`, `forget`, `why`, `evaluate`: answers, exit codes, every refusal."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
import types
from pathlib import Path
from typing import Any

import pytest
import typer
from command import bad, done, heedful, refusal

from heedful import Loop
from heedful.cli.common import place
from heedful.cli.feedback_options import options_of
from heedful.loop.interactions.fields import all_forms, fields_of

CARS = """name,make,hp,mpg,note
beetle,vw,44,30,small round car
mini,bmc,60,35,small square car
golf,vw,70,33,a car for all
mustang,ford,200,15,fast red car
"pinto, old",ford,80,28,slow brown car
a=b,vw,90,,blue car
"""
INIT = "init cars cars.csv --kind make=category --kind note=ignored"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cars.csv").write_text(CARS)
    (tmp_path / "requests.csv").write_text("day,hurry\n" + "mon,1\ntue,2\n" * 4)
    return tmp_path


@pytest.fixture
def cars() -> str:
    assert heedful(f"{INIT} --control 0").code == 0
    return "cars"


def decided(line: str = "decide cars --id d1", *filled: object) -> Any:
    got = done(f"{line} --json", *filled)
    return got.json


# ---------------------------------------------------------------------------- where a loop is


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("cars", "cars.heedful"),
        ("cars.heedful", "cars.heedful"),
        ("./cars", "cars"),
        ("a/b", "a/b"),
        ("v1.2", "v1.2.heedful"),
    ],
)
def test_where_a_loop_is(name: str, folder: str) -> None:
    assert place(name) == Path(folder)


COMMANDS = [
    "decide {}",
    "feedback {} d --none",
    "undo {} e",
    "rollback {} 2",
    "forget {} p --yes",
    "why {} d",
    "evaluate {}",
]
COMMANDS += ["import {} cars.csv", "export {} out.jsonl", "validate {} cars.csv", "doctor {}"]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_loop_that_is_not_there_says_how_to_make_one(line: str) -> None:
    bad(heedful(line, "bikes"), "bikes.heedful: no such loop; make one: heedful init bikes ITEMS.csv")
    Path("empty.heedful").mkdir()
    bad(heedful(line, "empty"), "empty.heedful: this folder holds no loop; make one: heedful init empty ITEMS.csv")
    bad(heedful(line, "my shop"), "my shop.heedful: no such loop; make one: heedful init 'my shop' ITEMS.csv")


@pytest.mark.parametrize("line", COMMANDS)
def test_a_log_that_is_damaged_is_no_fault_of_the_input(cars: str, line: str) -> None:
    Path("cars.heedful/log.db").write_bytes(b"not a database" * 1000)
    got = heedful(line, "cars")
    assert got.code == 1
    assert "cars.heedful/log.db: expected a" in " ".join((got.out + got.err).split())


OWN = """
from typing import Any, NamedTuple
import numpy as np
class Mine(NamedTuple):
    n_features: int
    space: Any
    def init(self, rng): return np.zeros(self.n_features)
    def propose(self, state, x, rng): return self.space.argmax(state, x)
    def update(self, state, x, y, feedback): return state
    def weights(self, state): return state
"""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_learner_of_ones_own_is_named_again(line: str) -> None:
    Path("own.py").write_text(OWN)
    got = done("init mine cars.csv --learner own.py:Mine --json")
    got = heedful(line, "mine")
    assert got.code == 2
    assert "own.py:Mine is not one of heedful's" in got.err
    assert got.err.rstrip().endswith("(here: --own SPEC)")
    assert "expected own.py:Mine" in heedful(f"{line} --own own.py:Other", "mine").err
    assert heedful("decide mine --own own.py:Mine --id d").code == 0
    got = heedful(f"{line} --own own.py:Mine", "mine")
    assert "own.py:Mine is not" not in got.err
    assert got.code == (3 if line.startswith("undo") else 2 if "validate" in line else 0)


# ---------------------------------------------------------------------------- init


def test_init_tells_what_columns_became_and_what_is_next() -> None:
    got = done("init cars cars.csv --kind make=category --control 0 --exploration 0")
    lines = got.out.splitlines()
    assert lines[0].rstrip() == "cars.heedful: 6 items by name"
    rows = {words[0]: words for words in (line.split() for line in lines) if words}
    assert list(rows)[1:2] == ["column"]
    assert rows["hp"][1:3] == ["number", "1"]
    assert rows["mpg"][1:7] == ["number", "2", "15", "to", "35", "1"]  # one is missing
    assert rows["make"][1:4] == ["category", "3", "vw"]
    assert rows["name"][1] == "ignored"
    assert "All of this is frozen" in got.out
    assert "Note: control 0: nothing keeps the caller's order" in got.out
    assert "Note: exploration 0" in got.out
    assert lines[-1] == "Next: heedful decide cars"
    assert "Ignored, though" not in got.out
    assert heedful(lines[-1].split(": heedful ")[1]).code == 0
    assert Path("cars.heedful/log.db").is_file()


def test_init_gives_the_very_command_that_takes_ignored_texts_in() -> None:
    rows = ["1,toner red,a,x1,3", "2,toner blue,b,x2,4", "3,paper,b,x3,5", "4,toner,c,x4,6", "5,pen,d,x5,7"]
    Path("small.csv").write_text("\n".join(["id,title,maker,code,price", *rows, ""]))
    got = done("init {} small.csv --identifier id --k 3 --people 2.5 --only-shown --strict --control 0", "my shop")
    lines = got.out.splitlines()
    at = lines.index("Ignored, though they may well matter: title, maker. With them:")
    remove, again = (shlex.split(line) for line in lines[at + 1 : at + 3])
    assert remove == ["rm", "-r", "my shop.heedful"]
    assert again[:4] == ["heedful", "init", "my shop", "small.csv"]
    assert {"--identifier", "--only-shown", "--strict", "--kind=title=text", "--kind=maker=category"} < set(again)
    Path("my shop.heedful").rename("before.heedful")
    got = done(" ".join("{}" for _ in again[1:]), *again[1:])
    assert "Ignored, though" not in got.out
    with Loop.open("my shop.heedful") as loop, Loop.open("before.heedful") as before:
        assert loop.settings == before.settings
        assert {"category", "text"} < {column.kind for column in loop.manifest.encoding.describe()}


def test_init_as_json() -> None:
    got = done(f"{INIT} --context requests.csv --cross day:make --cross hurry:hp --json")
    assert got.json["loop"] == "cars.heedful"
    assert (got.json["learner"], got.json["items"], got.json["identifier"]) == ("posterior", 6, "name")
    assert [column["column"] for column in got.json["columns"]] == ["name", "make", "hp", "mpg", "note"]
    assert [column["kind"] for column in got.json["columns"]][1:3] == ["category", "number"]
    assert [column["column"] for column in got.json["context"]] == ["day", "hurry"]
    assert got.json["crosses"] == [["day", "make"], ["hurry", "hp"]]
    assert got.json["features"] == (3 + 1 + 2) + (2 * 3 + 1) + 1
    assert got.json["caveats"] == []
    assert got.json["next"] == "heedful decide cars"


@pytest.mark.slow
def test_a_routing_loop_works_at_the_first_try() -> None:
    """A few models, a handful of prompts with their embeddings, crossed with the model itself: it is made, decides, and
    learns from thumbs which model to ask what."""
    Path("models.csv").write_text("model,title,cost\nsmall,Small one,0.1\nbig,Big one,2.5\nodd,Odd one,1.0\n")
    prompts = [{"prompt": "a poem", "embedding": [1.0, 0.0]}, {"prompt": "a sum", "embedding": [0.0, 1.0]}]
    for some in (prompts, prompts[:1]):
        Path("prompts.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in some))
        got = done("init routes models.csv --context prompts.jsonl --cross embedding:model --k 1 --json")
        assert (got.json["identifier"], got.json["crosses"]) == ("model", [["embedding", "model"]])
        with Loop.open("routes.heedful") as loop:
            for i in range(120):
                prompt = prompts[i % 2]
                d = loop.decide(context=prompt, id=f"d{i}")
                good = d.shown[0] == ("small" if i % 2 else "big")
                loop.feedback(d.id, thumb="up" if good else "down")
            routed = [loop.rank(context=prompt)[0] for prompt in prompts]
            assert routed == ["big", "small"]
        shutil.rmtree("routes.heedful")
    err = refusal("init routes models.csv --context prompts.jsonl --cross all --k 1")
    assert "prompts.jsonl: columns: expected at least one that tells rows apart, got " in err
    assert "; name what is crossed, --cross CONTEXTCOLUMN:ITEMCOLUMN, and it is kept" in err


def test_init_settings_and_all_crosses() -> None:
    line = f"{INIT} --context requests.csv --cross all --k 3 --control 0.5 --exploration 0.4 --people 9 --no-text"
    line += " --durable feedback"
    line += " --only-shown"
    got = heedful(f"{line} --action watch=0.5 --action skip=-1 --learner posterior --json")
    assert (got.code, got.json["crosses"]) == (0, "all")
    with Loop.open("cars.heedful") as loop:
        settings = loop.settings
        assert (settings.k, settings.control, settings.exploration, settings.shrink) == (3, 0.5, 0.4, 9.0)
        assert settings.durable == "feedback"
        assert (settings.store_text, settings.keep_unshown, settings.actions) == (
            False,
            False,
            {"watch": 0.5, "skip": -1},
        )
        assert loop.manifest.learner == "posterior"


def test_a_column_may_have_a_colon_in_its_name() -> None:
    Path("requests.csv").write_text("a:b,a\n1,2\n2,1\n")
    got = heedful(f"{INIT} --context requests.csv --cross a:b:hp --json")
    assert (got.code, got.json["crosses"]) == (0, [["a:b", "hp"]])


def test_init_for_bare_texts() -> None:
    got = heedful("init drafts --texts --k 1 --json")
    assert (got.code, got.json["items"], got.json["next"]) == (0, 0, "heedful decide drafts --candidates TEXTS.json")
    Path("texts.json").write_text('[{"id": "a", "text": "Dear Sir"}, {"id": "b", "text": "hi you"}]')
    assert set(decided("decide drafts --candidates texts.json --id d1")["shown"]) <= {"a", "b"}
    assert heedful("feedback drafts d1 --edit {} --json", "Dear you").json["learned"] is True


CROSS = "--context requests.csv --cross"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("init cars", "FILE: expected a table of items, or --texts, got neither"),
        ("init cars cars.csv --texts", "FILE: expected none with --texts, got one"),
        ("init cars --texts --kind a=number", "--kind: expected a FILE that it is about, got --texts"),
        ("init cars --texts --identifier a", "--identifier: expected a FILE that it is about, got --texts"),
        ("init cars none.csv", "none.csv: no such file"),
        ("init cars cars.csv --identifier hp2", "identifier: expected a column"),
        ("init cars cars.csv --kind make", "--kind: expected COLUMN=KIND, got 'make'"),
        ("init cars cars.csv --kind make=", "--kind: expected COLUMN=KIND, got 'make='"),
        ("init cars cars.csv --kind make=text --kind make=text", "--kind: expected each once, got 'make' twice"),
        ("init cars cars.csv --cross day:make", "--cross: expected --context too, whose columns are crossed, got none"),
        (
            f"init cars cars.csv {CROSS} day",
            "--cross: expected CONTEXT:ITEM, the names of two columns, or all, got 'day'",
        ),
        (f"init cars cars.csv {CROSS} week:hp", "pairs: expected a column of the context (day, hurry), got 'week'"),
        ("init cars cars.csv --context none.csv", "none.csv: no such file"),
        ("init cars cars.csv --people -1", "--people: expected a number from 0 to 1e+09, got -1"),
        ("init cars cars.csv --people nan", "--people: expected a number from 0 to 1e+09, got nan"),
        ("init cars cars.csv --k 0", "--k: expected a whole number, 1 or more, got '0'"),
        (
            "init cars cars.csv --cost-weight abc",
            "--cost-weight: expected a number, got 'abc'. Try: heedful init --help",
        ),
        ("experiment cars --share 7", "--share: expected a number from 0 to 1, got '7'"),
        ("rollback cars soon", "VERSION: expected a whole number, got 'soon'"),
        ("serve --port 99999", "--port: expected a whole number from 1 to 65535, got '99999'"),
        ("init cars cars.csv --control 2", "control: expected a number from 0 to 1, got 2"),
        ("init cars cars.csv --action buy=much", "--action: expected NAME=WEIGHT, got 'buy=much'"),
        ("init cars cars.csv --learner nobody", "learner: expected "),
        ("init nowhere/cars cars.csv", "nowhere: expected a folder that is there to put the loop in"),
    ],
)
def test_init_refuses(line: str, told: str) -> None:
    assert refusal(line).startswith(told)
    assert not Path("cars.heedful").exists()


def test_init_leaves_a_loop_that_is_there_alone(cars: str) -> None:
    before = Path("cars.heedful/log.db").read_bytes()
    told = "cars.heedful: expected a new folder for the loop, got one that is there already: "
    go_on = "heedful decide cars goes on with it; to begin again, remove it, with all that it learned"
    bad(heedful(INIT), told + go_on)
    Path("empty.heedful").mkdir()
    bad(heedful("init empty cars.csv"), f"{told.replace('cars', 'empty')[:-2]}, and no loop: expected another NAME")
    assert Path("cars.heedful/log.db").read_bytes() == before


# ---------------------------------------------------------------------------- decide


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("cars.csv", "likes it: heedful feedback one d1 --thumb up"),
        ("cars.csv --learner dueling-bandit", "would rather have another: heedful feedback one d1 --better ITEM"),
        ("--texts", "corrects it: heedful feedback one d1 --edit 'THE CORRECTED TEXT'"),
    ],
)
def test_where_one_is_shown_what_is_to_be_told_can_teach(folder: Path, made: str, told: str) -> None:
    assert heedful(f"init one {made} --k 1").code == 0
    (folder / "texts.json").write_text('[{"id": "a", "text": "Dear Sir"}, {"id": "b", "text": "hi you"}]')
    among = "--candidates texts.json" if made == "--texts" else ""
    got = heedful(f"decide one --id d1 {among}")
    assert got.out.splitlines()[-1] == f"Next, where somebody {told}"
    words = shlex.split(told.partition(": heedful ")[2].replace("ITEM", "golf"))
    answer = heedful(" ".join(["{}"] * len(words)) + " --json", *words)
    assert (answer.code, answer.json["status"]) == (0, "applied")
    assert answer.json["learned"] or "dueling" in made  # that learns only from its own proposal


def test_decide_as_json(cars: str) -> None:
    told = decided("decide cars --id d1 --show 3 --deferred")
    assert list(told) == ["id", "shown", "probability", "version", "arm", "seq", "sure"]
    assert (told["id"], len(told["shown"]), told["version"], told["arm"]) == ("d1", 3, 0, "learned")
    assert decided("decide cars --id d1 --show 3 --deferred") == told  # the same again
    again = heedful("decide cars --id d1 --show 3 --deferred")
    assert again.err.startswith("heedful: d1 was decided before, and comes back as it was then")
    with Loop.open("cars.heedful") as loop:
        known = loop.projection.find_decision("d1")
        assert known is not None
        assert known.record.deferred
        assert len(known.names) == 6


def test_decide_by_ones_own_scores(cars: str) -> None:
    heedful("init mine cars.csv --learner perceptron --control 0")
    prior = '{"golf": 1, "mini": 3, "mustang": 2}'
    assert decided("decide mine golf mini mustang --prior {}", prior)["shown"] == ["mini", "mustang", "golf"]
    assert decided("decide mine golf mini mustang --prior [1,2,3]")["shown"] == ["mustang", "mini", "golf"]
    assert decided("decide mine golf mini mustang")["shown"] == ["golf", "mini", "mustang"]


def test_decide_among_candidates_that_come_along(cars: str) -> None:
    Path("new.json").write_text('[{"name": "x", "hp": 1}, {"name": "y", "hp": 2, "make": "vw"}]')
    assert set(decided("decide cars --id d1 --candidates new.json")["shown"]) == {"x", "y"}
    got = heedful("decide cars --candidates new.json")
    assert "vw" in got.out


def test_a_long_list_is_cut_in_the_table_and_whole_in_json() -> None:
    Path("many.csv").write_text("id,x\n" + "".join(f"n{j},{j % 7}\n" for j in range(60)))
    heedful("init many many.csv")
    got = heedful("decide many")
    first = [line.split()[0] for line in got.out.splitlines() if line.strip()]
    assert "50" in first
    assert "51" not in first
    assert "and 10 more: --show N for fewer, --json for all" in got.out
    assert len(decided("decide many")["shown"]) == 60


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "decide cars bugatti",
            "candidates: expected items on offer, such as 'beetle', 'mini', 'golf', got 'bugatti'; put it on offer "
            "first: heedful import cars --features FILE",
        ),
        ("decide cars --context {{", "--context: expected JSON, got {{: expected property name"),
        ("decide cars --prior nan", "--prior: expected JSON, got nan: expected value at character 1"),
        ("decide cars --prior [NaN]", "--prior: expected JSON, got [NaN]: NaN is not JSON"),
        ("decide cars --show 0", "--show: expected a whole number, 1 or more, got '0'"),
        ("decide cars --candidates none.json", "--candidates: none.json: no such file"),
        ("decide cars --candidates cars.csv", "--candidates: expected JSON, got name,make"),
        ("decide cars --candidates empty.json", "--candidates: expected a list of objects, got []"),
        ("decide cars --candidates names.json", "--candidates: expected a list of objects, got ['mini']"),
        ("decide cars mini --candidates names.json", "--candidates: expected no ITEM with it, got one"),
        ("decide cars --candidates odd.json", "candidates[0]: hp: expected"),
        ("decide cars --candidates latin.json", "--candidates: latin.json: expected UTF-8, got other bytes"),
    ],
)
def test_decide_refuses(cars: str, line: str, told: str) -> None:
    Path("empty.json").write_text("[]")
    Path("names.json").write_text('["mini"]')
    Path("odd.json").write_text('[{"name": "x", "hp": "strong"}]')
    Path("latin.json").write_bytes(b'[{"name": "\xe4"}]')
    assert refusal(line).startswith(told)


# ---------------------------------------------------------------------------- feedback


@pytest.mark.parametrize(
    ("options", "form"),
    [
        (["--clicks", "mini"], {"form": "clicks", "chosen": ["mini"]}),
        (["--clicks", "pinto, old", "--clicks", "mini"], {"form": "clicks", "chosen": ["pinto, old", "mini"]}),
        (["--better", "golf", "--better", "a=b"], {"form": "better", "chosen": ["golf", "a=b"]}),
        (["--thumb", "down"], {"form": "thumb", "values": [-1.0]}),
        (["--thumb", "up", "--item", "mini"], {"form": "thumb", "chosen": ["mini"], "values": [1.0]}),
        (["--action", "buy", "--item", "golf"], {"form": "action", "chosen": ["golf"], "values": [1.0], "text": "buy"}),
        (
            ["--rating", "a=b=4", "--rating", "mini=2.5"],
            {"form": "rating", "chosen": ["a=b", "mini"], "values": [4.0, 2.5]},
        ),
        (["--grade", "golf=2"], {"form": "grade", "chosen": ["golf"], "values": [2.0]}),
        (["--choice", "second"], {"form": "choice", "values": [1.0], "text": "second"}),
        (["--none"], {"form": "none"}),
        (["--edit", '{"hp": 61}'], {"form": "edit", "given": {"hp": 61}}),
        (
            ["--edit", '{"hp": 61}', "--nearest", "--item", "mini"],
            {"form": "edit", "given": {"hp": 61}, "chosen": ["mini"]},
        ),
    ],
)
def test_every_form_of_feedback(cars: str, options: list[str], form: dict[str, Any]) -> None:
    decided()
    words = " ".join("{}" for _ in options)
    got = done(f"feedback cars d1 {words} --id e1 --json", *options)
    assert (got.json["status"], got.json["event"], got.json["late"]) == ("applied", "e1", False)
    assert set(got.json) == {"status", "event", "seq", "version", "late", "learned", "reason"}
    with Loop.open("cars.heedful") as loop:
        [(_, _, record)], known = loop.projection.lessons(), loop.projection.find_decision("d1")
        assert known is not None
        kept = {name: getattr(record, name) for name in form}
        if "chosen" in kept:
            kept["chosen"] = [known.names[j] for j in record.chosen]
        assert kept == form


def test_the_same_event_again_is_a_duplicate_and_another_is_rejected(cars: str) -> None:
    decided()
    first = done("feedback cars d1 --clicks mini --id e1")
    assert first.out.startswith("applied e1: event 9, model version 9, ")
    again = heedful("feedback cars d1 --clicks mini --id e1")
    assert (again.code, again.out) == (0, "duplicate e1: it came before, as event 9; nothing was changed\n")
    other = heedful("feedback cars d1 --clicks golf --id e1")
    told = "rejected e1: feedback e1 is in the log already, with other content\n"
    assert (other.code, other.out, other.err) == (3, told, "")
    as_json = heedful("feedback cars d1 --clicks golf --id e1 --json")
    assert (as_json.code, as_json.json["status"]) == (3, "rejected")


def test_feedback_that_fits_no_longer_is_rejected_with_3(cars: str) -> None:
    decided("decide cars mini golf --id d1")
    for line, reason in (
        ("d2 --none", "decision d2 is not in the log"),
        ("d1 --clicks mini --chain d9", "chain: decision d9 is not in the log"),
    ):
        got = heedful(f"feedback cars {line} --id e --json")
        assert (got.code, got.err) == (3, "")
        assert (got.json["status"], got.json["reason"], got.json["seq"]) == ("rejected", reason, None)


def test_a_comma_belongs_to_the_name(cars: str) -> None:
    decided()
    got = heedful("feedback cars d1 --clicks mini,golf --id e1")
    shown = "('mini', 'beetle', 'golf', 'mustang', 'pinto, old' and 1 more)"
    told = f"rejected e1: clicks: expected items that were shown {shown}, got 'mini,golf'; answer the decision that "
    assert (got.code, got.out) == (3, f"{told}showed it\n")
    assert got.err == "heedful: 'mini,golf' was taken for one name: name each item with an option of its own\n"


def test_a_deferred_decision_is_activated_with_its_first_feedback(cars: str) -> None:
    decided("decide cars --id d1 --deferred")
    early = heedful("feedback cars d1 --clicks mini")
    assert early.code == 3
    assert "was deferred and never activated" in early.out
    # What is no feedback activates nothing.
    assert heedful("feedback cars d1 --activate --action buy").code == 2
    assert heedful("feedback cars d1 --none").code == 3
    got = heedful("feedback cars d1 --activate --clicks mini --id e1 --json")
    assert (got.code, got.json["status"], got.json["activated"]) == (0, "applied", "applied")
    alone = heedful("feedback cars d1 --activate --json")
    assert (alone.code, alone.json["status"], "activated" in alone.json) == (0, "duplicate", False)
    nobody = heedful("feedback cars d7 --activate --none --json")
    assert (nobody.code, nobody.json["reason"]) == (3, "decision d7 is not in the log")
    assert "activated" not in nobody.json  # it stopped there


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            "",
            "feedback: expected --clicks, --better, --edit, --thumb, --reward, --action, --did, --rating, --grade, "
            "--choice, --none or --form, got none of them",
        ),
        ("--thumb sideways", "thumb: expected up or down, got 'sideways'"),
        ("--choice third", "choice: expected first, second, equal, both_bad, cannot_judge, got 'third'"),
        ("--action sing --item mini", "action: expected view, cart, buy, hide, got 'sing'"),
        ("--rating mini", "--rating: expected ITEM=NUMBER, got 'mini'"),
        ("--rating mini=good", "--rating: expected ITEM=NUMBER, got 'mini=good'"),
        ("--rating mini=1 --rating mini=2", "--rating: expected each once, got 'mini' twice"),
        ("--grade =1", "--grade: expected ITEM=NUMBER, got '=1'"),
    ],
)
def test_feedback_refuses(cars: str, options: str, told: str) -> None:
    decided()
    assert refusal(f"feedback cars d1 {options}").startswith(told)
    with Loop.open("cars.heedful") as loop:
        assert "feedback" not in loop.projection.log.counts()


def test_every_field_of_every_form_has_an_option() -> None:
    told = heedful("feedback --help", width=250).out
    for field in fields_of(*all_forms().values()):
        assert re.search(rf"--{'did' if field.name == 'actions' else field.name} .*{re.escape(field.hint[1:])}", told)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"clicks": ["a", "b"]}, ["--clicks", "a", "--clicks", "b"]),
        ({"better": "a"}, ["--better", "a"]),
        ({"choice": "first"}, ["--choice", "first"]),
        ({"grade": {"a": 4.0}}, ["--grade", "a=4"]),
        ({"edit": "TEXT", "item": "a"}, ["--edit", "TEXT", "--item", "a"]),
        ({"edit": {"hp": 1}}, ["--form", '{"edit": {"hp": 1}}']),
        ({"best": "a", "worst": "c"}, ["--form", '{"best": "a", "worst": "c"}']),
    ],
)
def test_fields_are_told_as_options(fields: dict[str, Any], words: list[str]) -> None:
    assert options_of(fields) == words


# ---------------------------------------------------------------------------- undo, forget


def test_back_to_an_earlier_version_and_forth_again(cars: str) -> None:
    decided()
    assert heedful("feedback cars d1 --id e1 --better mustang").code == 0
    with Loop.open("cars.heedful") as loop:
        version, before = loop.version, loop.weights
    assert heedful("feedback cars d1 --id e2 --better beetle").code == 0
    got = done(f"rollback cars {version} --reason better")
    first, second = got.out.splitlines()
    assert first == f"the model is that of version {version}: 1 of the feedback left out; model version {version + 2}"
    with Loop.open("cars.heedful") as loop:
        assert loop.weights == before
    again = heedful(second.partition(": heedful ")[2] + " --json").json
    assert (again["answer"]["status"], again["left_out"], again["restored"]) == ("applied", 0, 1)
    got = heedful("rollback cars 999")
    bad(got, f"to: expected a version from 1 to {version + 3}, got 999")


def test_forget_asks_first(cars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decided("decide cars --id d1 --person ann")
    bad(heedful("forget cars ann"), "--yes: expected, as there is nobody to ask")
    asked = []

    def confirm(text: str, **how: Any) -> None:
        asked.append((text, how))
        if len(asked) == 1:
            raise typer.Abort

    monkeypatch.setattr("heedful.cli.retract.typer.confirm", confirm)
    terminal = types.SimpleNamespace(stdin=types.SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("heedful.cli.retract.sys", terminal)
    bad(heedful("forget cars ann"), "stopped", 130)
    assert asked[0] == ("Erase all that was decided for and learned from 'ann'?", {"abort": True, "err": True})
    with Loop.open("cars.heedful") as loop:
        assert loop.projection.find_decision("d1") is not None
    assert heedful("forget cars ann").code == 0
    with Loop.open("cars.heedful") as loop:
        assert loop.projection.find_decision("d1") is None


def test_forget_says_what_is_gone_and_what_is_out_of_reach(cars: str, folder: Path) -> None:
    back_ups = "Back-ups of the folder are out of reach, and may still hold them."
    decided("decide cars --id d0 --person bob")
    gone, also = heedful("forget cars bob --yes", width=300).out.splitlines()  # before anything was exported
    assert (gone.partition(" erased")[0], also) == ("bob: 1 event", back_ups)
    decided("decide cars --id d1 --person ann")
    heedful("feedback cars d1 --clicks mini --id e1")
    heedful("export cars out.jsonl")
    assert heedful("export cars -").code == 0
    got = done("forget cars ann --yes", width=300)
    assert "ann: 2 events erased, from the log, the model and the snapshots" in got.out
    assert f"Out of reach, and may still hold them: {folder}/out.jsonl" in got.out
    assert "what was printed by an export to stdout" in got.out
    assert got.out.splitlines()[-1] == back_ups
    assert heedful("feedback cars d1 --clicks mini --id e1 --json").json["reason"] == "decision d1 was forgotten"
    again = heedful("forget cars ann --yes")
    assert (again.code, again.out) == (0, "ann: nothing in the log was about this person\n")


def test_export_of_a_person(cars: str, folder: Path) -> None:
    for i, who in enumerate(("ann", "ANN", "bob")):
        decided(f"decide cars --id d{i} --person {who}")
    heedful("feedback cars d0 --clicks mini --id e0")
    also = "heedful: 'ANN' is spelt like 'ann', and may be the same person"
    got = heedful("export cars ann.jsonl --person ann", width=300)
    assert (got.code, got.out) == (0, "ann.jsonl: 2 lines: decision 1, feedback 1\n")
    assert also in got.err
    written = [json.loads(line) for line in (folder / "ann.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["id"]) for line in written] == [("decision", "d0"), ("feedback", "e0")]
    assert heedful("export cars ann.jsonl --person ann --json").json["alike"] == ["ANN"]
    none = heedful("export cars nobody.jsonl --person Ann", width=300)
    assert (none.code, (folder / "nobody.jsonl").exists()) == (1, False)
    assert "Ann: nothing in the log is about this person; spelt alike: 'ANN', 'ann'" in none.err
    bad(heedful("export cars x.jsonl --person ann --as ubi"), "--person: expected none with --as, got 'ann'")
    gone = heedful("forget cars ann --yes", width=300)
    assert f"Out of reach, and may still hold them: {folder}/ann.jsonl" in gone.out
    assert also in gone.err


# ---------------------------------------------------------------------------- why, evaluate


@pytest.fixture
def taught() -> Any:
    """A loop that was taught that horsepower is good."""
    heedful(f"{INIT} --control 0 --learner perceptron")
    decided("decide cars mini golf mustang --id d1")
    heedful("feedback cars d1 --better mustang --id e1")
    return decided("decide cars mini golf mustang --id d2")


def test_evaluate_a_table(folder: Path) -> None:
    lines = ["action,probability,reward,target"]
    lines += [f"{'ab'[i % 2]},0.5,{int(i % 6 == 1)},{float(i % 2)}" for i in range(120)]
    (folder / "clicks.csv").write_text("\n".join(lines))
    got = done("evaluate clicks.csv --target target --always a --json")
    assert {each["learner"]: each["values"][0]["value"] for each in got.json["learners"]} == {
        "as logged": pytest.approx(1 / 6), "target": pytest.approx(1 / 3), "always a": 0.0,
    }  # fmt: skip
    said = " ".join(heedful("evaluate clicks.csv", width=160).out.split())
    assert "always b" in said
    assert "The first row is the log as it is" in said
    got = heedful("evaluate nowhere.csv")
    assert (got.code, got.out, got.err) == (2, "", "heedful: nowhere.csv: there is no such file\n")
    assert "always: expected an action of the table, got 'c'" in refusal("evaluate clicks.csv --always c")


def test_what_is_known_of_a_table_beforehand_is_said_by_options(folder: Path) -> None:
    lines = ["action,probability,reward", *(f"{'ab'[i % 2]},0.5,{20.5 * (i % 6 == 1)}" for i in range(120))]
    (folder / "sales.csv").write_text("\n".join(lines))
    said = " ".join(heedful("evaluate sales.csv", width=200).out.split())
    assert "There is no interval, as nobody said how low and how high a reward may be" in said
    said = " ".join(heedful("evaluate sales.csv --least-reward 0", width=200).out.split())
    assert " or more" in said
    assert "Intervals hold if each reward is 0 or more; they have no upper end" in said
    known = "--least-reward 0 --most-reward 5000 --least-probability 0.5"
    got = heedful(f"evaluate sales.csv {known} --json").json
    assert "if each reward lies between 0 and 5,000" in got["measures"][0]["about"]
    assert "with a probability below 0.5" in got["measures"][0]["about"]
    assert all(each["values"][0]["high"] > 20.5 for each in got["learners"])
    bad(
        heedful("evaluate sales.csv --most-reward 20"),
        "sales.csv:3: reward: expected at most 20, the greatest there is, got '20.5'",
    )
    bad(heedful("evaluate cars --least-reward 0"), "--least-reward: expected a table, got the loop cars")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("evaluate cars --target column", "--target: expected a table, got the loop cars"),
        ("evaluate cars --learner nobody", "learner: expected "),
        ("evaluate cars --learner perceptron:rate=1", "learner: perceptron: "),
        ("evaluate cars -l second-order -l second-order", "--learner: expected each once, got second-order 2 times"),
    ],
)
def test_evaluate_refuses(taught: Any, line: str, told: str) -> None:
    assert refusal(line).startswith(told)


def test_that_the_disk_is_full_is_no_fault_of_the_input(cars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "the disk is full; nothing was changed: make room and try again", "cars.heedful/log.db")

    def busy(*_: Any, **__: Any) -> None:
        raise TimeoutError("cars.heedful/log.db: another process is writing")

    monkeypatch.setattr("heedful.loop.projection.Projection.submit", full)
    told = "cars.heedful/log.db: the disk is full; nothing was changed: make room and try again"
    bad(heedful("decide cars"), told, 1)
    monkeypatch.setattr("heedful.loop.projection.Projection.submit", busy)
    bad(heedful("decide cars"), "cars.heedful/log.db: another process is writing", 1)


# ---------------------------------------------------------------------------- help, and the page about all this

NEW = ["init", "decide", "feedback", "undo", "forget", "why", "report", "evaluate"]
NEW += ["import", "export", "validate", "doctor"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


@pytest.mark.slow
def test_the_examples_of_the_page_are_a_session() -> None:
    text = PAGE.read_text()
    tables = re.findall(r"```csv\n(.*?)```", text, re.S)
    Path("cars.csv").write_text(tables[0])
    Path("clicks.csv").write_text(next(each for each in tables if each.startswith("action,")))
    lines = [line for line in text.splitlines() if line.startswith("heedful ") and line.split()[1] in NEW]
    assert {line.split()[1] for line in lines} == set(NEW)
    for line in lines:
        words = shlex.split(line)[1:]
        got = done(" ".join("{}" for _ in words), *words)
        assert got.out


def test_init_has_the_options_that_interactions_declare(tmp_path: Path) -> None:
    """Each as it is declared; of two that make a loop, one is refused."""
    from heedful.loop.interactions.registry import interactions

    told = heedful("init --help", width=250).out
    makers = [each for each in interactions().values() if each.options]
    assert len(makers) > 1
    for each in makers:
        for option in each.options:
            assert re.search(rf"{option.flag} .*{re.escape(option.help)}", told), option
        assert f"{each.default_learner} with {each.options[0].flag}" in told
    for one, other in itertools.combinations(makers, 2):
        both = [of.options[0].flag + ("" if of.options[0].takes is bool else " 3") for of in (one, other)]
        assert f"{other.options[0].flag}: expected none with {one.options[0].flag}, got it" in refusal(
            f"init {tmp_path / 'x'} items.csv {' '.join(both)}"
        )
