"""Names of learners and of simulated people: what each becomes, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful import learners
from heedful.learners.coactive.dueling import DuelingBandit
from heedful.learners.coactive.perceptron import ConvexPerceptron, ExponentiatedPerceptron, PreferencePerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.learners.ordinal.perceptrons import ConstantRank, MulticlassPerceptron, PRank, WidrowHoff
from heedful.learners.registry import (
    find_learners,
    is_packaged,
    learner_class,
    make_learner,
    make_user,
    short_name,
    summarise,
    why_not_learner,
)
from heedful.spaces.ordinal import Ranks
from heedful.spaces.ranking import Ranking
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.users import Best, Better, ExpectedAlpha, Noisy, StrictAlpha

SPACE = Ranking(3)

OWN = '''
"""A learner of one's own."""
from typing import Any, NamedTuple
import numpy as np
from helper_of_mine import ORDER

class Mine(NamedTuple):
    n_features: int
    space: Any
    rate: float
    steps: int = 3
    eager: bool = False
    mode: str = "plain"
    table: Any = 0

    def init(self, rng): return np.zeros(self.n_features)
    def propose(self, state, x, rng): return np.array(ORDER)
    def update(self, state, x, y, feedback): return state

class Deaf(NamedTuple):
    def init(self, rng): return 0
    def propose(self, state, x, rng): return np.arange(len(x))

class Plain:
    def init(self, rng): return 0
    def propose(self, state, x, rng): return np.arange(len(x))
    def update(self, state, x, y, feedback): return state

