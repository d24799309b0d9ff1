"""Run a figure of a paper: find its data, and run each plot by the module for its data set.

All curves of a plot have the same seeds and people. Figures share data and runs through `Sources`.

[C12]: Shivaswamy & Joachims, *Online Structured Prediction via Coactive Learning*, ICML 2012; [J15]: Shivaswamy &
Joachims, *Coactive Learning*, JAIR 53, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.extras import lacking
from heedful.core.fold import trace
from heedful.data.letor import load_letor
from heedful.diagnostics import lower_bound
from heedful.experiments.coactive import RADIUS, letor_setting
from heedful.experiments.setting import Setting
from heedful.learners.registry import learner_class, make_learner, make_user
from heedful.papers.datasets import files_of, load_choices, missing_files
from heedful.papers.figure import Figure, Line, LineResult, Outcome, Panel, Size, first
from heedful.papers.panels import (
    BOOKS,
    CHAINS,
    CHOICES,
    GRADED,
    JESTER,
    LOWER,
    MOVIE_CHOICES,
    MOVIES,
    RATED,
    RATERS,
    SEPARABLE,
    STREAMS,
    SYNTHETIC,
    TOY,
    WEB,
)
from heedful.papers.run_comparison import run_panel
from heedful.papers.run_ordinal import People, people_who_rated, run_ordinal
from heedful.papers.run_ratings import SYNTHETIC as MADE
from heedful.papers.run_ratings import run_ratings
from heedful.papers.runner import HERE, Group, LearnerRuns, Tell, Workers, best_of, part_of, run_group
from heedful.papers.statistics import log_spaced
from heedful.papers.theory import guaranteed_regret, with_slack
from heedful.spaces.ranking import Ranking
from heedful.worlds.unlearnable import unlearnable

if TYPE_CHECKING:
    from heedful.data.movielens import Ratings
    from heedful.data.pairwise_dataset import PairwiseDataset
    from heedful.data.ratings import RatingTable
    from heedful.data.trec import Chain

Array = npt.NDArray[np.float64]
T = TypeVar("T")


class Sources:
    """The data of the experiments, each read at its first use, and the cache of runs, `cache`.

    `data`: a folder with the data sets in sub-folders, or with the files of one; `letor`: files for web search to use
    in place of those in the folder. Methods raise the ValueError and OSError of the loaders if files are damaged.
    """

    def __init__(self, data: Path, letor: Sequence[Path] = ()) -> None:
        self._data = data
        self._letor = [str(file) for file in letor]
        self._read: dict[object, Any] = {}
        self.cache: dict[Any, Any] = {}

    def lacks(self, panel: Panel) -> str:
        """Return in words why the plot `panel` cannot be run (files or a package are missing); empty if it can."""
        world = MOVIES if panel.world in (*RATERS, STREAMS) else panel.world
        machines = {"ranking-svm": "the ranking SVM", "svm": "the multiclass SVM", "svr": "the SVR"}
        if find_spec("sklearn") is None:
            for machine in {machine for line in panel.lines for machine in line.learners} & machines.keys():
                return lacking(machines[machine], "scikit-learn", "sklearn")
        if world in (LOWER, SYNTHETIC, SEPARABLE, TOY, *MADE) or (world == WEB and self._letor) or self._files(world):
            return ""
        return missing_files(world, self._data)

    def setting(self, world: str, user: Any, runs: int) -> Setting:
        """Return the simulated runs, `runs` of them, on the data set with the key `world` (queries or movies), in which
        the simulated person `user` teaches learners.
        """
        if world == MOVIES:
            from heedful.experiments.movielens import make_movie_world, movie_setting

            return movie_setting(self._once(MOVIES, lambda: make_movie_world(self.ratings())), user, people=runs)
        files = self._letor or map(str, self._files(world))
        return letor_setting(self._once(WEB, lambda: load_letor(*files)), user, seeds=range(runs))

    def ratings(self) -> Ratings:
        """Return the ratings of MovieLens 1M, read at the first call."""
        from heedful.data.movielens import load_movielens

        return self._once("ratings", lambda: load_movielens(self._files(MOVIES)[0].parent))

    def people(self, least: int) -> People:
        """Return the people with at least `least` ratings in MovieLens 1M, with their ratings."""
        return self._once(("people", least), lambda: people_who_rated(self.ratings(), least))

    def table(self, world: str) -> RatingTable:
        """Return the ratings of the data set with the key `world`: of Jester those of the first 5,000 people, of
        Book-Crossing those of the 2,000 people and 2,000 books with the most ratings."""
        from heedful.data.ratings import densest, load_book_crossing, load_jester, movielens_ratings

        def load() -> RatingTable:
            [file] = self._files(world)
            if world == BOOKS:
                return densest(load_book_crossing(file), 2000, 2000)
            return load_jester(file, users=5000) if world == JESTER else movielens_ratings(file.parent)

        return self._once(world, load)

    def choices(self, world: str, labels: str) -> PairwiseDataset:
        """Return the preference of each person on each pair of items of the data set with the key `world`: with
        `labels` "right", the correct preferences, or "published", those that were published, some of which are
        inverted."""
        ratings = self.ratings() if world == MOVIE_CHOICES else None
        folder = self._files(world)[0].parent
        return self._once((world, labels), lambda: load_choices(world, folder, labels, ratings))

    def chains(self) -> list[Chain]:
        """Return the query chains of the TREC sessions, with their clicks and judgments."""
        from heedful.data.trec import load_sessions

        files = self._files(CHAINS)
        pairs = zip(files[::2], files[1::2])
        return self._once(CHAINS, lambda: [chain for pair in pairs for chain in load_sessions(*pair)])

    def _once(self, key: object, load: Callable[[], T]) -> T:
        """Return what `load` returns when it is called for this `key` for the first time."""
        if key not in self._read:
            self._read[key] = load()
        read: T = self._read[key]
        return read

    def _files(self, world: str) -> list[Path]:
        return files_of(world, self._data)


def missing_panels(figure: Figure, sources: Sources) -> dict[str, str]:
    """Return for each plot of `figure` that cannot be run with the data in `sources` the reason, in words, by the
    plot's key.
    """
    return {panel.key: why for panel in figure.panels if (why := sources.lacks(panel))}


def run(
    figure: Figure,
    sources: Sources,
    *,
    quick: bool = False,
    workers: Workers = HERE,
    tell: Tell = lambda what, share: None,
) -> Outcome:
    """Run every plot of `figure` whose data are present; return the results of its curves, by the plot's key and by
    label.

    `sources` has the data, and a cache of runs; with `quick`, runs are in the plot's quick size; `workers`
    run them; `tell` is called with words and the share done (0 to 1) to report progress.
    """
    outcome: dict[str, dict[str, LineResult]] = {}
    panels = [panel for panel in figure.panels if not sources.lacks(panel)]
    for i, panel in enumerate(panels):
        part = part_of(tell, i, len(panels), f"{figure.id}, {panel.title}: ")
        part("begins", 0.0)
        size = panel.quick if quick else panel.full
        if panel.world in GRADED:
            outcome[panel.key] = run_ordinal(panel, size, sources.people, sources.cache, workers, part)
        elif panel.world in CHOICES:
            outcome[panel.key] = run_panel(panel, size, sources.choices, sources.cache, workers, part)
        elif panel.world in RATED:
            outcome[panel.key] = run_ratings(panel, size, sources.table, sources.cache, workers, part)
        elif panel.kind == "distribution":
            outcome[panel.key] = distribution(panel, sources)
        elif panel.kind == "horizons":
            outcome[panel.key] = horizons(panel, size)
        else:
            outcome[panel.key] = _curves(panel, size, sources, workers, part)
    return outcome


def _curves(panel: Panel, size: Size, sources: Sources, workers: Workers, tell: Tell) -> dict[str, LineResult]:
    """Run a plot of [C12] or [J15] with simulated corrections; return the results of its curves by label, all with the
    same number of rounds.
    """
    users = list(dict.fromkeys(line.user for line in panel.lines))
    results = {}
    for i, user in enumerate(users):
        lines = [line for line in panel.lines if line.user == user]
        specs = [spec for line in lines for spec in line.learners]
        setting = sources.setting(panel.world, make_user(user), size.runs)
        group = _group(panel, size, user, specs, setting)
        runs = run_group(group, size.rounds, sources.cache, workers, part_of(tell, i, len(users)))
        for line in lines:
            results[line.label] = _best(line, runs, panel, size, setting)
    T = min(result.regrets.shape[1] for result in results.values())
    return {line.label: first(results[line.label], T) for line in panel.lines}


def _group(panel: Panel, size: Size, user: str, specs: Sequence[str], setting: Setting) -> Group:
    """Return the learners `specs` as a group that one simulated person, `user`, teaches. If one of them cannot be
    compiled, none is, because their times are compared."""
    plain = any(hasattr(learner_class(spec), "must_interpret") for spec in specs)

    def make(spec: str, setting: Setting) -> Any:
        return setting.learner(_complete_spec(spec, panel.world, size, setting))

    return Group((panel.world, user, size, plain), specs, [setting], make, len(setting.scenes), user, plain or None)


def _best(line: Line, runs: dict[str, LearnerRuns], panel: Panel, size: Size, setting: Setting) -> LineResult:
    """Return the results of a curve: those of its learner with the lowest average regret on the rounds by which claims
    are judged, with the theoretical bound on its regret.
    """
    judged = _judged_rounds(panel.world, size, setting)
    spec = best_of(line, runs, judged)
    regrets, seconds = runs[spec]
    name, user = _complete_spec(spec, panel.world, size, setting), make_user(line.user)
    T = regrets.shape[1]
    once = judged if judged < T else 0
    learner, marks = setting.learner(name), np.union1d(log_spaced(T), once or T).astype(np.float64)
    promise = guaranteed_regret(learner, user, setting, panel.measure, marks)
    if panel.slack and not promise.theorem:
        promise = with_slack(learner, setting, panel.measure, marks, 0.5, min(3, len(setting.scenes)))
    M = np.array([setting.R * np.linalg.norm(scene.w_star) for scene in setting.scenes])
    return LineResult(
        line, name, regrets, M, seconds, promise.marks, promise.values, promise.theorem, promise.lacking, once
    )


def _complete_spec(spec: str, world: str, size: Size, setting: Setting) -> str:
    """Return the name `spec` of a learner with its placeholders, such as {norm} (see `Line`), replaced by numbers of
    the setting: of the data set `world` and the `size` of runs."""
    norm = float(np.linalg.norm(setting.scenes[0].w_star))
    judged = _judged_rounds(world, size, setting)
    return spec.format(rounds=judged, norm=norm, gamma=1.0 / (3.0 * setting.R * norm))


def _judged_rounds(world: str, size: Size, setting: Setting) -> int:
    """Return the number of rounds on which claims are judged: all, but on web search (`world`) at most one pass through
    the queries."""
    return min(size.rounds, setting.rounds) if world == WEB else size.rounds


# ---------------------------------------------------------------------------- the two that are not simulations


def distribution(panel: Panel, sources: Sources) -> dict[str, LineResult]:
    """Run the plot of Figure 1 of [C12] on the query chains of `sources`, and return the results of its curves by
    label: differences in DCG@10 in each condition (chains x 1), and in all (chains x conditions).

    A chain without a click has difference 0, as in the paper. Nobody clicked on the degraded rankings: their clicks are
    drawn from a position-biased click model that is fitted to the recorded clicks.
    """
    from heedful.worlds.chains import fit_clicks, study

    chains = sources.chains()
    person = fit_clicks(chains)
    curves: dict[str, tuple[Array, Array]] = {}
    for line in panel.lines:
        condition = line.learners[0]
        if condition == "all":
            parts = list(curves.values())
            curves[line.label] = np.column_stack([d for d, _ in parts]), np.column_stack([same for _, same in parts])
        else:
            clicks = "documents" if condition == "normal" else person
            answers = study(chains, condition, clicks=clicks, clicked_only=False)
            curves[line.label] = answers.differences, answers.same.astype(np.float64)
    return {
        line.label: LineResult(line, line.learners[0], differences.reshape(len(same), -1), same)
        for line, (differences, same) in ((line, curves[line.label]) for line in panel.lines)
    }


def horizons(panel: Panel, size: Size) -> dict[str, LineResult]:
    """Run the plot of Lemma 3 of [J15], by which the average regret of T rounds can be no lower than 2 / sqrt T; return
    the results of its curves by label.

    Each curve has the average regret (1 x lengths) of single runs of different lengths T: about 30 lengths, up to
    `size.rounds`. The feedback is that of the stream in the proof of the lemma."""
    result = {}
    for line in panel.lines:
        lengths = log_spaced(size.rounds, 30)
        ends = []
        for T in lengths.tolist():
            learner = make_learner(line.learners[0], n_features=T, space=Ranking(1), bound=1.0, radius=RADIUS)
            ends.append(float(trace(learner, unlearnable(T), T, 0, interpreted=True).mean()))
        marks = lengths.astype(np.float64)
        bound = np.array([lower_bound(T) for T in lengths.tolist()])
        result[line.label] = LineResult(
            line, line.learners[0], np.array([ends]), np.ones(1), marks=marks, bound=bound, theorem="2 / sqrt T"
        )
    return result
