"""Figures and tables of the papers, run again: what is in them as data (`coactive2012`, `jair2015`, `pranking2001`,
`alternating2018`, `nips2012`), functions that run them (`run_figure`, `run_ordinal`, `run_ratings`, `run_comparison`),
verdicts on the papers' claims (`claims`), and drawing.

[H12]: Houlsby, Huszár, Ghahramani & Hernández-Lobato, *Collaborative Gaussian Processes for Preference Learning*, NIPS
2012.
"""

from __future__ import annotations

from heedful.papers import alternating2018, coactive2012, jair2015, nips2012, pranking2001
from heedful.papers.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for paper in (coactive2012, jair2015, pranking2001, alternating2018, nips2012)
    for figure in paper.FIGURES
}
"""every figure by its id, such as "jair2015/fig2", in the order of the papers"""


def find_figure(name: str) -> Figure:
    """Return the figure with the id `name`, such as "jair2015/fig2". Raise ValueError, with the nearest id, if there is
    none."""
    if name not in FIGURES:
        from heedful.learners.registry import did_you_mean

        raise ValueError(
            f"figure: expected one of those that `heedful figure` lists, got {name!r}{did_you_mean(name, FIGURES)}"
        )
    return FIGURES[name]


def with_labels(figure: Figure, labels: str) -> Figure:
    """Return `figure` in the variant with the given `labels` of its data, "right" or "published"; unchanged if it has
    only one variant.

    Some data sets of [H12] were published with inverted labels; "right" corrects them.
    """
    if FIGURES.get(figure.id) is not figure:
        return figure
    return next((other for other in nips2012.figures(labels) if other.id == figure.id), figure)
