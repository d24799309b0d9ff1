"""`heedful simulate`: its figures against loops written out here, its files, its words."""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from command import done, heedful, refusal

from heedful.cli import simulate
from heedful.cli.console import BadInput
from heedful.cli.output import write_runs
from heedful.cli.simulate import simulate_command
from heedful.core.fold import play
from heedful.data.catalogue import load_catalogue
from heedful.data.letor import load_letor
from heedful.experiments.coactive import catalogue_setting, letor_setting
from heedful.experiments.definitions.base import BadOption, Option, PreparedExperiment
from heedful.experiments.definitions.letor import Letor
from heedful.experiments.registry import EXPERIMENTS, make_experiment
from heedful.jit.kernel import visible
from heedful.worlds.users import Best, Better, Noisy, StrictAlpha, users_that

KEYS = ["learner", "user", "rounds", "seeds", "checkpoints", "regret", "stderr", "bound", "rounds_per_second"]


def regrets_of(learner: Any, scene: Any, rounds: int) -> list[float]:
    """The regret of every round: `play`, and the world folded a second time over what was shown and answered."""
    asked = np.random.default_rng(np.random.SeedSequence(scene.draw).spawn(3)[0])
    world, truth, out = scene.world, scene.world.init(asked), []
    for played, _ in play(learner, world, rounds, scene.draw):
        out.append(float(world.regret(truth, played.x, visible(played.y))))
        truth = world.advance(truth, played.x, visible(played.y), played.feedback)
    return out


# ---------------------------------------------------------------------------- figures


