"""The figures of the papers as data: all there, consistent, and their claims able to be judged."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from heedful.learners.registry import learner_class, make_learner, make_user
from heedful.papers import FIGURES, find_figure
from heedful.papers.chains import STUDY
from heedful.papers.figure import FAILS, HOLDS, NOT_RUN, OPEN, Figure, Line, LineResult, plain, verdicts
from heedful.papers.panels import CHOICES, GRADED, RATED, WORLDS, dueling
from heedful.spaces.ranking import Ranking
from papers.invented import invented

ALL = list(FIGURES.values())


def test_every_figure_of_the_papers_is_there() -> None:
    """[C12] Figures 1 to 5, [J15] Figures 1 to 18, Lemma 3, a remark; [P01] Figure 4 and what it says; [A18]
    Figures 1 to 4 and what is behind them; [H12] Tables 1 to 3, Figures 1 and 2, and what it says."""
    wanted = {f"coactive2012/fig{i}" for i in range(1, 6)} | {f"jair2015/fig{i}" for i in range(1, 19)}
    wanted |= {f"pranking2001/{name}" for name in ("fig4", "fig4-unit", "batch", "lemma", "bound")}
    wanted |= {f"alternating2018/fig{i}" for i in (1, 2, "2-once", 3, "3-factors", "3-once", 4)}
    wanted |= {f"alternating2018/{name}" for name in ("grid", "rank", "switching", "times")}
    wanted |= {f"nips2012/{name}" for name in ("table1", "table2", "table3", "fig1", "fig2", "evidence", "functions")}
    assert set(FIGURES) == wanted | {"jair2015/lemma3", "jair2015/remark6.3"}


@pytest.mark.parametrize("figure", ALL, ids=lambda f: f.id)
def test_every_claim_can_be_judged(figure: Figure) -> None:
    """On curves of noise: whatever comes out, no line is missing and the words are there."""
    outcome = invented(figure, np.random.default_rng(1))
    judged = verdicts(figure, outcome)
    assert len(judged) == len(figure.claims) > 0
    for verdict in judged:
        assert verdict.conclusion in (HOLDS, FAILS, OPEN)
        assert verdict.words
        plain(verdict)  # as JSON has it


@pytest.mark.parametrize("figure", ALL, ids=lambda f: f.id)
def test_a_claim_about_what_was_not_run_is_not_judged(figure: Figure) -> None:
    assert {verdict.conclusion for verdict in verdicts(figure, {})} == {NOT_RUN}


@pytest.mark.slow
@pytest.mark.parametrize("figure", ALL, ids=lambda f: f.id)
def test_lines_name_learners_and_people_that_there_are(figure: Figure) -> None:
    assert len({panel.key for panel in figure.panels}) == len(figure.panels)
    for panel in figure.panels:
        assert panel.world in WORLDS
        assert panel.quick.rounds <= panel.full.rounds
        assert len({line.label for line in panel.lines}) == len(panel.lines)
        if panel.kind == "distribution" or (panel.kind == "bars" and panel.world not in RATED):
            continue
        if panel.world in CHOICES:
            continue
        for line in panel.lines:
            if panel.world not in (*GRADED, *RATED):
                make_user(line.user)
            for spec in line.learners:
                learner_class(spec)
        if panel.kind == "sweep":
            assert len(panel.values) == len(panel.lines) - 1
    for claim in figure.claims:
        assert set(claim.panels) <= {panel.key for panel in figure.panels}


def test_sizes_are_those_of_the_papers() -> None:
    """Twenty permutations in full and five with --quick; 1,500 movies for everybody."""
    for figure in ALL:
        for panel in figure.panels:
            if panel.world == "web":
                assert (panel.full.runs, panel.quick.runs) == (20, 5)
                assert panel.full.rounds >= panel.quick.rounds == 784  # the queries of MQ2008, once
            if panel.world == "movies":
                assert panel.full.rounds == 1_500


def test_an_unknown_figure_has_a_neighbour() -> None:
    with pytest.raises(ValueError, match="did you mean jair2015/fig7"):
        find_figure("jair2015/figure7")


def test_the_grid_of_the_dueling_bandit() -> None:
    """From w = 0 delta / gamma alone matters, of which the paper's 5 x 5 grid had at most 25; here there are several in
    every decade, as what the bandit ends with changes by half from one decade to the next."""
    line = dueling("strict:alpha=0.5")
    bandits = [make_learner(spec, n_features=4, space=Ranking(5)) for spec in line.learners]
    ratios = [bandit.delta / bandit.gamma for bandit in bandits]
    assert ratios == sorted(set(ratios))
    assert ratios[0] <= 0.001
    assert ratios[-1] >= 10.0
    assert max(b / a for a, b in pairwise(ratios)) < 2.0
    assert len(ratios) <= 25


def test_only_the_ratio_of_the_dueling_bandit_matters() -> None:
    from heedful.core.fold import trace
    from heedful.learners.coactive.dueling import DuelingBandit
    from heedful.worlds.queries import synthetic_queries
    from heedful.worlds.users import StrictAlpha

    world, _ = synthetic_queries(20, 8, 4, noise=0.0, user=StrictAlpha(0.5))
    regrets = [
        trace(DuelingBandit(4, Ranking(5), gamma=gamma, delta=delta), world, 200, 0, interpreted=True)
        for gamma, delta in ((1.0, 0.25), (8.0, 2.0))  # powers of two: nothing rounds
    ]
    np.testing.assert_array_equal(*regrets)


def chains(rows: Any, same: Any = None) -> LineResult:
    """Chains with these differences, a row each and a column for each ranking shown; `same`: the clicks changed it not
    (none of those)."""
    rows = np.asarray(rows, float).reshape(len(rows), -1)
    unchanged = np.zeros(rows.shape) if same is None else np.asarray(same, float).reshape(rows.shape)
    return LineResult(Line("all", ("all",), "clicks"), "all", rows, unchanged)


def test_the_study_is_judged_by_the_sign_test() -> None:
    """Of 400 chains, 60 % better and 10 % worse is the paper's; 36 and 33 % is not; nor is that significant. Of twenty
    chains neither can be told."""
    about, more, everywhere, _ = (claim.check for claim in STUDY)
    good = chains([1.0] * 240 + [-1.0] * 40 + [0.0] * 80 + [1e-13] * 40)
    even, few = chains([1.0] * 144 + [-1.0] * 132 + [0.0] * 124), chains([1.0] * 9 + [-1.0] * 5 + [0.0] * 6)
    worse = chains([-1.0] * 240 + [1.0] * 40 + [0.0] * 120)
    for check, ran, wanted in (
        (about, good, HOLDS),
        (about, even, FAILS),
        (about, few, OPEN),
        (more, good, HOLDS),
        (more, worse, FAILS),
        (more, even, OPEN),
        (more, few, OPEN),
    ):
        assert check({"chains": {"all": ran}}).conclusion == wanted
    conditions = {"normal": good, "swapped": good, "reversed": even}
    assert everywhere({"chains": conditions}).conclusion == OPEN
    assert everywhere({"chains": conditions | {"reversed": worse}}).conclusion == FAILS
    assert everywhere({"chains": conditions | {"reversed": good}}).conclusion == HOLDS


def test_what_the_clicks_leave_as_it_is_is_counted_where_nothing_is_gained() -> None:
    unchanged = STUDY[3].check
    for share, wanted in ((0.88, HOLDS), (0.5, FAILS)):
        same = np.arange(500) < share * 500
        assert unchanged({"chains": {"all": chains([0.0] * 500 + [1.0] * 90, [*same, *[1] * 90])}}).conclusion == wanted
    assert unchanged({"chains": {"all": chains([0.0] * 9 + [1.0] * 10, [1] * 8 + [0] * 11)}}).conclusion == OPEN
    assert unchanged({"chains": {"all": chains([1.0] * 9)}}).conclusion == OPEN


def test_three_rankings_of_a_chain_are_one_cluster() -> None:
    """What is true of one chain is not truer for being counted three times: neither a p nor an interval."""
    rng = np.random.default_rng(6)
    once = rng.choice([1.0, -1.0, 0.0], 60, p=[0.5, 0.25, 0.25])
    same = (rng.random(60) < 0.8) & (once == 0.0)
    about, more, _, unchanged = (claim.check for claim in STUDY)
    for check in (about, more, unchanged):
        alone = check({"chains": {"all": chains(once, same)}})
        copied = check({"chains": {"all": chains(np.column_stack([once] * 3), np.column_stack([same] * 3))}})
        assert copied.conclusion == alone.conclusion
        assert copied.words.replace(f"of {3 * (once == 0).sum()}", f"of {(once == 0).sum()}") == alone.words


def test_chains_that_are_no_better_are_found_better_at_the_level_of_the_test() -> None:
    """Each chain is better or worse by a coin in all its three rankings: pooled, it would be so in one of four."""
    more = STUDY[1].check
    found = []
    for seed in range(200):
        rng = np.random.default_rng([seed, 2])
        rows = np.where(rng.random(60) < 0.5, 1.0, -1.0)[:, None] * np.where(rng.random((60, 3)) < 0.9, 1.0, 0.0)
        found.append(more({"chains": {"all": chains(rows)}}).conclusion)
    assert found.count(HOLDS) + found.count(FAILS) <= 0.05 * 200 + 3.0 * np.sqrt(200 * 0.05 * 0.95)
