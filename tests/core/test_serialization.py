"""A state in a file: what was written is what is read, or a refusal that names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.core.conformance import identical
from heedful.core.serialization import load_state, save_state
from heedful.core.session import Session
from heedful.learners.coactive.perceptron import ConvexPerceptron, PreferencePerceptron
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.spaces.ranking import Ranking

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
LEARNER = PreferencePerceptron(2, Ranking(3), batch=2)


def taught(learner: Any, lessons: int = 3) -> Any:
    session = Session(learner)
    for _ in range(lessons):
        session.learn(session.propose(X)[::-1])
    return session.state


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_state(tmp_path / "state.safetensors", LEARNER, taught(LEARNER))
    return tmp_path / "state.safetensors"


def test_what_is_written_is_read(file: Path) -> None:
    state = load_state(file, LEARNER)
    assert identical(state, taught(LEARNER))
    assert type(state.t) is int
    save_state(file, LEARNER, taught(LEARNER, 4))  # over the old one
    assert load_state(str(file), LEARNER).t == 4
    assert os.listdir(file.parent) == [file.name]


def test_a_state_that_does_not_fit_is_not_written(file: Path) -> None:
    """Not even where its type is the learner's: whoever needs it could not read it."""
    state = taught(LEARNER)
    before = file.read_bytes()
    for wrong in (state._replace(w=state.w[:-1].copy()), state._replace(w=state.w.astype(np.float32))):
        with pytest.raises(ValueError, match="state: w: expected float64"):
            save_state(file, LEARNER, wrong)
    assert file.read_bytes() == before


def test_the_manifest_is_json_for_anybody(file: Path) -> None:
    """The header of safetensors: its length in 8 bytes, then JSON."""
    content = file.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    manifest = json.loads(header["__metadata__"]["heedful"])
    assert manifest["schema"] == 1
    assert manifest["learner"] == "heedful.PreferencePerceptron"
    assert manifest["fields"] == {"n_features": 2, "space.k": 3, "batch": 2}
    assert header["w"]["shape"] == [2]


def test_every_flipped_bit_is_seen(file: Path) -> None:
    content = file.read_bytes()
    for position in range(len(content)):
        for bit in (1, 128):
            damaged = bytearray(content)
            damaged[position] ^= bit
            file.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"state\.safetensors: expected"):
                load_state(file, LEARNER)


def test_every_cut_is_seen(file: Path) -> None:
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"state\.safetensors: expected"):
            load_state(file, LEARNER)


@pytest.mark.parametrize(
    "other",
    [
        PreferencePerceptron(2, Ranking(3)),
        PreferencePerceptron(3, Ranking(3), 2),
        PreferencePerceptron(2, Ranking(2), 2),
        ConvexPerceptron(2, Ranking(3), 1.0),
        SecondOrderPerceptron(2, Ranking(3)),
    ],
)
def test_another_learners_state_is_refused(file: Path, other: Any) -> None:
    with pytest.raises(ValueError, match=r"state\.safetensors: expected a state of"):
        load_state(file, other)
    with pytest.raises(ValueError, match="state: expected a PerceptronState"):
        save_state(file, LEARNER, None)


def test_no_file_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing: expected a snapshot, got no such file"):
        load_state(tmp_path / "nothing", LEARNER)
    with pytest.raises(FileNotFoundError, match="expected a snapshot, got a folder"):
        load_state(tmp_path, LEARNER)
    with pytest.raises(IsADirectoryError, match="expected a file to write, got a folder"):
        save_state(tmp_path, LEARNER, taught(LEARNER))


def test_deeply_nested_json_is_refused(file: Path) -> None:
    from safetensors.numpy import save

    file.write_bytes(save({"w": np.zeros(2)}, metadata={"heedful": "[" * 200_000}))
    with pytest.raises(ValueError, match=r"state\.safetensors: expected a snapshot"):
        load_state(file, LEARNER)
