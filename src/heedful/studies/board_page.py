"""A leaderboard as a page: one HTML file that needs nothing else, no script and no network.

The file is long because the page's style, drawings and tables stand in it, so that the file is whole by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.boards.sentences import WITHOUT, how, influence, odd_people
from heedful.core.wording import one_line, share, share_of

if TYPE_CHECKING:
    from heedful.boards.leaderboard import Effect, Leaderboard
    from heedful.results.table import Column

MATRIX = 30
"""The most models of the matrix of wins on a page."""
MOST = 500
"""The most models of a table on a page."""
_STYLE = """
:root { color-scheme: light dark; --bg: #f6f5f1; --card: #fff; --fg: #1d1c19; --muted: #5f5c54; --line: #dcd8ce;
  --accent: #0f6b5c; --ghost: #a9cfc5; --tint: #e3f0ec; --low: #b4552d; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --bg: #131513; --card: #1c1f1c; --fg: #ecebe4; --muted: #aaa89d;
  --line: #33372f; --accent: #63cdb5; --ghost: #2f5a50; --tint: #17302a; --low: #e08e62; --warn: #e0b25a; } }
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--bg); color: var(--fg); overflow-wrap: break-word;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: clamp(1rem, 3vw, 2.5rem); display: grid; gap: 1.25rem;
  grid-template-columns: minmax(0, 1fr); }
h1, h2, h3, p, ul, figure { margin: 0; }
h1 { font-size: clamp(1.6rem, 1.2rem + 1.8vw, 2.25rem); line-height: 1.15; letter-spacing: -.015em; }
h2 { font-size: 1.1875rem; line-height: 1.25; }
h3 { font-size: 1rem; }
a { color: var(--accent); text-underline-offset: .15em; }
.lead { font-size: 1.125rem; max-width: 54rem; }
.muted { color: var(--muted); } .small { font-size: .875rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: clamp(.9rem, 2vw, 1.4rem);
  display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); }
.facts { display: flex; flex-wrap: wrap; gap: .4rem 2.25rem; margin: 0; padding: 0; list-style: none; }
.facts b { display: block; font-size: 1.5rem; line-height: 1.2; font-variant-numeric: tabular-nums; font-weight: 650; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; padding: 0; list-style: none; }
.scroll { overflow-x: auto; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
thead th { font-size: .8125rem; font-weight: 600; color: var(--muted); vertical-align: bottom; }
th[scope="row"], thead th.name { text-align: left; }
th[scope="row"] { font-weight: 600; white-space: normal; overflow-wrap: break-word; min-width: 10rem; }
tbody tr:last-child > * { border-bottom: 0; }
.draw { width: 40%; min-width: 12rem; padding-top: 0; padding-bottom: 0; }
.axis { height: 16px; overflow: visible; font-size: .75rem; fill: var(--muted); text-anchor: middle; }
td.draw line { stroke: var(--line); } td.draw line.zero { stroke: var(--muted); }
abbr { text-decoration: underline dotted; text-underline-offset: .2em; cursor: help; }
.unsure { color: var(--warn); }
svg { display: block; width: 100%; }
svg.interval { height: 20px; overflow: visible; }
.spread { fill: var(--ghost); } .value { fill: var(--accent); }
.zero { stroke-dasharray: 3 3; }
.matrix th, .matrix td { padding: .3rem .4rem; text-align: center; font-size: .8125rem; border: 1px solid var(--card); }
.matrix tbody th { text-align: left; min-width: 7rem; }
.matrix td.self { background: none; color: var(--muted); }
HEAT
.category { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); margin-top: .75rem; }
.told { display: grid; gap: .5rem; padding-left: 1.2rem; }
@media (max-width: 64rem) { .draw { width: auto; min-width: 7rem; } th[scope="row"] { min-width: 6rem; }
  th, td { padding: .4rem .35rem; } }
@media (max-width: 40rem) { .spare { display: none; } .draw { min-width: 6rem; } .axis { display: none; }
  th[scope="row"] { min-width: 6rem; } th, td { padding: .4rem .45rem; } }
