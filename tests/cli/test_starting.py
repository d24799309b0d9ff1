"""What a command imports: the module that it is in, and of the rest only what its answer takes."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import heedful.cli
from heedful.cli import COMMANDS
from loops import small_loop

FOLDER = Path(heedful.cli.__file__).parent
MODULES = {each.where.partition(":")[0] for each in COMMANDS.values() if each.where}
"""The modules that commands are in."""


def imported(*line: str, cwd: Path | None = None) -> set[str]:
    """The modules that a process has which ran this command line to a good end."""
    program = (
        "import json, sys\n"
        "from heedful.cli import main\n"
        f"sys.argv = ['heedful', *{list(line)!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('\\n', json.dumps(sorted(sys.modules)))"
    )
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=cwd)
    return set(json.loads(got.stdout.splitlines()[-1]))


def commands_in(loaded: set[str]) -> set[str]:
    return {module for module in MODULES if f"heedful.cli.{module}" in loaded}


def packages(loaded: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in loaded}


def reached(module: str) -> set[str]:
    """The modules of the command line that come with one of them: what it imports, and what that imports, anywhere."""
    found, left = set[str](), {module}
    while left:
        found |= left
        more = set[str]()
        for name in left:
            for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "heedful.cli":
                    more |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("heedful.cli."):
                    more.add((node.module or "").removeprefix("heedful.cli."))
        left = more - found
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_command_imports_another(module: str) -> None:
    assert reached(module) & MODULES == {module}


@pytest.mark.slow
@pytest.mark.parametrize("line", [("--help",), ("--version",), ("simulate", "--help"), ("keys", "--help")])
def test_a_list_of_commands_imports_none_of_them(line: tuple[str, ...]) -> None:
    loaded = imported(*line)
    assert "typer" in loaded
    assert commands_in(loaded) == set()
    assert not {"numpy", "msgspec", "sqlite3", "pydantic", "pydantic_settings"} & packages(loaded)
    ours = {name for name in loaded if name.startswith("heedful.") and not name.startswith("heedful.cli")}
    assert ours == {"heedful.experiments", "heedful.experiments.registry"}  # which lists commands, too


@pytest.mark.slow
def test_the_help_of_a_command_imports_its_module_alone() -> None:
    loaded = imported("decide", "--help")
    assert commands_in(loaded) == {"decide"}
    heavy = {"numpy", "pydantic", "sqlite3", "msgspec", "rich.progress", "heedful.loop", "heedful.io", "heedful.data"}
    assert not heavy & loaded
    assert commands_in(imported("simulate", "ordinal", "--help")) == {"simulate"}


@pytest.mark.slow
def test_deciding_imports_what_decides(tmp_path: Path) -> None:
    """The learner of the loop, and neither the others, nor what reports, explains or compiles."""
    small_loop(tmp_path / "cars.heedful", learner="posterior").close()
    loaded = imported("decide", "cars", "--show", "3", "--json", cwd=tmp_path)
    assert commands_in(loaded) == {"decide"}
    unused = {"numba", "llvmlite", "scipy", "sklearn", "pandas", "matplotlib", "rich", "pydantic"}
    assert not unused & packages(loaded)
    learners = {name.rpartition(".")[2] for name in loaded if name.startswith("heedful.learners.")}
    others = {"alb", "bmf", "pts", "nmf_bandit", "preference_gp", "collaborative_gp", "dueling", "ranking_svm"}
    assert not ({"perceptron", "perceptrons"} | others) & learners
    assert "heedful.learners.coactive.swaps" in loaded
    unused = {
        "inference",
        "boards",
        "worlds",
        "io",
        "papers",
        "loop.report",
        "loop.why",
        "loop.evaluate",
    }
    assert not {f"heedful.{name}" for name in unused} & loaded


@pytest.mark.parametrize("path", COMMANDS)
def test_what_the_list_says_of_a_command_is_a_sentence_with_an_example(path: str) -> None:
    each = COMMANDS[path]
    assert each.help.endswith((".", "?"))
    assert len(each.help) < 120
    if each.where:
        assert each.example.startswith(f"heedful {path} ") or each.example == f"heedful {path}"
    else:
        assert [other for other in COMMANDS if other.startswith(f"{path} ")]


@pytest.mark.slow
def test_what_was_imported_is_not_searched_for_cycles_when_a_process_ends() -> None:
    """Its collector has nothing left to look at; in a process that only imports the command line nothing is changed."""
    program = (
        "import atexit, gc, sys; from heedful.cli import main\n"
        "print(gc.get_freeze_count(), len(gc.get_objects()) > 10_000)\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000, len(gc.get_objects()) < 1_000))\n"
        "sys.argv = ['heedful', '--version']; main()"
    )
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = got.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("0 True", "True True")
