"""One self-contained HTML page with every figure next to the paper's claims and the verdicts on them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from heedful.core.notebooks import table
from heedful.papers.figure import FAILS, HOLDS, NOT_RUN, OPEN, Figure, Verdict

MARKS = {HOLDS: "yes", FAILS: "no", OPEN: "open", NOT_RUN: "none"}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --yes: #00714f; --no: #b3260f; --open: #7a5c00; --none: #767676; }
@media (prefers-color-scheme: dark) { :root { --yes: #43c59e; --no: #ff8a70; --open: #d9b84a; --none: #9a9a9a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid var(--line); padding: 1rem 0 2rem; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
.yes { color: var(--yes); } .no { color: var(--no); } .open { color: var(--open); } .none { color: var(--none); }
td:last-child { font-variant-numeric: tabular-nums; } small { color: var(--none); }
"""
_HEAD = "<tr><th>The paper says</th><th>Here</th><th>Found</th></tr>"


class Drawing(NamedTuple):
    """A figure with the verdicts on its claims and its picture, as the page shows it."""

    figure: Figure
    """the figure"""
    verdicts: Sequence[Verdict]
    """the verdict on each of its claims, in their order"""
    picture: Path | None
    """an SVG file; None if nothing was run"""
    seconds: float
    """the seconds that the runs took"""
    judged_on: str
    """a sentence on which rounds claims were judged; empty if on all"""

    def _repr_html_(self) -> str:
        rows = [
            (claim.says, verdict.conclusion, verdict.words) for claim, verdict in zip(self.figure.claims, self.verdicts)
        ]
        title = f"{self.figure.id}: {self.figure.title} ({self.figure.paper})"
        return _picture(self) + table(
            title, ["the paper says", "here", "found"], rows, [self.figure.note, self.judged_on]
        )


def page(drawings: Sequence[Drawing], about: str) -> str:
    """Return one HTML page with the figures in `drawings`, one section for each, with the claims and verdicts; `about`
    says in one sentence what was run.
    """
    judged = [verdict.conclusion for drawing in drawings for verdict in drawing.verdicts]
    words = {HOLDS: "hold here", FAILS: "do not hold here", OPEN: "cannot be told here", NOT_RUN: "were not run"}
    summary = ", ".join(
        f"{judged.count(conclusion)} {words[conclusion]}" for conclusion in MARKS if conclusion in judged
    )
    contents = "\n".join(
        f'<li><a href="#{_anchor(drawing)}">{escape(drawing.figure.id)}</a>: '
        f"{escape(drawing.figure.title)}{_tally(drawing)}</li>"
        for drawing in drawings
    )
    sections = "\n".join(map(_section, drawings))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The papers, figure by figure</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>The papers, figure by figure</h1>\n<p>{escape(about)} Of the papers' claims, {summary}.</p>\n"
        f"<nav><ul>{contents}</ul></nav>\n<main>{sections}</main>\n</body></html>\n"
    )


def _anchor(drawing: Drawing) -> str:
    return escape(drawing.figure.id.replace("/", "-"))


def _tally(drawing: Drawing) -> str:
    judged = [verdict.conclusion for verdict in drawing.verdicts if verdict.conclusion != NOT_RUN]
    if not judged:
        return " <small>(not run)</small>"
    undecided = f", {judged.count(OPEN)} cannot be told" if OPEN in judged else ""
    return f" <small>({judged.count(HOLDS)} of {len(judged)} hold{undecided})</small>"


def _section(drawing: Drawing) -> str:
    figure = drawing.figure
    rows = "\n".join(
        f'<tr><td>{escape(claim.says)}</td><td class="{MARKS[verdict.conclusion]}">'
        f"{verdict.conclusion}</td><td>{escape(verdict.words)}</td></tr>"
        for claim, verdict in zip(figure.claims, drawing.verdicts)
    )
    note = "".join(f"<p>{escape(words)}</p>" for words in (figure.note, drawing.judged_on) if words)
    return (
        f'<section id="{_anchor(drawing)}"><h2>{escape(figure.id)}: {escape(figure.title)}</h2>\n'
        f"{_picture(drawing)}\n{note}"
        f'<div class="scroll"><table><thead>{_HEAD}</thead><tbody>{rows}</tbody></table></div>'
        f"<p><small>{escape(figure.paper)}. Took {drawing.seconds:.0f} s.</small></p></section>"
    )


def _picture(drawing: Drawing) -> str:
    """Return the picture of a figure as an inline HTML element, on white, because its lines are dark; empty if there is
    none."""
    if drawing.picture is None:
        return ""
    data = base64.b64encode(drawing.picture.read_bytes()).decode()
    alt = f"{escape(drawing.figure.title)}: the curves; the table has the numbers"
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{alt}" style="background:#fff;max-width:100%">'