def test_letor_figures_are_those_of_a_loop(letor_file: Path) -> None:
    names = ["perceptron", "second-order:gamma=0.5", "exponentiated", "convex", "perceptron:batch=10", "dueling-bandit"]
    line = "simulate letor {} --user strict:alpha=0.4 --rounds 40 --seeds 3 --k 3 --interpreted --json --learner "
    got = done(line + " --learner ".join(names), letor_file)
    assert [row["learner"] for row in got.json] == names
    setting = letor_setting(load_letor(letor_file), StrictAlpha(0.4), k=3, seeds=range(3))
    for row in got.json:
        assert list(row) == KEYS
        assert (row["user"], row["rounds"], row["seeds"]) == ("strict:alpha=0.4", 40, 3)
        assert row["checkpoints"] == [1, 3, 10, 30, 40]
        regrets = np.array([regrets_of(setting.learner(row["learner"]), scene, 40) for scene in setting.scenes])
        by_seed = np.array([regrets[:, :t].mean(axis=1) for t in row["checkpoints"]])
        np.testing.assert_allclose(row["regret"], by_seed.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(row["stderr"], by_seed.std(axis=1, ddof=1) / np.sqrt(3), rtol=1e-9)
        assert row["rounds_per_second"] > 0
    bounds = {row["learner"]: row["bound"] for row in got.json}
    assert bounds["second-order:gamma=0.5"] is bounds["exponentiated"] is bounds["dueling-bandit"] is None
    norm, t = np.linalg.norm(setting.scenes[0].w_star), np.array([1, 3, 10, 30, 40])
    np.testing.assert_allclose(bounds["perceptron"], 2 * setting.R * norm / np.sqrt(t) / 0.4)
    np.testing.assert_allclose(bounds["perceptron:batch=10"], 2 * setting.R * norm * np.sqrt(10 / t) / 0.4)
    first, *_, batch, dueling = (row["regret"] for row in got.json)
    assert first != batch != dueling


def test_without_more_said_letor_is_one_pass_of_one_perceptron(letor_file: Path) -> None:
    (row,) = heedful("simulate letor {} --interpreted --json", letor_file).json
    assert (row["learner"], row["user"], row["rounds"], row["seeds"]) == ("perceptron", "strict:alpha=0.5", 15, 1)
    assert row["stderr"] == [None] * 4
    assert row["bound"] is not None


def test_seeds_are_counted_from_the_first(letor_file: Path) -> None:
    setting = letor_setting(load_letor(letor_file), Noisy(4), seeds=(5,))
    line = "simulate letor {} --user noisy:depth=4 --first-seed 5 --interpreted --json"
    (row,) = heedful(line, letor_file).json
    wanted = regrets_of(setting.learner("perceptron"), setting.scenes[0], 15)
    assert row["regret"][-1] == pytest.approx(np.mean(wanted), rel=1e-12)
    assert row["bound"] is None  # the theorems are about strict people


@pytest.mark.parametrize(
    ("spec", "user"), [("better", Better()), ("best", Best()), ("better:exact=true", Better(True))]
)
def test_catalogue_figures_are_those_of_a_loop(items_file: Path, spec: str, user: Any) -> None:
    line = f"simulate catalogue {{}} --user {spec} --rounds 8 --people 4 --seeds 2 --interpreted --json"
    got = heedful(f"{line} --learner perceptron --learner posterior:swap=0", items_file)
    setting = catalogue_setting(load_catalogue(items_file), user, people=4, seeds=(0, 1))
    assert [row["learner"] for row in got.json] == ["perceptron", "posterior:swap=0"]
    for row in got.json:
        assert list(row) == KEYS
        assert (row["user"], row["rounds"], row["checkpoints"]) == (spec, 8, [1, 3, 8])
        regrets = np.array([regrets_of(setting.learner(row["learner"]), scene, 8) for scene in setting.scenes])
        by_seed = regrets.reshape(2, 4, 8).mean(axis=1)  # over people first
        average = np.array([by_seed[:, :t].mean(axis=1) for t in (1, 3, 8)])
        np.testing.assert_allclose(row["regret"], average.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(row["stderr"], average.std(axis=1, ddof=1) / np.sqrt(2), rtol=1e-9)
        assert row["bound"] is None


def test_with_one_seed_the_error_is_over_people(items_file: Path) -> None:
    line = "simulate catalogue {} --user strict --rounds 5 --people 6 --interpreted"
    (row,) = heedful(f"{line} --json", items_file).json
    setting = catalogue_setting(load_catalogue(items_file), StrictAlpha(0.5), people=6)
    average = [np.mean(regrets_of(setting.learner("perceptron"), scene, 5)) for scene in setting.scenes]
    assert row["stderr"][-1] == pytest.approx(np.std(average, ddof=1) / np.sqrt(6), rel=1e-9)
    norms = [np.linalg.norm(scene.w_star) for scene in setting.scenes]
    assert row["bound"][-1] == pytest.approx(2 * setting.R * np.mean(norms) / np.sqrt(5) / 0.5)
    assert "± is the standard error over people. 6 people." in heedful(line, items_file).out


def test_a_pool_that_runs_dry_ends_the_average_and_is_told(items_file: Path, tmp_path: Path) -> None:
    line = "simulate catalogue {} --rounds 500 --people 3 --interpreted"
    got = heedful(f"{line} --json --out {{}}", items_file, tmp_path / "runs.csv")
    (row,) = got.json
    assert 15 <= row["rounds"] <= 30
    assert row["checkpoints"][-1] == row["rounds"]
    told = f"perceptron: items leave as they are found, and nothing was left after {row['rounds']} rounds: ended there"
    columns = f"{items_file}: features are size, price, age; columns that are not numbers are left out"
    assert got.err == f"heedful: {columns}\nheedful: {told}\n"
    table = heedful(line, items_file)
    assert f"Ended where the first person had nothing left: perceptron after {row['rounds']} rounds." in table.out
    with (tmp_path / "runs.csv").open(newline="") as file:
        assert max(int(line["round"]) for line in csv.DictReader(file)) > row["rounds"]  # all that was played


def test_jobs_are_how_many_run_at_a_time(letor_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.experiments import run

    seen: list[int] = []
    pool = run.ThreadPoolExecutor
    monkeypatch.setattr(run, "ThreadPoolExecutor", lambda jobs: seen.append(jobs) or pool(jobs))
    line = "simulate letor {} --interpreted --seeds 4 --json --engine serial --jobs"
    one, three = (heedful(f"{line} {jobs}", letor_file).json for jobs in (1, 3))
    assert seen == [1, 3]
    assert one[0]["regret"] == three[0]["regret"]


@pytest.mark.slow
def test_one_pass_over_mq2008(mq2008: Path) -> None:
    files = [mq2008 / f"S{i}.txt.gz" for i in range(1, 6)]
    (row,) = heedful("simulate letor {} {} {} {} {} --interpreted --json", *files).json
    assert row["rounds"] == 784
    assert row["checkpoints"] == [1, 3, 10, 30, 100, 300, 784]
    assert all(regret <= bound for regret, bound in zip(row["regret"], row["bound"]))
    assert row["regret"][-1] < row["regret"][0] / 10


# ---------------------------------------------------------------------------- words


def test_the_table_has_a_row_for_every_learner(letor_file: Path) -> None:
    line = "simulate letor {} -l perceptron -l second-order --seeds 2 --interpreted"
    got, rows = heedful(line, letor_file), heedful(f"{line} --json", letor_file).json
    assert "strict:alpha=0.5, 15 queries, 2 seeds" in got.out
    assert "± is the standard error over seeds. bound: what theory promises after the last round." in got.out
    for row in rows:
        (told,) = [line for line in got.out.splitlines() if line.strip().startswith(row["learner"])]
        for value in row["regret"]:
            assert f"{value:#.3g}" in told
        assert ("none" in told) == (row["learner"] == "second-order")
        assert f"±{row['stderr'][-1]:.2g}" in got.out


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_fits_the_terminal(letor_file: Path, width: int) -> None:
    got = heedful("simulate letor {} --seeds 2 --rounds 400 --interpreted", letor_file, width=width)
    assert max(map(len, got.out.splitlines())) <= width
    assert "…" not in got.out
    head = next(line for line in got.out.splitlines() if "learner" in line)
    assert {"1", "400"} <= set(head.split())
    assert ("300" in head) == (width == 200)


def test_one_run_has_no_error_to_show(letor_file: Path) -> None:
    assert "±" not in heedful("simulate letor {} --interpreted", letor_file).out


# ---------------------------------------------------------------------------- files


LETOR = "simulate letor {} -l perceptron -l perceptron:batch=2 --seeds 2 --rounds 20 --interpreted --out {}"
ITEMS = "simulate catalogue {} -l perceptron --people 2 --seeds 2 --rounds 6 --interpreted --out {}"


@pytest.mark.parametrize(
    ("line", "who", "n"), [(LETOR, ["learner", "seed"], 80), (ITEMS, ["learner", "seed", "person"], 24)]
)
def test_the_regret_of_every_round(
    letor_file: Path, items_file: Path, tmp_path: Path, line: str, who: list[str], n: int
) -> None:
    file = letor_file if line == LETOR else items_file
    assert heedful(line, file, tmp_path / "runs.csv").code == 0
    with (tmp_path / "runs.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0]) == [*who, "round", "regret"]
    assert len(rows) == n
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    order = [(learners.index(row["learner"]), *[int(row[name]) for name in [*who[1:], "round"]]) for row in rows]
    assert order == sorted(order)  # learners as they were named, then by seed, person, round
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    arrays = {name: np.array(cells, str if name == "learner" else float) for name, cells in columns.items()}
    if line == LETOR:
        setting: Any = letor_setting(load_letor(file), StrictAlpha(0.5), seeds=(0, 1))
        person, rounds = np.zeros(n), 20
    else:
        setting = catalogue_setting(load_catalogue(file), Better(), people=2, seeds=(0, 1))
        person, rounds = arrays["person"], 6
    for scene in setting.scenes:
        mine = (arrays["learner"] == "perceptron") & (arrays["seed"] == scene.seed) & (person == scene.person)
        assert arrays["round"][mine].tolist() == list(range(1, rounds + 1))
        wanted = regrets_of(setting.learner("perceptron"), scene, rounds)
        np.testing.assert_allclose(arrays["regret"][mine], wanted, rtol=1e-12)


PLOT = "simulate letor {} -l perceptron -l second-order --rounds 200 --seeds 3 --interpreted"


@pytest.mark.slow
@pytest.mark.parametrize("user", ["strict", "noisy:depth=5"])
def test_the_plot_is_a_picture_with_a_line_for_every_learner(letor_file: Path, tmp_path: Path, user: str) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    assert heedful(f"{PLOT} --user {user} --plot {{}}", letor_file, tmp_path / "a.png").code == 0
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = imread(tmp_path / "a.png")[:, :, :3]
    for color in ("C0", "C1"):
        assert (np.abs(pixels - to_rgb(color)).max(axis=2) < 0.02).sum() > 500
    assert (pixels.min(axis=2) > 0.98).mean() > 0.7  # and mostly paper


def test_what_the_plot_draws(letor_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: drawn.append(figure))
    rows = heedful(f"{PLOT} --json --plot {{}}", letor_file, tmp_path / "a.png").json
    (axes,) = drawn[0].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("round t", "average regret of rounds 1 to t")
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["perceptron", "second-order", "perceptron: bound"]
    lines = axes.get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--"]
    assert len(axes.collections) == 2  # a band for either learner
    for line, row in zip(lines, rows):
        assert line.get_xdata()[[0, -1]].tolist() == [1, 200]
        assert line.get_ydata()[[0, -1]].tolist() == pytest.approx([row["regret"][0], row["regret"][-1]])
    assert lines[2].get_ydata()[-1] == pytest.approx(rows[0]["bound"][-1])


# ---------------------------------------------------------------------------- one's own, and what is refused


@pytest.mark.slow
def test_a_learner_of_ones_own_that_does_not_compile(letor_file: Path, own_file: Path) -> None:
    got = heedful("simulate letor {} -l {}:Odd:start=1 --compiled --json", letor_file, own_file)
    assert got.code == 0
    (line,) = got.err.splitlines()
    assert line.startswith(f"heedful: {own_file}:Odd:start=1 runs interpreted: Cannot determine Numba type of")
    assert got.json[0]["learner"] == f"{own_file}:Odd:start=1"
    quiet = heedful("simulate letor {} -l {}:Odd:start=1 --interpreted --json", letor_file, own_file)
    assert quiet.err == ""
    assert quiet.json[0]["regret"] == got.json[0]["regret"]


def test_a_learner_that_breaks_is_a_failure_and_not_bad_input(letor_file: Path, own_file: Path) -> None:
    line = "simulate letor {} -l {}:Breaks --interpreted"
    assert refusal(line, letor_file, own_file, code=1) == "RuntimeError: out of ideas; --debug shows where"
    for debug in (f"--debug {line}", f"{line} --debug"):
        err = heedful(debug, letor_file, own_file).err
        assert "Traceback" in err
        assert "own.py" in err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("--learner percptron", "got 'percptron'; did you mean perceptron?"),
        (
            "--learner second-order:gamma=-1",
            "second-order:gamma=-1: gamma: expected a finite number above 0, from 1e-50 to 1e50, got -1.0",
        ),
        ("-l convex -l convex", "--learner: expected each once, got convex 2 times"),
        ("--learner nowhere.py:Mine", "nowhere.py: no such file; expected FILE.py:Class"),
        ("--user kind", "user: expected strict, noisy, better, best, position-biased, cascade, expected, got 'kind'"),
        (
            "--user best",
            "one who ranks documents (strict, noisy, position-biased, cascade, expected), got Best(ties=True)",
        ),
        ("--k 1", "--k: expected"),
        ("--rounds 0", "--rounds: expected"),
        ("--seeds none", "--seeds: expected"),
        ("--plot a.txt", "--plot: expected a name that ends in .png or .pdf or .svg, got 'a.txt'"),
        ("--out a.json", "--out: expected a name that ends in .csv, got 'a.json'"),
        ("--out no/such/folder/a.csv", "--out: expected a file in a folder that exists, got 'no/such/folder/a.csv'"),
        ("--unknown", "No such option: --unknown"),
    ],
)
def test_bad_input_is_a_sentence(letor_file: Path, args: str, told: str) -> None:
    assert told in refusal(f"simulate letor {{}} {args}", letor_file)


def test_damaged_data_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("7 qid:1 1:2\n")
    assert refusal("simulate letor {}", tmp_path / "bad.txt") == "bad.txt:1: grade: expected an integer 0 to 4, got '7'"
    (tmp_path / "bad.csv").write_text("name\nonly\n")
    assert "bad.csv: columns: expected at least one of finite numbers" in refusal(
        "simulate catalogue {}", tmp_path / "bad.csv"
    )
    got = heedful("simulate letor {}", tmp_path)
    assert (got.code, got.err) == (
        2,
        f"heedful: {tmp_path}: expected a file, got a folder; name a file in it\n",
    )


@pytest.mark.parametrize(("command", "answer"), [("letor", "rank"), ("catalogue", "pick"), ("movielens", "pick")])
def test_help_names_everybody_who_answers(command: str, answer: str) -> None:
    """And nobody else."""
    users = inspect.get_annotations(getattr(simulate, command), eval_str=True)["user"].__metadata__[0].help
    named = set(re.findall(r"[a-z-]{4,}", re.sub(r":\w+=\w+", "", users)))
    assert named == set(users_that(answer).split(", "))


def test_a_catalogue_is_for_people_who_pick(items_file: Path) -> None:
    assert "user: expected one who picks items (strict, better, best, expected), got Noisy(depth=10)" in refusal(
        "simulate catalogue {} --user noisy", items_file
    )


def test_without_matplotlib_the_plot_says_what_to_install(letor_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.cli.console.importlib.util.find_spec", lambda name: None)
    got = heedful("simulate letor {} --plot a.png", letor_file)
    told = "heedful: --plot needs matplotlib, which is not installed: pip install '.[plot]'\n"
    assert (got.code, got.out, got.err) == (1, "", told)


def test_simulate_alone_is_its_help() -> None:
    got = done("simulate")
    assert "letor" in got.out
    assert "catalogue" in got.out


def test_no_cell_of_a_file_is_a_formula(tmp_path: Path) -> None:
    """What a person or a learner is called may begin as a formula of a spreadsheet does; numbers stay numbers."""

    class Made(NamedTuple):
        learner: str
        seed: int
        person: str
        regrets: Any

    runs: Any = [Made("@mine.py:Own", 0, "=1+1", np.array([-0.5, 1.0]))]
    write_runs(tmp_path / "runs.csv", runs, people=True)
    assert (tmp_path / "runs.csv").read_text().splitlines()[1] == "'@mine.py:Own,0,'=1+1,1,-0.5"


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_is_a_command_with_its_own_options(name: str) -> None:
    """The parameters of `prepare` but for the seeds, which are counted: arguments where there is no default."""
    told = done(f"simulate {name} --help", width=200)
    own = [
        each for each in inspect.signature(make_experiment(name).prepare).parameters.values() if each.name != "seeds"
    ]
    options = {f"--{each.name.replace('_', '-')}" for each in own if each.default is not each.empty}
    shared = {
        "--learner",
        "--rounds",
        "--seeds",
        "--first-seed",
        "--engine",
        "--jobs",
        "--interpreted",
        "--compiled",
        "--plot",
        "--out",
        "--json",
    }
    found = set(re.findall(r"(--[a-z0-9-]+)", told.out.split("Example:")[0].split("Options")[1]))
    assert {each for each in found if not each.startswith("--no-")} == options | shared | {"--help"}
    assert EXPERIMENTS[name].help in " ".join(told.out.split())


def test_an_option_that_makes_no_sense_is_named_as_it_is_written() -> None:
    class Odd(Letor):
        def prepare(
            self,
            file: Annotated[str, Option("A file.")],
            least_size: Annotated[int, Option("At least.")] = 1,
            *,
            seeds: Sequence[int],
        ) -> PreparedExperiment:
            raise BadOption(f"least_size: expected {file}: 2 or more, got {least_size}")

    with pytest.raises(BadInput, match=r"^--least-size: expected a file: 2 or more, got 1$"):
        simulate_command(Odd())(
            file="a file",
            least_size=1,
            learner=["perceptron"],
            rounds=None,
            seeds=1,
            first_seed=0,
            engine="serial",
            jobs=1,
            interpreted=True,
            plot=None,
            out=None,
            json=False,
        )
