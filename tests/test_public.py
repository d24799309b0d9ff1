"""What `import heedful` offers: to `dir` and whatever completes names, to `import *`, to type checkers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import heedful
import heedful.estimators as heedful_estimators
from heedful.core.extras import lacking
from heedful.learners.registry import find_learners

SOURCE = Path(heedful.__file__)


def test_dir_names_everything_that_there_is() -> None:
    """Loops, features, spaces, sessions, and every learner of the package; nothing that cannot be had."""
    names = {name for name in dir(heedful) if not name.startswith("_")}
    assert names >= {"Loop", "Settings", "Session", "Ranking", "Assignment", "Subset", "infer", "vectors"}
    assert names >= {cls.__name__ for cls in find_learners().values()}
    assert names <= {*heedful.__all__, *(path.stem for path in SOURCE.parent.iterdir())}
    for name in heedful.__all__:
        value = getattr(heedful, name)
        assert value is not None
        assert getattr(value, "__name__", name) == name


@pytest.mark.slow
def test_looking_at_the_names_imports_nothing() -> None:
    program = "import sys, heedful; dir(heedful); print(*sorted({name.split('.')[0] for name in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "numba", "msgspec"} & set(out)


@pytest.mark.parametrize("package", [heedful, heedful_estimators], ids=lambda package: package.__name__)
def test_type_checkers_are_told_the_same_names(package: Any) -> None:
    """They read the imports under TYPE_CHECKING, and the names as they are written in `__all__`."""
    tree = ast.parse(Path(package.__file__).read_text())
    block, _ = [node for node in tree.body if isinstance(node, ast.If)]
    told = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(told) == sorted(package.__all__)
    [written] = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    assert ast.literal_eval(written) == list(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None


OWN_LEARNER = """
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful import Learner, Ranking, Space, World, play, trace
from heedful.core.conformance import CheckResult, check_learner
from heedful.jit.kernel import Floats, Ints
from heedful.worlds.queries import StreamState, synthetic_queries
from heedful.worlds.users import StrictAlpha

Array = npt.NDArray[np.float64]


class PassiveState(NamedTuple):
    w: Array
    t: int


class PassiveAggressive(NamedTuple):  # steps that are as long as the loss asks for, in any space
    n_features: int
    space: Space
    most: float = 1.0

    def init(self, rng: np.random.Generator, /) -> PassiveState:
        if not 0.0 < self.most:
            raise ValueError(f"most: expected a number above 0, got {self.most}")
        return PassiveState(np.zeros(self.n_features), 0)

    def propose(self, state: PassiveState, x: Floats, rng: np.random.Generator, /) -> Ints:
        return self.space.argmax(state.w, x)

    def update(self, state: PassiveState, x: Floats, y: Ints, feedback: Ints, /) -> PassiveState:
        D = np.zeros(self.n_features)
        self.space.add_difference(D, x, feedback, y, 1.0)
        loss = 1.0 - float(state.w @ D)
        if D.any() and loss > 0.0:
            state.w[:] += min(self.most, loss / float(D @ D)) * D
        return PassiveState(state.w, state.t + 1)


world, _ = synthetic_queries(10, 5, 2, noise=0.5, user=StrictAlpha(0.5), k=3)
passive: Learner[Floats, Ints, Ints, PassiveState] = PassiveAggressive(2, Ranking(3))
queries: World[Floats, Ints, Ints, StreamState] = world
regrets: Array = trace(PassiveAggressive(2, Ranking(3)), world, 200, seed=0)
for played, passed in play(PassiveAggressive(2, Ranking(3)), world, 20, seed=0):
    order: Ints = played.feedback
    weight: Array = passed.w
results: list[CheckResult] = [*check_learner(PassiveAggressive(2, Ranking(3)), world)]
"""

TYPED = """
from collections.abc import Mapping
from pathlib import Path

import heedful
from heedful import (
    Posterior,
    Leaderboard,
    Loop,
    PreferencePerceptron,
    Round,
    Session,
    Settings,
    infer,
    leaderboard,
    replay,
)
from heedful.client import Answer, AsyncClient, Client
from heedful.estimators import neg_rank_loss
from heedful.io.formats import FORMATS, Format
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Experiment
from heedful.results.health import Health
from heedful.results.report import Report
from heedful.results.style import Style
from heedful.results.explanation import Why


class Counting(NamedTuple):
    n: int

    def init(self, rng: np.random.Generator, /) -> Array:
        return np.zeros(self.n)

    def propose(self, state: Array, x: Array, rng: np.random.Generator, /) -> int:
        return int(state.argmax())

    def update(self, state: Array, x: Array, y: int, feedback: int, /) -> Array:
        state[feedback] += 1.0
        return state


