"""The figures of the papers: as data (`coactive2012`, `jair2015`, `pranking2001`), run (`running`, `grading`), judged
(`claims`), drawn."""

from __future__ import annotations

from heedful.figures import coactive2012, jair2015, pranking2001
from heedful.figures.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.id: figure for figure in (*coactive2012.FIGURES, *jair2015.FIGURES, *pranking2001.FIGURES)
}
"""Every figure by its id, in the order of the papers."""


def find_figure(name: str) -> Figure:
    """The figure of that id. ValueError, with the nearest there is, where there is none."""
    if name not in FIGURES:
        from heedful.naming import nearest

        raise ValueError(
            f"figure: wanted one of those that `heedful figure` lists, got {name!r}{nearest(name, FIGURES)}"
        )
    return FIGURES[name]
