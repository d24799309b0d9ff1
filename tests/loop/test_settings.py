"""What a loop is founded on: refused by name where it makes no sense, frozen in the log, the same again from there."""

import json
import math
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from heedful import TEXTS, PreferencePerceptron, Settings, infer
from heedful.loop.interactions.protocol import feature_names
from heedful.loop.interactions.registry import interactions
from heedful.loop.settings import ACTIONS, DEEPEST, SCHEMA, Manifest, built_learner, plain_json
from heedful.spaces.ranking import Ranking, WithBaseScore
from loops import specs

ITEMS = [{"id": f"i{j}", "f0": float(j), "colour": "redblue"[3 * (j % 2) :][:4], "note": f"n {j}"} for j in range(8)]
ENCODING = infer(ITEMS, identifier="id", kinds={"f0": "number", "colour": "category", "note": "text"}, buckets=4)
CONTEXT = infer([{"hour": float(h)} for h in range(4)], identifier="")
NO_NUMBERS = [
    "1",
    b"1",
    None,
    True,
    np.bool_(True),
    [1],
    {},
    Decimal(1),
    timedelta(1),
    1j,
    math.nan,
    math.inf,
    object(),
]


def manifest(**given: Any) -> Manifest:
    fields: dict[str, Any] = {"learner": "perceptron", "encoding": ENCODING, "settings": Settings()}
    return Manifest(**(fields | given))


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("k", [0, -1, 1025, 1.0, *NO_NUMBERS]),
        ("control", [-0.01, 1.01, *NO_NUMBERS]),
        ("exploration", [-0.01, 0.51, *[v for v in NO_NUMBERS if v is not None]]),
        ("shrink", [-1, 1.1e9, *NO_NUMBERS]),
        ("late_after", [-1, 1.1e12, *NO_NUMBERS]),
        ("snapshot_every", [0, 1.5, *NO_NUMBERS]),
        ("seed", [-1, 2**63, 0.0, *NO_NUMBERS]),
        ("store_text", [0, 1, "true", None, []]),
        ("products", [0, 1, "true", None]),
        (
            "actions",
            [None, "buy", [("buy", 1.0)], 1, {"buy": 0}, {"buy": 0.0}, {"": 1.0}, {"a\n": 1.0}],
        ),
    ],
)
def test_settings_are_refused_by_name(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=f"^{field}.*: expected .*, got "):
            Settings(**{field: value})
    if field == "actions":
        for value in NO_NUMBERS:
            with pytest.raises(ValueError, match=r"^actions\[buy\]: expected "):
                Settings(actions={"view": 0.1, "buy": value})
    with pytest.raises(TypeError):
        Settings(**{field + "s_": 1})


@pytest.mark.parametrize(
    "given",
    [
        {"k": 1},
        {"k": 1024},
        {"control": 0},
        {"control": 1.0},
        {"exploration": 0.5},
        {"shrink": 1e9},
        {"late_after": 0},
        {"seed": 2**63 - 1},
        {"actions": {"buy": -3, "5": 1e100}},
        {"actions": {}},
    ],
)
def test_the_bounds_themselves_are_settings(given: dict[str, Any]) -> None:
    chosen = Settings(**given)
    again = Manifest.from_json(manifest(settings=chosen).to_json("v")).settings
    assert again == chosen


def test_an_action_is_weighed_by_the_loudest() -> None:
    """From -1 to 1, whatever scale they were given on."""
    chosen = Settings(actions={"glance": 0.5, "buy": 4.0, "return": -8.0})
    assert [chosen.weight(action) for action in chosen.actions] == [0.0625, 0.5, -1.0]
    assert [Settings().weight(action) for action in ACTIONS] == [0.1, 0.5, 1.0, -1.0]
    with pytest.raises(ValueError, match="action: expected glance, buy, return, got 'steal'"):
        chosen.weight("steal")
    assert Settings().actions is not Settings().actions


# ---------------------------------------------------------------------------- the manifest


@pytest.mark.parametrize("context", [None, CONTEXT])
@pytest.mark.parametrize("crosses", [(), (("hour", "f0"), ("hour", "note"))])
def test_a_founding_comes_back_from_the_log(context: Any, crosses: Any) -> None:
    if crosses and context is None:
        return
    made = manifest(context=context, crosses=crosses, settings=Settings(k=3, seed=7, actions={"buy": 2.0}))
    again = Manifest.from_json(made.to_json("abc"))
    assert again.learner_version == "abc"
    assert again.schema == SCHEMA
    assert (again.learner, again.encoding, again.context, again.crosses, again.settings) == (
        made.learner,
        made.encoding,
        made.context,
        made.crosses,
        made.settings,
    )
    assert again.candidate_names == made.candidate_names
    assert again.to_json("abc") == made.to_json("abc")