session = Session(PreferencePerceptron(n_features=2, space=Ranking(3)))
session.learn([1, 0])
counted: Array = replay(Counting(2), [Round(np.zeros(2), 0, 1)], seed=0)
own: Session[Array] = Session(Counting(2))
rows = [{"id": "a", "price": 1.0}, {"id": "b", "price": 2.0}]
loop = Loop.create(Path("x.heedful"), encoding=infer(rows), items=rows, settings=Settings(k=3))
decision = loop.decide(["a"], person="p")
shown: tuple[str, ...] = decision.shown
report: Report = loop.report()
evaluation: Evaluation = loop.evaluate("perceptron", alpha=0.1)
style: Style = loop.style_of("p")
prompt: str = style.prompt
why: Why = loop.why(decision.id, "a")
health: Health = loop.health()
tried: Answer = loop.start_experiment("posterior", share=0.2)
experiment: Experiment = loop.experiment()
formats: Mapping[str, Format] = FORMATS
board: Leaderboard = leaderboard([{"model_a": "x", "model_b": "y", "winner": "model_a"}])
best: str = board.models[int(board.order[0])]
with Client("http://127.0.0.1:8710") as client:
    remote = client.create("x", rows, learner="posterior", settings={"k": 3}, kinds={"price": "number"})
    names: tuple[str, ...] = remote.decide(["a"], person="p", prior={"a": 1.0}, context={"day": "mon"}).shown
    answer: Answer = remote.feedback(remote.decide(rows), clicks=["b"])
    answers: list[Answer] = remote.feedback_many([{"decision": "d1", "clicks": ["b"]}])
    remotely: Report = remote.report()
    looked: Evaluation = remote.evaluate("perceptron")
    liked: Style = remote.style_of("p")
    put: int = remote.put_items(rows).put
    ranking: tuple[str, ...] = remote.rank(person="p")
    weights: dict[str, float] = remote.weights()


async def ask(client: AsyncClient) -> Answer:
    loop = client.loop("x")
    decided = await loop.decide(features=np.zeros((2, 3)), prior=np.zeros(2), show=1)
    return await loop.feedback(decided.id, better=["1", "0"])


reveal_type(heedful.Loop.open)
reveal_type(loop.report)
reveal_type(Posterior(2, Ranking(3)).swap)
reveal_type(neg_rank_loss)
reveal_type(own.state)
reveal_type(Client.loop)
loop.decid()
heedful.Lop
replay(Counting(2), [Round(np.zeros(2), 0, "first")], seed=0)
"""


@pytest.mark.slow
def test_a_learner_in_thirty_lines_passes_every_check(tmp_path: Path) -> None:
    """It has to run as well as to type-check: it learns, and keeps what `check_learner` asks of the package's own."""
    (tmp_path / "mine.py").write_text(OWN_LEARNER)
    program = (
        "from mine import regrets, results; import heedful.core.conformance as c; "
        "print(len(results) == len(c.CHECKS), regrets[-100:].mean() < regrets[:20].mean(), *{r.kept for r in results})"
    )
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert got.stdout.split() == ["True", "True", "True"], got.stderr


@pytest.mark.slow
def test_a_type_checker_sees_the_types_of_a_program_of_somebody_elses(tmp_path: Path) -> None:
    """Strictly, in a folder of its own: every name has its type, and a slip is found."""
    (tmp_path / "mine.py").write_text(OWN_LEARNER + TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, "mine.py"]
    lines = _told_by(command, tmp_path)
    told = [line.split("Revealed type is ")[1].strip('"') for line in lines if "Revealed type" in line]
    returned = [each.rpartition(" ")[2].rpartition(".")[2] for each in told]
    assert returned == ["Loop", "Report]", "float", "float", "float64]]", "RemoteLoop"], lines
    wrong = [line.split("error: ")[1] for line in lines if "error: " in line]
    assert len(wrong) == 3, lines
    assert '"Loop" has no attribute "decid"' in wrong[0]
    assert 'Module has no attribute "Lop"' in wrong[1]
    assert '"replay"' in wrong[2]


@pytest.mark.slow
def test_another_type_checker_sees_the_same(tmp_path: Path) -> None:
    """Pyright, at its strictest for types."""
    (tmp_path / "mine.py").write_text(OWN_LEARNER + TYPED)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "reportUnusedExpression": false}')
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "mine.py"]
    lines = _told_by(command, tmp_path)
    told = [line.rpartition(' is "')[2].strip('"') for line in lines if "information: Type of" in line]
    assert [each.rpartition(" ")[2] for each in told][:4] == ["Loop", "Report", "float", "float"], lines
    wrong = [line.split("error: ")[1] for line in lines if "error: " in line]
    assert not [each for each in wrong if "decid" not in each and "Lop" not in each and "Round" not in each], lines
    assert any('Cannot access attribute "decid" for class "Loop"' in each for each in wrong)
    assert any('"Lop" is not a known attribute of module' in each for each in wrong)


def _told_by(command: list[str], folder: Path) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")}
    got = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    return got.stdout.splitlines()


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(AttributeError, match="module 'heedful' has no attribute 'PRankState'"):
        heedful.PRankState  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_said_to_be_installed_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip takes 'heedful[serve]' wherever heedful is installed, and '.[serve]' in a clone; no file writes it itself."""
    told = "x needs y, which is not installed: pip install '{}[serve]'"
    assert lacking("x", "y", "serve") == told.format(".")
    monkeypatch.setattr("heedful.core.extras.CLONE", False)
    assert lacking("x", "y", "serve") == told.format("heedful")
    by_itself, named = [], set[str]()
    for file in SOURCE.parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        by_itself += [file.name] if re.search(r"pip install '(\.|heedful)\[[a-z]", text) else []
        named |= set(re.findall(r'(?:lacking|check_extra)\(.*, "([a-z]+)"\)', text))
    extras = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert (by_itself, named - extras.keys()) == ([], set())
    assert {"sklearn", "postgres", "parquet", "client", "ray", "demo"} <= named
