"""What the documents say runs, and prints what they say; every learner has its row."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.learners.registry import find_learners
from heedful.papers import FIGURES

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "start").glob("*.md"))]
OTHERS = [
    *(path for path in ROOT.glob("*.md") if path.name != "README.md"),
    *(path for path in (ROOT / "docs").glob("*/*.md") if path.parent.name != "start"),
]
"""Pages whose examples other tests run, or that have none."""


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language ("" for none)."""
    found: list[str] = []
    body: list[str] = []
    inside: str | None = None
    for line in page.read_text().splitlines(keepends=True):
        if line.startswith("```"):
            if inside is None:
                inside, body = line[3:].strip(), []
            else:
                if inside == language:
                    found.append("".join(body))
                inside = None
        else:
            body.append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_python_example_prints_what_it_says(page: Path) -> None:
    """The examples of a page are one program; `print(...)  # text` prints text."""
    program = "\n".join(blocks(page, "python"))
    expected = re.findall(r"^print\(.*\)  # (.*)$", program, re.M)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {"__name__": "example"})
    assert out.getvalue().splitlines() == expected


def test_the_pages_have_examples() -> None:
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 4


def test_the_learner_of_contributing_is_short() -> None:
    """That it keeps every promise is checked with the commands of the page (`test_first_lines.py`)."""
    [source] = blocks(ROOT / "CONTRIBUTING.md", "python")
    inside = re.search(r"class State.*", source, re.S)
    assert inside is not None
    assert len([line for line in inside[0].splitlines() if line.strip()]) <= 30


def test_every_learner_has_its_row() -> None:
    table = (ROOT / "docs" / "learners.md").read_text()
    for name, cls in find_learners().items():
        assert re.search(rf"^\| `{re.escape(name)}` \| `{cls.__name__}` \|", table, re.M), name


def commands() -> list[list[str]]:
    """Every `heedful ...` line of the pages, as words."""
    lines = [
        line for page in [*PAGES, ROOT / "CONTRIBUTING.md"] for block in blocks(page, "") for line in block.splitlines()
    ]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("heedful ")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_of_the_pages_exists_with_its_options(words: list[str]) -> None:
    name = [w for w in words[:2] if not w.startswith("-") and "." not in w and "/" not in w]
    name = name[:2] if name[0] == "simulate" else name[:1]
    told = help_of(*name)
    for option in (w for w in words if w.startswith("--")):
        assert option in told


@cache
def help_of(*name: str) -> str:
    from heedful.cli import app

    result = CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return result.output


def test_what_the_guide_has_sections_of_are_commands() -> None:
    """The list of all is written from the code."""
    from heedful.cli import COMMANDS

    titles = re.findall(r"^## ([a-z ]+):", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert len(titles) > 15
    assert [title for title in titles if title not in COMMANDS] == []


def test_what_the_pages_show_of_the_examples_is_what_they_are() -> None:
    assert blocks(ROOT / "docs" / "commands.md", "csv")[0] == (ROOT / "examples" / "cars.csv").read_text()
    assert blocks(ROOT / "CONTRIBUTING.md", "python") == [(ROOT / "examples" / "mine.py").read_text()]
    [log] = blocks(ROOT / "docs" / "start" / "search.md", "json")
    assert (ROOT / "examples" / "clicks.jsonl").read_text().startswith(log)


def test_benches_that_are_named_are_there() -> None:
    for page in sorted((ROOT / "docs").glob("*.md")):
        for name in re.findall(r"\bbench/[\w/]+\.py\b", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, *OTHERS]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def named_in(source: str) -> set[str]:
    """Functions, classes and methods (as CLASS.NAME) of a module, and what it assigns at its top."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{each.name}" for each in functions}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.slow
def test_what_the_architecture_names_is_there() -> None:
    """Files of the source with what stands in them, packages, templates, tests."""
    page, src = (ROOT / "docs" / "architecture.md").read_text(), ROOT / "src" / "heedful"
    named = re.findall(r"`([\w./]+\.(?:py|html))(?:::([\w.]+))?`", page)
    assert len(named) > 60
    for file, name in named:
        path = next((base / file for base in (src, src / "server", ROOT) if (base / file).exists()), None)
        assert path is not None, f"there is no {file}"
        assert not name or name in named_in(path.read_text()), f"there is no {name} in {file}"
    table = page.partition("## The map")[2].partition("```")[0]
    packages = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert packages == {path.name for path in src.iterdir() if path.is_dir() and path.name != "__pycache__"}
    for life in ("decision", "feedback"):  # short enough to be kept in mind
        stations = page.partition(f"## The life of a {life}")[2].partition("\n## ")[0]
        assert max(map(int, re.findall(r"^(\d+)\. ", stations, re.M))) <= 15


def test_the_page_of_the_papers_names_each() -> None:
    page = (ROOT / "docs" / "papers.md").read_text()
    for paper in {name.partition("/")[0] for name in FIGURES}:
        assert f"({paper}.md)" in page
    shown = re.findall(r"`([\w/]+)`\)\n\n!\[[^\]]+\]\(pictures/papers/([\w-]+)\.webp\)", page)
    assert len(shown) >= 8
    assert {name.replace("/", "-") for name, _ in shown} == {file for _, file in shown}
    assert {name for name, _ in shown} <= FIGURES.keys()


def test_the_readme_is_short_and_its_figures_are_those_of_the_benchmarks() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 120
    told = re.findall(
        r"\*\*(0\.\d+)\*\* \| (0\.\d+) \(([^)]+)\) \| (?:(.+), (0\.\d+), )?[a-z ]*is ([\d.]+) times", readme
    )
    found = json.loads((ROOT / "bench" / "results" / "peers.json").read_text())["comparisons"]
    for (own, next_best, peer, fast, of_fast, times), (name, figure, best) in zip(
        told, [("ranking", "regret", min), ("arms", "reward devices 1", max)], strict=True
    ):
        rows = {row["entrant"]: row for row in found[name]["rows"]}
        assert own == f"{rows[found[name]['reference']][figure][0]:.3f}"
        others = {entrant: row[figure][0] for entrant, row in rows.items() if not entrant.startswith("heedful")}
        assert peer == best(others, key=lambda entrant: others[entrant])
        assert next_best == f"{others[peer]:.3f}"
        assert not fast or of_fast == f"{others[fast]:.3f}"
        assert times == f"{rows[fast or peer]['times']:.2g}"


def test_what_is_said_of_trees_stands_in_the_benchmarks_of_clicks() -> None:
    row = (ROOT / "docs" / "from" / "lambdarank.md").read_text().partition("## Better here")[2]
    clicks = (ROOT / "docs" / "benchmarks.md").read_text().partition("\n## Clicks\n")[2].partition("\n## ")[0]
    table = next(part for part in clicks.split("\n\n") if part.startswith("|"))
    figures = re.findall(r"(?<!\d)\.\d{3}\b", row)
    assert len(figures) == 5
    assert [each for each in figures if each not in table] == []