@pytest.mark.parametrize("written", ["", "{}", "[]", "null", "not json", '{"learner": 5}', "[" * 100_000])
def test_what_is_no_founding_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="loop: expected"):
        Manifest.from_json(written)


def test_a_newer_schema_and_newer_fields_are_refused() -> None:
    written = manifest().to_json("v")
    with pytest.raises(ValueError, match=f"loop: expected schema {SCHEMA}, got 99"):
        Manifest.from_json(written.replace(f'"schema":{SCHEMA}', '"schema":99'))
    with pytest.raises(ValueError, match="newer heedful"):
        Manifest.from_json(written.replace('"seed"', '"later":1,"seed"'))


def test_the_last_feature_is_the_callers_score() -> None:
    names = partial(feature_names, interactions()["coactive"])
    assert names(manifest()) == [*ENCODING.names, "the caller's score"]
    crossed = manifest(context=CONTEXT, crosses=(("hour", "f0"),))
    assert names(crossed) == [*ENCODING.names, "hour × f0", "the caller's score"]
    assert names(manifest(context=CONTEXT)) == names(manifest())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learner": None}, "learner: expected its name"),
        ({"learner": 5}, "learner: expected its name"),
        ({"encoding": None}, "encoding: expected an Encoding"),
        ({"encoding": {"columns": []}}, "encoding: expected an Encoding"),
        ({"context": 5}, "context: expected an Encoding"),
        ({"settings": {"k": 3}}, "settings: expected Settings"),
        ({"settings": 0}, "settings: expected Settings"),
        ({"crosses": [("hour", "f0")]}, "crosses: expected an encoding of the context"),
        ({"crosses": "all"}, "crosses: expected an encoding of the context"),
        ({"context": CONTEXT, "crosses": None}, "crosses: expected"),
        ({"context": CONTEXT, "crosses": 5}, "crosses: expected"),
        ({"context": CONTEXT, "crosses": [5]}, "crosses: expected"),
        ({"context": CONTEXT, "crosses": [("hour",)]}, "crosses: expected"),
        ({"context": CONTEXT, "crosses": "some"}, "crosses: expected"),
        ({"context": CONTEXT, "crosses": [("minute", "f0")]}, "column of the context"),
        ({"context": CONTEXT, "crosses": [("hour", "size")]}, "column of the item"),
        ({"context": CONTEXT, "crosses": [("hour", "f0")] * 2}, "each once"),
        ({"context": CONTEXT, "crosses": [({}, [])]}, "column of the context"),
    ],
)
def test_parts_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    parts = {"learner": "perceptron", "encoding": ENCODING, "context": None, "crosses": (), "settings": Settings()}
    Manifest.of(**parts)
    with pytest.raises(ValueError, match=message):
        Manifest.of(**(parts | given))


def test_every_pair_of_features_may_be_crossed() -> None:
    made = Manifest.of("perceptron", ENCODING, CONTEXT, "all", Settings())
    assert len(made.candidate_names) == 2 * ENCODING.size
    assert Manifest.from_json(made.to_json("v")).candidate_names == made.candidate_names


def test_an_encoding_keeps_no_words_where_texts_are_not_stored() -> None:
    """What tells a reader what a bucket is about is text too, and so are examples; the features are the same."""
    words = [{"id": f"x{j}", "note": f"sesame word{j} of {j}", "tone": "Open, now!"} for j in range(9)]
    encoding = infer(words, identifier="id", kinds={"note": "text", "tone": "prose"})
    kept, less = (Manifest.of("perceptron", encoding, None, (), Settings(store_text=s)) for s in (True, False))
    assert "sesame" in kept.to_json("v")
    assert "sesame" not in less.to_json("v")
    assert "Open" not in less.to_json("v")
    for row in words:
        assert kept.encoding.encode(row).tobytes() == less.encoding.encode(row).tobytes()


def test_what_is_no_text_is_kept_where_texts_are_not_stored() -> None:
    made = [
        {"id": f"i{j}", "year": 1990 + j, "sold": 10**j, "make": "ab"[j % 2], "for": "x|y", "about": f"It is {j}"}
        for j in range(8)
    ]
    kept = Manifest.of(
        "perceptron", infer(made, identifier="id", kinds={"for": "tags"}), None, (), Settings(store_text=False)
    )
    assert {column.name: column.kind for column in kept.encoding.columns}["sold"] == "logarithm"
    assert json.loads(kept.item_payload(made[3])) == {"id": "i3", "year": 1993, "sold": 1000, "make": "b", "for": "x|y"}