@media print { body { background: #fff; } .card { break-inside: avoid; } nav { display: none; } }
@media (forced-colors: active) { .spread { fill: GrayText; } .value { fill: Highlight; } }
"""
SHOWN = ("place", "item", "score", "draw", "score_low", "place_low", "best", "better_than_next", "votes")
"""The columns of the table in their order; in "draw" stands the drawing of the score with its interval."""
SPARE = ("best", "better_than_next", "votes")
"""Columns that a narrow window does without."""
_STEPS = 10
"""The number of shades on each side of an even share in the matrix."""


def _heat() -> str:
    """Return the rules of the shades: --accent above an even share, --low below."""
    rules = []
    for step in range(1, _STEPS + 1):
        strong = round(4 + 4.2 * step)  # not more, as words stand on it
        for name, colour in (("u", "accent"), ("d", "low")):
            rules.append(f".{name}{step} {{ background: color-mix(in srgb, var(--{colour}) {strong}%, transparent); }}")
    return "\n".join(rules)


def board_page(found: Leaderboard, title: str = "") -> str:
    """Return the leaderboard `found` as an HTML page, with its categories, under a `title`; without one, under the
    name of its file.

    The first MOST models are shown."""
    title = title or Path(found.file).name
    ends = _ends(found)
    parts = [_head(found, title), board_section(found, ends=ends), _insight(found), _matrix(found)]
    parts += [_effects(found), _by_category(found)]
    parts += [_category(name, board, k, ends) for k, (name, board) in enumerate(found.categories)]
    parts.append(_small_print(found))
    style = _STYLE.replace("HEAT", _heat())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(one_line(title, 80))}: leaderboard</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _name(found: Leaderboard, i: int, most: int = 60) -> str:
    return escape(one_line(found.models[i], most))


def _head(found: Leaderboard, title: str) -> str:
    facts = [
        (f"{found.board.answers:,}", "vote" if found.board.answers == 1 else "votes"),
        (f"{len(found.models):,}", "models"),
    ]
    if found.board.people:
        facts.append((f"{found.board.people:,}", "person" if found.board.people == 1 else "people"))
    facts.append((share_of(found.tied, found.board.answers), "ties"))
    if found.bad:
        facts.append((share_of(found.bad, found.tied), "of the ties are both bad"))
    cells = "".join(f"<li><b>{value}</b> <span class='muted small'>{told}</span></li>" for value, told in facts)
    links = ""
    if found.categories:
        items = "".join(
            f'<li><a href="#category-{k}">{escape(one_line(name))}</a></li>'
            for k, (name, _) in enumerate(found.categories)
        )
        links = f'<nav aria-label="Categories"><ul><li class="muted">Categories:</li>{items}</ul></nav>'
    return (
        f"<header class='card'><h1>{escape(one_line(title, 120))}</h1><p class='lead'>{_verdict(found)}</p>"
        f"<ul class='facts'>{cells}</ul>{links}</header>"
    )


def _verdict(found: Leaderboard) -> str:
    """Return in a sentence which model is first, and how sure that is."""
    first, *others = found.board.ranking
    name, best = escape(one_line(first.item, 60)), escape(share(first.best))
    if not others:
        return f"{name} is alone."
    if first.best >= found.board.sure:
        return f"<b>{name}</b> is the best, with probability {best}."
    rest = sum(row.place_low == 1 for row in others)
    if rest > 1:
        return f"<b>{name}</b> is ahead, and is the best with probability {best}; {rest} others may be."
    second = escape(one_line(others[0].item, 60))
    return f"<b>{name}</b> is ahead of {second}, and is the best with probability {best}."


def board_section(found: Leaderboard, label: str = "Leaderboard", ends: tuple[float, float] | None = None) -> str:
    """Return the table of a leaderboard as a part of a page: places, scores with intervals, votes.

    `label` is its name for those who do not see it; `ends` are the ends of the axis of scores, by default those of the
    intervals."""
    low, high = ends or _ends(found)
    ticks = _ticks(low, high)
    columns: dict[str, Column] = {column.name: column for column in found.board.columns()}
    rows = []
    for row in found.board.ranking[:MOST]:
        cells = []
        for name in SHOWN:
            if name == "item":
                cells.append(f'<th scope="row">{escape(one_line(row.item, 60))}</th>')
            elif name == "draw":
                told = f"{columns['score'].cell(row)}, 90 % interval {columns['score_low'].cell(row)}"
                cells.append(f'<td class="draw">{_interval(*row.bar, low, high, told, ticks)}</td>')
            else:
                text = escape(columns[name].cell(row))
                kind = f"number{' spare' if name in SPARE else ''}{' unsure' if text.startswith('≈') else ''}"
                cells.append(f'<td class="{kind}">{f"<b>{text}</b>" if name == "score" else text}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(_heading(name, columns, _axis(ticks, low, high)) for name in SHOWN)
    more = len(found.models) - len(rows)
    rest = f'<p class="muted small">And {more:,} more.</p>' if more else ""
    table = f'<table class="table ranking"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<section class="card" aria-label="{escape(label)}">{_scrolled(table, label)}{rest}</section>'


def _heading(name: str, columns: Mapping[str, Column], axis: str) -> str:
    """Return the heading of a column, with what it means in its title."""
    kind = "name" if name == "item" else name if name == "draw" else "spare" if name in SPARE else ""
    if name == "draw":
        told = axis
    else:
        column = columns[name]
        told = escape(column.heading)
        told = f'<abbr title="{escape(column.help)}">{told}</abbr>' if column.help else told
    return f'<th scope="col" class="{kind}">{told}</th>'


def _scrolled(table: str, label: str) -> str:
    """Return a table that scrolls by itself where it is too wide, also with the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">{table}</div>'


def _card(id: str, title: str, *parts: str) -> str:
    return f'<section class="card" aria-labelledby="{id}"><h2 id="{id}">{title}</h2>{"".join(parts)}</section>'


def _ends(found: Leaderboard) -> tuple[float, float]:
    """Return the ends of the axis that holds the intervals of the first MOST models of a board and its categories."""
    boards = [found, *(board for _, board in found.categories)]
    bars = [row.bar for each in boards for row in each.board.ranking[:MOST]]
    return min(low for low, _, _ in bars), max(high for _, _, high in bars)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between `low` and `high`, two to five of them as a rule."""
    span = max(high - low, 1e-6)
    power = 10.0 ** math.floor(math.log10(span / 2.0))
    step = max((each * power for each in (1.0, 2.0, 5.0) if each * power <= span / 2.0), default=power)
    first = math.ceil(low / step)
    return [step * k for k in range(first, first + 8) if step * k <= high]


def _axis(ticks: Sequence[float], low: float, high: float) -> str:
    marks = "".join(f'<text x="{_at(tick, low, high)}%" y="12">{tick:,.6g}</text>' for tick in ticks)
    return f'<svg class="axis" aria-hidden="true">{marks}</svg>'


def _at(value: float, low: float, high: float) -> float:
    """Return where a value is on the axis from `low` to `high`, in percent."""
    return round(100.0 * (value - low) / max(high - low, 1e-9), 2)


def _interval(
    low: float, mid: float, high: float, left: float, right: float, told: str, ticks: Sequence[float] = ()
) -> str:
    """Return a drawing of the interval from `low` to `high` around `mid`, with a line at each of `ticks`, else at 0;
    `told` says the same in words."""
    a, at, b = (_at(value, left, right) for value in (low, mid, high))
    kind = "" if ticks else ' class="zero"'
    lines = "".join(
        f'<line{kind} x1="{_at(tick, left, right)}%" x2="{_at(tick, left, right)}%" y1="-9" y2="29"/>'
        for tick in ticks or (0.0,)
    )
    wide = max(round(b - a, 2), 0.4)
    return (
        f'<svg class="interval" role="img" aria-label="{told}">{lines}<rect class="spread" x="{a}%" y="7" '
        f'width="{wide}%" height="6" rx="3"/><circle class="value" cx="{at}%" cy="10" r="4"/></svg>'
    )


def insight(found: Leaderboard) -> list[str]:
    """Return sentences on what follows from a leaderboard: what is alike, what few votes would turn, and what is
    strange, without what names people."""
    return [*influence(found), found.board.apart(), *(each.message for each in found.remarks if not each.people)]


def odd_judges(found: Leaderboard) -> list[tuple[str, tuple[str, ...]]]:
    """Return sentences on people whose votes look odd, each with their names."""
    return odd_people(found.remarks, found.random)


def _insight(found: Leaderboard) -> str:
    named = [each.message for each in found.remarks if each.people]
    odd = [message for message, _ in odd_judges(found)]
    lines = dict.fromkeys([*insight(found), *named, *odd, *([WITHOUT.format("votes")] if odd else [])])
    told = "".join(f"<li>{escape(each)}</li>" for each in lines)
    return _card("insight", "What follows", f'<ul class="told">{told}</ul>')


def _matrix(found: Leaderboard) -> str:
    """Return the matrix of wins of the first models, shaded by the share of votes; "" for a single model."""
    order = found.order.tolist()[:MATRIX]
    n = len(order)
    if n < 2:
        return ""
    wins, ties = found.wins, found.ties
    rows = []
    for place, i in enumerate(order, 1):
        cells = []
        for j in order:
            met = int(wins[i, j] + wins[j, i] + ties[i, j])
            if i == j:
                cells.append('<td class="self">·</td>')
            elif not met:
                cells.append('<td class="self"><span title="they never met">–</span></td>')
            else:
                part = (wins[i, j] + 0.5 * ties[i, j]) / met
                told = f"{wins[i, j]:,} won, {ties[i, j]:,} tied, {wins[j, i]:,} lost"
                cells.append(f'<td class="{_shade(part)}" title="{told}">{100.0 * part:.0f}</td>')
        rows.append(f'<tr><th scope="row">{place} {_name(found, i, 30)}</th>{"".join(cells)}</tr>')
    head = "".join(
        f'<th scope="col"><abbr title="{_name(found, i)}">{place}</abbr></th>' for place, i in enumerate(order, 1)
    )
    of = f", the first {n}" if n < len(found.models) else ""
    title = f"Who beats whom{of}"
    what = "Percent of the votes about two models that the model of the row won against that of the column"
    head = f'<tr><th scope="col" class="name">Model</th>{head}</tr>'
    table = f'<table class="matrix"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    told = f'<p class="muted small">{what}; a tie is half a win.</p>'
    return _card("wins", title, told, _scrolled(table, title))


def _shade(part: float) -> str:
    step = min(math.ceil(abs(part - 0.5) * 2.0 * _STEPS - 1e-9), _STEPS)
    return "" if step == 0 else f"{'u' if part > 0.5 else 'd'}{step}"


def _effects(found: Leaderboard) -> str:
    """Return the effects of covariates and of the side shown, drawn on one scale; "" if there are none."""
    both: Sequence[Effect] = (*found.effects, *([found.side] if found.side is not None else []))
    if not both:
        return ""
    low, high = min(0.0, *(each.low for each in both)), max(0.0, *(each.high for each in both))
    rows = []
    for each in both:
        name = "Shown first" if each.name == "side" else f"{one_line(each.name)}, {each.unit:.4g} more"
        told = f"{each.points:+.1f} points, 90 % interval {each.low:+.1f} to {each.high:+.1f}"
        drawn = _interval(each.low, each.points, each.high, low, high, told)
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th><td>{each.points:+.1f}</td><td class="draw">{drawn}</td>'
            f"<td>{each.low:+.1f} to {each.high:+.1f}</td></tr>"
        )
    head = '<tr><th scope="col" class="name">Of the answer</th><th scope="col">Points</th><th scope="col"></th>'
    table = f'<table><thead>{head}<th scope="col">90 % interval</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    title = "What else sways a vote"
    what = "Points that an answer gains by it. Scores are those at equal values, with neither answer shown first."
    return _card("effects", title, f'<p class="muted small">{what}</p>', _scrolled(table, title))


def _by_category(found: Leaderboard) -> str:
    """Return a table of the rank and score of each model in each category; "" without categories."""
    if not found.categories:
        return ""
    parts = [{row.item: row for row in board.board.ranking} for _, board in found.categories]
    rows = []
    for row in found.board.ranking[:MOST]:
        cells = "".join(
            "<td>–</td>" if at is None else f"<td>{at.place} <span class='muted'>{at.score:,.0f}</span></td>"
            for at in (row, *(part.get(row.item) for part in parts))
        )
        rows.append(f'<tr><th scope="row">{escape(one_line(row.item, 60))}</th>{cells}</tr>')
    names = "".join(
        f'<th scope="col"><a href="#category-{k}">{escape(one_line(name))}</a></th>'
        for k, (name, _) in enumerate(found.categories)
    )
    head = f'<tr><th scope="col" class="name">Model</th><th scope="col">All</th>{names}</tr>'
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    told = "The rank, and the score. In each category the average model has 1,000, unless a model has a fixed score."
    return _card("by-category", "By category", f'<p class="muted small">{told}</p>', _scrolled(table, "By category"))


def _category(name: str, board: Leaderboard, k: int, ends: tuple[float, float]) -> str:
    title = f"{one_line(name)}: {board.board.answers:,} vote{'' if board.board.answers == 1 else 's'}"
    head = f'<h2 id="category-{k}-title">{escape(title)}</h2><p>{_verdict(board)}</p>'
    return (
        f'<section class="category" id="category-{k}" aria-labelledby="category-{k}-title">{head}'
        f"{board_section(board, title, ends)}</section>"
    )


def _small_print(found: Leaderboard) -> str:
    told = " ".join(escape(each) for each in how(found))
    return f'<footer class="muted small"><p>{told}</p><p>Made by heedful.</p></footer>'