NUMBER = 3
'''


def made(spec: str, **defaults: Any) -> Any:
    return make_learner(spec, n_features=4, space=SPACE, **defaults)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "helper_of_mine.py").write_text("ORDER = [2, 1, 0]\n")
    file = tmp_path / "my learner.py"
    file.write_text(OWN)
    return file


# ---------------------------------------------------------------------------- which there are


def test_the_learners_of_the_folder_by_their_short_names() -> None:
    found = find_learners()
    wanted = {
        "convex": ConvexPerceptron,
        "dueling-bandit": DuelingBandit,
        "posterior": Posterior,
        "exponentiated": ExponentiatedPerceptron,
        "perceptron": PreferencePerceptron,
        "second-order": SecondOrderPerceptron,
        "ordinal-logistic": OrdinalLogistic,
        "constant-rank": ConstantRank,
        "multiclass": MulticlassPerceptron,
        "prank": PRank,
        "widrow-hoff": WidrowHoff,
    }
    assert wanted.items() <= found.items()
    assert list(found) == sorted(found)
    assert not [name for name, cls in found.items() if why_not_learner(cls)]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("PreferencePerceptron", "perceptron"),
        ("SecondOrderPerceptron", "second-order"),
        ("PreferenceGP", "gp"),
        ("PRank", "prank"),
        ("NMFBandit", "nmf-bandit"),
        ("RankingSVM", "ranking-svm"),
        ("ALB", "alb"),
        ("Top2Bandit", "top2-bandit"),
    ],
)
def test_a_learner_is_called_by_its_class_without_two_words(name: str, short: str) -> None:
    assert short_name(name) == short


def test_no_two_learners_have_one_name() -> None:
    classes = [value for module in learners.families() for value in vars(module).values() if not why_not_learner(value)]
    assert {*classes} == {*find_learners().values()}


def test_every_docstring_says_what_the_learner_is_and_where_it_is_from() -> None:
    for name, cls in find_learners().items():
        told = summarise(cls)
        assert told.title, name
        assert told.source, name
        assert told.interaction in {"coactive", "ordinal", "rating", "pairwise"}, name
    assert summarise(SecondOrderPerceptron) == ("Second-order preference perceptron", "[J15] Algorithm 6", "coactive")
    assert summarise(PRank) == ("PRank", "[P01] Figure 2", "ordinal")


def test_the_name_of_a_kind_may_have_a_hyphen() -> None:
    class Mine(PreferencePerceptron):
        """A learner of one's own: ours. Interaction: best-worst.

        More about it."""

    assert summarise(Mine) == ("A learner of one's own", "ours", "best-worst")


def test_about_a_class_that_says_nothing() -> None:
    class Mute(PreferencePerceptron):
        """Words. Without the form."""

    class Terse(PreferencePerceptron):
        """Words, without a source. Interaction: rating.

        And more.
        """

    assert summarise(Terse) == ("", "", "rating")
    assert summarise(Mute) == ("", "", "")


# ---------------------------------------------------------------------------- from a name to a learner


@pytest.mark.parametrize(
    ("spec", "learner"),
    [
        ("perceptron", PreferencePerceptron(4, SPACE)),
        (" perceptron:batch=7 ", PreferencePerceptron(4, SPACE, 7)),
        ("perceptron:", PreferencePerceptron(4, SPACE)),
        ("second-order:gamma=0.5, radius=1e3", SecondOrderPerceptron(4, SPACE, 0.5, 1.0, 1000.0)),
        ("second-order:epsilon=2", SecondOrderPerceptron(4, SPACE, 1.0, 2.0)),
        ("exponentiated:bound=2,horizon=100", ExponentiatedPerceptron(4, SPACE, 2.0, 100)),
        ("convex:radius=3", ConvexPerceptron(4, SPACE, 3.0)),
    ],
)
def test_make_learner(spec: str, learner: Any) -> None:
    got = made(spec)
    assert got == learner
    assert [type(value) for value in got] == [type(value) for value in learner]
    assert learner_class(spec) is type(learner)


def test_defaults_fill_only_what_has_none_and_was_not_given() -> None:
    assert made("exponentiated", bound=1.5, radius=9.0) == ExponentiatedPerceptron(4, SPACE, 1.5)
    assert made("exponentiated:bound=2", bound=1.5) == ExponentiatedPerceptron(4, SPACE, 2.0)
    assert made("second-order", radius=9.0).radius == 100.0


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            "percptron",
            "learner: expected .*bmf, .*convex, .*FILE.py:Class or module:Class, got 'percptron'; did you mean pe",
        ),
        ("secondorder", "did you mean second-order"),
        ("zzz", r"got 'zzz'$"),
        ("", r"got ''$"),
        ("perceptron:batches=2", "perceptron: expected batch, got 'batches'; did you mean batch"),
        ("second-order:gama=1", "second-order: expected gamma, epsilon, radius, got 'gama'; did you mean gamma"),
        ("perceptron:batch=2.5", "perceptron: batch: expected a whole number, got '2.5'"),
        ("second-order:gamma=much", "second-order: gamma: expected a number, got 'much'"),
        ("perceptron:batch", "perceptron: parameters: expected FIELD=VALUE, separated by commas, got 'batch'"),
        ("perceptron:batch=", "perceptron: parameters: expected FIELD=VALUE"),
        ("perceptron:batch=1,batch=2", "perceptron: batch: expected one value, got two"),
        ("perceptron:n_features=3", "perceptron: n_features: it comes from the data and cannot be given"),
        ("convex", "convex: radius: expected a value, got none; write convex:radius=VALUE"),
        ("nowhere_at_all:Mine", "nowhere_at_all: expected a module that can be imported, got ModuleNotFoundError"),
        ("perceptrom:Mine", "did you mean perceptron"),
        ("json:JSONDecoder", "json: JSONDecoder: expected a NamedTuple with init, .* but it is not a NamedTuple"),
        ("mine.py", "learner: expected mine.py:Class, the learner's class after the file, got 'mine.py'"),
    ],
)
def test_what_is_refused(spec: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        made(spec)


def test_how_many_grades_there_are_comes_from_the_space_or_the_name() -> None:
    assert make_learner("prank", n_features=4, space=Ranks(5)) == PRank(4, 5)
    assert make_learner("widrow-hoff:eta=0.5", n_features=4, space=Ranks(3)) == WidrowHoff(4, 3, 0.5)
    assert make_learner("ordinal-logistic:n_ranks=7", n_features=4, space=None) == OrdinalLogistic(4, 7)
    assert make_learner("multiclass", n_features=4, space=None, n_ranks=6) == MulticlassPerceptron(4, 6)
    with pytest.raises(ValueError, match=r"^prank: n_ranks: expected a value, got none; write prank:n_ranks=VALUE$"):
        make_learner("prank", n_features=4, space=SPACE)


# ---------------------------------------------------------------------------- one's own


def test_a_learner_in_a_file_with_parameters_of_every_kind(own: Path) -> None:
    got = made(f"{own}:Mine:rate=1,steps=2,eager=yes,mode=fast")
    assert got == (4, SPACE, 1.0, 2, True, "fast", 0)
    assert [type(value) for value in got[2:6]] == [float, int, bool, str]
    assert got.propose(None, None, None).tolist() == [2, 1, 0]  # its helper was found


def test_a_file_is_imported_once_under_a_name_that_its_path_decides(own: Path) -> None:
    first, second = learner_class(f"{own}:Mine"), learner_class(f"{own.parent}/./my learner.py:Mine:rate=2")
    assert first is second
    name = first.__module__
    assert name.isidentifier()
    assert sys.modules[name].__file__ == str(own)
    del sys.modules[name]
    assert learner_class(f"{own}:Mine").__module__ == name


def test_a_learner_in_a_module_of_the_working_folder(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own.parent / "module_of_mine.py").write_text(OWN)
    monkeypatch.chdir(own.parent)
    assert made("module_of_mine:Mine:rate=2").rate == 2.0


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (":Mime", r"my learner.py: expected a class Mime, got none; it has Mine; did you mean Mine\?"),
        (":Deaf", "my learner.py: Deaf: expected a NamedTuple with init, propose and update, but it has no update"),
        (":Plain", "Plain: expected a NamedTuple with init, propose and update, but it is not a NamedTuple"),
        (":NUMBER", "NUMBER: expected a NamedTuple with init, propose and update, but it is not a NamedTuple"),
        (":Mine", "Mine: rate: expected a value, got none; write .*my learner.py:Mine:rate=VALUE"),
        (":Mine:rate=1,eager=perhaps", "eager: expected true or false, got 'perhaps'"),
        (":Mine:rate=1,table=7", "table: expected a field of int, float, bool or str, which text can give"),
        ("", "the learner's class after the file"),
    ],
)
def test_what_of_ones_own_is_refused(own: Path, after: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        made(f"{own}{after}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.py: no such file; expected FILE\.py:Class"):
        made(f"{tmp_path}/none.py:Mine")


@pytest.mark.parametrize(
    ("text", "told"),
    [("x = 1 / 0", "ZeroDivisionError: division by zero"), ("(", "SyntaxError"), ("exit()", "SystemExit")],
)
def test_a_file_that_cannot_be_imported_is_not_kept(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    before = set(sys.modules)
    with pytest.raises(ValueError, match=rf"broken\.py: expected a file that can be imported, got {told}"):
        made(f"{file}:Mine")
    assert not [name for name in set(sys.modules) - before if "broken" in name]


# ---------------------------------------------------------------------------- people


@pytest.mark.parametrize(
    ("spec", "user"),
    [
        ("strict", StrictAlpha(0.5)),
        ("strict:alpha=1", StrictAlpha(1.0)),
        ("noisy", Noisy(10)),
        (" noisy:depth=3", Noisy(3)),
        ("better", Better()),
        ("better:exact=true", Better(True)),
        ("best", Best()),
        ("position-biased:eta=2", PositionBiased(2.0)),
        ("position-biased:clicks_only=true,noise=0.2", PositionBiased(1.0, 0.2, True)),
        ("cascade:stop=1", Cascade(1.0)),
        ("expected:strict=1", ExpectedAlpha(0.5, 1.0)),
    ],
)
def test_make_user(spec: str, user: Any) -> None:
    got = make_user(spec)
    assert type(got) is type(user)
    assert got == user


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            "strikt",
            r"user: expected strict, .*, position-biased, cascade, expected, got 'strikt'; did you mean strict\?",
        ),
        ("strict:alpha=0", "strict: alpha: expected a number above 0, at most 1, got 0.0"),
        ("strict:alpha=1.01", "strict: alpha: expected a number above 0, at most 1, got 1.01"),
        ("strict:alpha=nan", "strict: alpha: expected a number above 0, at most 1, got nan"),
        ("noisy:depth=0", "noisy: depth: expected a whole number, 1 or more, got 0"),
        ("noisy:depht=1", r"noisy: expected depth, got 'depht'; did you mean depth\?"),
        ("position-biased:eta=-1", "position-biased: eta: expected a number from 0 to 100, got -1.0"),
        ("cascade:stop=2", "cascade: stop: expected a number from 0 to 1, got 2.0"),
        ("best:of=3", "best: expected ties, got 'of'"),
    ],
)
def test_people_that_are_refused(spec: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make_user(spec)


def test_a_name_is_found_as_it_is_by_looking_at_all_learners() -> None:
    """What is none, a state or a function of the folder, goes by no name."""
    for name, cls in find_learners().items():
        assert learner_class(name) is cls
        assert is_packaged(name)
    for name in ("preference-gp", "p-rank-state", "posterior-state", "team-draft", "own.py", ""):
        assert not is_packaged(name)


@pytest.mark.slow
def test_a_name_imports_the_file_of_its_learner_alone() -> None:
    program = (
        "import sys; from heedful.learners.registry import learner_class; learner_class('second-order:epsilon=1')\n"
        "print(*sorted(name for name, module in sys.modules.items()"
        " if name.startswith('heedful.learners.') and not hasattr(module, '__path__')))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert out == [
        "heedful.learners.coactive.online_convex",
        "heedful.learners.coactive.second_order",
        "heedful.learners.registry",
    ]