def test_numbers_of_numpy_are_settings() -> None:
    """They come back from the log as plain numbers."""
    chosen = Settings(k=np.int64(3), control=np.float64(0.5), seed=np.int64(2), store_text=np.bool_(False))  # type: ignore[arg-type]
    chosen = msgspec.structs.replace(chosen, actions={"buy": np.float64(2.0)}, exploration=np.float64(0.25))
    again = Manifest.from_json(manifest(settings=chosen).to_json("v")).settings
    assert (
        again == chosen == Settings(k=3, control=0.5, seed=2, store_text=False, actions={"buy": 2.0}, exploration=0.25)
    )


# ---------------------------------------------------------------------------- the learner of a manifest


@pytest.mark.parametrize("spec", specs())
def test_every_learner_of_loops_can_be_founded_on(spec: str) -> None:
    learner = built_learner(manifest(learner=spec, settings=Settings(k=4)))
    assert learner.n_features == ENCODING.size + 1
    assert learner.space == WithBaseScore(Ranking(4))


def test_exploration_is_the_share_of_swaps() -> None:
    assert built_learner(manifest(learner="posterior", settings=Settings(exploration=0.5))).swap == 0.5
    assert built_learner(manifest(learner="posterior", settings=Settings(exploration=0))).swap == 0.0
    assert built_learner(manifest(learner="posterior:swap=0.1")).swap == 0.1
    assert built_learner(manifest(settings=Settings(exploration=0.0))) == built_learner(manifest())
    with pytest.raises(ValueError, match="exploration: expected none or 0 for perceptron"):
        built_learner(manifest(settings=Settings(exploration=0.1)))
    with pytest.raises(ValueError, match="swap"):
        built_learner(manifest(learner="posterior", settings=Settings(exploration=0.0001)))


def test_a_learner_is_the_one_that_the_log_names() -> None:
    assert built_learner(manifest(learner="perceptron:batch=10")).batch == 10
    assert built_learner(manifest(learner="perceptron"), ["perceptron"]) == PreferencePerceptron(
        ENCODING.size + 1, WithBaseScore(Ranking(10))
    )
    with pytest.raises(
        ValueError, match="learner: expected perceptron, which this loop was made with, got second-order"
    ):
        built_learner(manifest(), ["second-order"])
    with pytest.raises(LookupError, match="name it when opening the loop"):
        built_learner(manifest(learner="mine.py:Mine"))
    with pytest.raises(ValueError, match="radius"):
        built_learner(manifest(learner="convex:radius=-1"))


# ---------------------------------------------------------------------------- what is kept of texts


def test_texts_are_kept_or_not() -> None:
    row = {"id": "a", "f0": 1, "colour": "red", "note": "a secret", "other": "too"}
    whole, less = manifest(), manifest(settings=Settings(store_text=False))
    assert whole.item_payload(row) == '{"id":"a","f0":1,"colour":"red","note":"a secret","other":"too"}'
    assert less.item_payload(row) == '{"id":"a","f0":1,"colour":"red"}'
    assert whole.attributes_to_log(row, ENCODING) == row
    assert less.attributes_to_log(row, ENCODING) is None
    assert whole.attributes_to_log(None, ENCODING) is None
    assert manifest(encoding=TEXTS, settings=Settings(store_text=False)).item_payload({"id": "a", "text": "x"}) == (
        '{"id":"a"}'
    )


def test_numbers_of_numpy_are_kept_as_numbers() -> None:
    row = {"id": "a", "f0": np.float32(1.5), "v": np.arange(2), "n": np.int64(3), "missing": math.nan}
    assert manifest().attributes_to_log(row, ENCODING) == {"id": "a", "f0": 1.5, "v": [0, 1], "n": 3, "missing": None}
    for strange in (object(), 1j, len):
        with pytest.raises(ValueError, match="attributes: expected what JSON can say"):
            manifest().attributes_to_log({"id": "a", "x": strange}, ENCODING)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="attributes: expected what JSON can say"):
        manifest().attributes_to_log({"id": "a", "x": loop}, ENCODING)


def test_attributes_are_nested_as_deep_as_json_is_read_again() -> None:
    """Wide attributes and brackets in texts are not deep."""
    row: dict[str, Any] = {"t": "[{" * 40, "v": [[1]] * 40}
    assert msgspec.json.decode(plain_json(row)) == row
    deep: object = 1
    for _ in range(DEEPEST - 1):
        deep = [deep]
    assert plain_json({"a": deep})
    with pytest.raises(ValueError, match="nested at most 16 deep"):
        plain_json({"a": [deep]})
