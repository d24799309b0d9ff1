"""The figures of bench/results/peers.json as tables."""

from __future__ import annotations

from statistics import mean, median, stdev
from typing import Any, NamedTuple

Figures = dict[str, Any]
BOUNDS = (
    "the true probabilities", "the true utilities", "a constant rank", "one at random", "the site's order",
    "a route that does nothing",
)  # fmt: skip
"""Rows that no learner competes with."""


class Table(NamedTuple):
    """A title with a line below it, the names of columns, and rows of texts."""

    title: str
    below: str
    columns: list[str]
    rows: list[list[str]]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean, and its standard error over the runs (0 of one)."""
    return mean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def row_of(runs: list[Figures], reference: list[Figures], columns: dict[str, str]) -> Figures:
    """Of the runs of one entrant, a run a seed: quality with standard error, speed, speed over the reference's, MB."""
    speed = [run["rounds"] / run["seconds"] for run in runs]
    theirs = [run["rounds"] / run["seconds"] for run in reference]
    return {
        **{name: mean_and_error([run[name] for run in runs]) for name in columns if name in runs[0]},
        "per second": median(speed), "times": median(a / b for a, b in zip(speed, theirs)),
        "MB": median(run["MB"] for run in runs),
    }  # fmt: skip


def number(value: float) -> str:
    """Three digits that count, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.3g}"


def quality(name: str, value: tuple[float, float], best: bool) -> str:
    """A mean with its standard error; times alone; in bold where it is the best."""
    text = number(value[0]) if name.startswith("ms ") else f"{value[0]:.3f}"
    text = f"**{text}**" if best else text
    return text if name.startswith("ms ") or value[1] == 0.0 else f"{text} ± {value[1]:.3f}"


def comparison_table(found: Figures) -> Table:
    """A comparison: who, how, how well (the best in bold), how fast, next to heedful's reference (1), and memory."""
    names, rows = found["columns"], found["rows"]
    run = [row for row in rows if "missing" not in row and row["entrant"] not in BOUNDS]
    best = {
        name: (max if name.startswith(("NDCG", "reward")) else min)(
            (row[name][0] for row in run if name in row), default=None
        )
        for name in names
    }
    columns = ["", "how", *names.values(), f"{found['unit']} a second", f"`{found['reference']}` = 1", "MB"]
    lines = []
    for row in rows:
        setting = ", ".join(f"{name} {value}" for name, value in row.get("setting", {}).items())
        how = f"{row['used']} ({setting})" if setting else row["used"]
        if "missing" in row:
            lines.append([row["entrant"], f"not installed: {row['missing']}", *[""] * (len(names) + 3)])
            continue
        bound = row["entrant"] in BOUNDS
        cells = [
            quality(n, row[n], not bound and row[n][0] == best[n]) if n in row and not (bound and n[:2] == "ms") else ""
            for n in names
        ]
        speed = [number(row["per second"]), number(row["times"]), number(row["MB"])]
        lines.append([row["entrant"], how, *cells, *([""] * 3 if bound else speed)])
    many = f"{found['rounds']:,} {found['of']} a run, {found['seeds']} run{'s' * (found['seeds'] > 1)}"
    return Table(found["title"], f"{found['stream']}; {many}", columns, lines)


def http_table(found: Figures) -> Table:
    """HTTP: requests a second and processor time each, medians of the turns."""
    rows = []
    for name, turns in found["turns"].items():
        share = median(a["per_second"] / b["per_second"] for a, b in zip(turns, next(iter(found["turns"].values()))))
        rate, cpu = (median(turn[which] for turn in turns) for which in ("per_second", "cpu_ms_per_request"))
        rows.append([name, f"{rate:,.0f}", number(share), number(cpu)])
    columns = ["", "answers a second", "of a route that does nothing", "processor ms each"]
    return Table(found["title"], found["stream"], columns, rows)


def tables(results: Figures) -> list[Table]:
    """All of them, in the order in which they were made."""
    return [http_table(each) if "turns" in each else comparison_table(each) for each in results["comparisons"].values()]


def markdown(table: Table) -> str:
    """A table as Markdown, without its title."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in cells) for cells in lines)
