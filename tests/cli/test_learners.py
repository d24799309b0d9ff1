"""`heedful learners`: every learner is listed, and each one explained."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from command import done, heedful, refusal

from heedful.learners.registry import find_learners, make_learner
from heedful.spaces.comparison import Choice
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking
from heedful.spaces.slate import Slate

SPACES: dict[str, Any] = {"coactive": Ranking(1), "ordinal": Ranks(5), "rating": Slate(), "pairwise": Choice(3)}
COMMANDS = {
    "coactive": "simulate catalogue",
    "ordinal": "simulate ordinal",
    "rating": "simulate ratings",
    "pairwise": "init study",
}


def test_all_are_listed(own_file: Path) -> None:
    got = done("learners --json")
    listed = {row["name"]: row for row in got.json}
    assert list(listed) == [*find_learners()]
    assert listed["second-order"] == {
        "name": "second-order",
        "class": "heedful.learners.coactive.second_order.SecondOrderPerceptron",
        "title": "Second-order preference perceptron",
        "paper": "[J15] Algorithm 6",
        "interaction": "coactive",
    }
    table = heedful("learners").out
    for name, row in listed.items():
        line = next(line for line in table.splitlines() if line.split()[:1] == [name])
        assert row["interaction"] in line
        assert row["paper"].split()[0] in line
    assert {row["interaction"] for row in listed.values()} == {*COMMANDS}
    for paper in {row["paper"].split("]")[0] for row in listed.values() if row["paper"].startswith("[")}:
        assert f"{paper}] is " in table
    assert listed["prank"]["paper"] == "[P01] Figure 2"


@pytest.mark.parametrize("name", find_learners())
def test_each_is_explained(name: str) -> None:
    got, told = heedful(f"learners {name}"), heedful(f"learners {name} --json").json
    cls: Any = find_learners()[name]
    assert told["docstring"] == inspect.getdoc(cls)
    flat = " ".join(got.out.split())
    assert " ".join(told["docstring"].split("\n\n")[0].split()) in flat
    assert [parameter["name"] for parameter in told["parameters"]] == list(cls._fields)
    for parameter in told["parameters"]:
        assert parameter["name"] in got.out
        default = cls._field_defaults.get(parameter["name"])
        assert parameter["default"] == (repr(default) if isinstance(default, tuple) else default)
        assert ("given_by" in parameter) == (parameter["name"] not in cls._field_defaults)
    assert f"Example: {told['example']}" in got.out
    spec = told["example"].partition("--learner ")[2]  # the example's learner can be made as it stands
    given = {"n_features": 2, "space": SPACES.get(told["interaction"]), "bound": 1.0, "radius": 100.0}
    assert make_learner(spec, **given) == make_learner(name, **given)
    command = told["example"].split()[:3]
    assert " ".join(command[1:]) == COMMANDS[told["interaction"]]
    assert heedful(" ".join([*command[1:], "--help"])).code == 0


def test_what_comes_from_the_data_is_said() -> None:
    assert "largest" in heedful("learners exponentiated").out
    assert "100, as in the experiments" in heedful("learners convex").out
    help_text = " ".join(heedful("learners --help").out.split())
    assert "bound (exponentiated) is the largest entry of phi, radius (convex) is 100" in help_text


def test_one_s_own(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = heedful("learners {}:Odd --json", own_file)
    assert [parameter["default"] for parameter in got.json["parameters"]] == [None, None, 0]
    assert got.json["title"] == ""
    assert got.json["example"].endswith(f"--learner {own_file}:Odd:start=0")
    assert got.json["class"] == f"{own_file.name}:Odd"
    monkeypatch.chdir(own_file.parent)
    assert heedful(f"learners {own_file.name}:Odd").out.splitlines()[0] == f"{own_file.name}:Odd"


def test_one_there_is_not() -> None:
    assert "did you mean second-order?" in refusal("learners secondorder")
