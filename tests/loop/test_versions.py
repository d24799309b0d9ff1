"""The version of a fold: declared, guarded by golden folds, and what logs called it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldens import folds, make
from heedful import Settings
from heedful.learners.registry import find_learners, make_learner
from heedful.loop.interactions.registry import learner_version
from heedful.spaces.ranking import Ranking, WithBaseScore
from loops import bits, small_loop


def test_every_learner_declares_its_version_and_has_a_golden_fold() -> None:
    for cls in find_learners().values():
        assert type(cls.version) is int, f"{cls.__name__}: declare a version"  # type: ignore[attr-defined]
    files = {path.name for path in folds.FOLDER.iterdir()}
    assert files == {folds.path_of(spec).name for spec in folds.specs()}
    assert {spec.partition(":")[0] for spec in folds.specs()} == set(find_learners())


@pytest.mark.parametrize("spec", folds.specs())
def test_a_version_folds_what_it_always_did(spec: str) -> None:
    version, expected = folds.from_json(folds.path_of(spec).read_text())
    again = f"(in tests) python -m goldens.make folds, which writes {folds.path_of(spec).name} again"
    differ = folds.differences(spec, expected, folds.fold(spec))
    if folds.version(spec) == version:
        assert not differ, f"{spec} folds something else: raise the version it declares, then {again}"
    else:
        pytest.fail(f"{spec} is of version {folds.version(spec)}, its golden fold of {version}: {again}")


def test_a_golden_fold_notices_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one bit; of one part in 1e8 where rounding is allowed. It is not written again under the same version."""
    for spec, other in (("ranking-svm", 1e-15), ("gp", 1e-8)):
        name, state = spec, folds.fold(spec)
        assert folds.differences(name, state, state) == []
        moved = [(leaf, value * (1.0 + other) if value.dtype.kind == "f" else value) for leaf, value in state]
        assert folds.differences(name, state, moved)
    monkeypatch.setattr(folds, "FOLDER", tmp_path)
    monkeypatch.setattr(folds, "specs", lambda: ["posterior"])
    assert make.make_folds() == []
    written = folds.path_of("posterior").read_text()
    monkeypatch.setattr(
        "heedful.learners.coactive.posterior.Posterior.update", lambda self, state, x, y, feedback: state
    )
    [told] = make.make_folds()
    assert "posterior" in told
    assert "its version is 2.1 as before" in told
    assert folds.path_of("posterior").read_text() == written
    monkeypatch.setattr("heedful.learners.coactive.posterior.Posterior.version", 2)
    assert make.make_folds() == []
    assert folds.from_json(folds.path_of("posterior").read_text())[0] == "2.2"


def coactive(spec: str) -> Any:
    return make_learner(spec, n_features=3, space=WithBaseScore(Ranking(3)))


def test_the_version_is_that_of_model_and_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    assert learner_version(coactive("perceptron")) == learner_version(coactive("perceptron:batch=2")) == "2.1"
    monkeypatch.setattr("heedful.learners.coactive.perceptron.PreferencePerceptron.version", 7)
    monkeypatch.setattr("heedful.loop.interactions.coactive.model.Model.version", 3)
    assert learner_version(coactive("perceptron")) == "3.7"
    assert learner_version(coactive("second-order")) == "3.1"
    assert learner_version(folds.golden_learner("prank")) == "1.1"
    monkeypatch.setattr("heedful.loop.interactions.routing.model.RouteModel.version", 5)
    routes = Settings(cost_weight=0.1)  # the kind of feedback is a setting: the learner is one of rankings
    assert learner_version(coactive("perceptron"), routes) == "5.7"
    assert learner_version(coactive("perceptron"), Settings()) == "3.7"


OWN = """
from typing import NamedTuple
import numpy as np


class State(NamedTuple):
    w: np.ndarray


class Own(NamedTuple):
    \"\"\"Mine. Interaction: coactive.\"\"\"

    n_features: int
    space: object
    {declared}

    def init(self, rng):
        return State(np.zeros(self.n_features))

    def propose(self, state, x, rng):
        return self.space.argmax(state.w, x)

    def update(self, state, x, y, feedback):
        {comment}
        self.space.add_difference(state.w, x, feedback, y, {rate})
        return state

    def weights(self, state):
        return state.w


class Rule(NamedTuple):
    rate: float = {rate}

    def init(self, n):
        return State(np.zeros(n))

    def step(self, state, D):
        state.w[:] += self.rate * D
        return state
"""


def own(folder: Path, name: str, cls: str = "Own", **parts: str) -> Any:
    filled = {"declared": "", "comment": "pass", "rate": "1.0"} | parts
    (folder / f"{name}.py").write_text(OWN.format(**filled))
    return coactive(f"{folder / name}.py:{cls}")


@pytest.mark.parametrize("cls", ["Own", "Rule"])
def test_somebody_elses_learner_has_a_digest_of_its_source(cls: str, tmp_path: Path) -> None:
    """Wherever the file is; comments and docstrings do not count."""
    first = learner_version(own(tmp_path, "first", cls))
    model, *declared, digest = first.split(".")
    assert (model, declared, len(digest)) == ("2", ["1"] if cls == "Rule" else [], 12)
    assert first == learner_version(own(tmp_path, "again", cls))
    assert first == learner_version(own(tmp_path, "talks", cls, comment="pass  # as before"))
    assert first != learner_version(own(tmp_path, "other", cls, rate="0.5"))


def test_somebody_elses_learner_may_declare_one(tmp_path: Path) -> None:
    assert learner_version(own(tmp_path, "declares", declared="version = 4")) == "2.4"
    assert learner_version(own(tmp_path, "named", declared="version = '2024b'")) == "2.2024b"


def test_a_hyperparameter_called_version_declares_nothing(tmp_path: Path) -> None:
    made = own(tmp_path, "field", declared="version: int = 4")
    assert made.version == 4
    assert len(learner_version(made).split(".")[1]) == 12


def test_a_loop_of_an_unknown_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is the log folded by the code that is there, not its snapshot."""
    from heedful import Loop

    with small_loop(tmp_path / "loop", shrink=1.0) as loop:
        d = loop.decide(person="ann", id="d")
        loop.feedback(d.id, id="e", clicks=[d.shown[1]])
        before = bits(loop)
        assert loop.notes == []
    monkeypatch.setattr("heedful.learners.coactive.posterior.Posterior.version", 2)
    with Loop.open(tmp_path / "loop") as loop:
        assert [note.split(":")[0] for note in loop.notes if "code has changed" in note]
        assert any("made with another learner_version" in note for note in loop.notes)
        assert bits(loop) == before
