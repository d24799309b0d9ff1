"""The command itself: help, version, and a real process from one end to the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import done, heedful

from heedful import __version__, cli


def process(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in a process of its own."""
    program = shutil.which("heedful", path=str(Path(sys.executable).parent))
    assert program, "the entry point is not installed"
    return subprocess.run(
        [program, *map(str, args)], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def test_version() -> None:
    got = heedful("--version")
    assert (got.code, got.out, got.err) == (0, f"heedful {__version__}\n", "")


def test_heedful_alone_is_its_help() -> None:
    got = done("")
    assert got.out == heedful("--help").out
    places = [got.out.index(f"│ {command.split()[0]} ") for command in cli.COMMANDS]
    assert places == sorted(places)  # in the order in which somebody new needs them


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name, entry in cli.COMMANDS.items() if entry.where])
def test_every_help_has_its_examples_and_json(command: str) -> None:
    """Except where nothing is printed on stdout, or a protocol."""
    out = done(f"{command} --help").out
    assert heedful(f"{command} -h").out == out
    lines = [line.strip() for line in out.splitlines()]
    assert {f"Example: {each}" for each in cli.COMMANDS[command].example.splitlines()} <= set(lines)
    assert ("--json" in out) == (command not in ("serve", "mcp", "examples"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("simulat", "heedful: No such command 'simulat'. Did you mean 'simulate'? Try: heedful --help\n"),
        ("simulate letor", "heedful: Missing argument 'files'. Try: heedful simulate letor --help\n"),
    ],
)
def test_a_slip_on_the_line_is_a_sentence(line: str, told: str) -> None:
    got = heedful(line)
    assert (got.code, got.out) == (2, "")
    assert got.err.lower() == told.lower()


def test_examples_are_written_once_and_never_over_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(__file__).resolve().parents[2] / "examples"
    expected = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.suffix != ".pyc"}
    assert "heedful init cars examples/cars.csv" in heedful("examples").err
    Path("examples/answers/birch.csv").unlink()
    assert heedful("examples").err.startswith(f"heedful: wrote 1 of {len(expected)} files")
    assert {path.relative_to("examples"): path.read_bytes() for path in Path("examples").rglob("*.*")} == expected
    Path("examples/arena.csv").unlink()
    Path("examples/cars.csv").write_text("mine")
    got = heedful("examples")
    assert (got.code, got.out) == (2, "")
    assert got.err.startswith("heedful: examples/cars.csv: expected none, or the one of this version, got another")
    assert (Path("examples/cars.csv").read_text(), Path("examples/arena.csv").exists()) == ("mine", False)


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.learners.registry.find_learners", interrupted)
    got = heedful("learners")
    assert (got.code, got.err) == (130, "heedful: stopped\n")


def test_a_warning_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    monkeypatch.setattr(
        "heedful.learners.registry.find_learners", lambda: warnings.warn("mind the step", stacklevel=2) or {}
    )
    got = heedful("learners --json")
    assert (got.json, got.err) == ([], "heedful: mind the step\n")


@pytest.mark.slow
def test_a_process_of_its_own_prints_json_and_ends_well(letor_file: Path) -> None:
    got = process("simulate", "letor", letor_file, "--interpreted", "--json")
    assert (got.returncode, got.stderr) == (0, "")
    assert json.loads(got.stdout) != heedful("simulate letor {} --interpreted --json --seeds 2", letor_file).json
    (mine,), (theirs,) = json.loads(got.stdout), heedful("simulate letor {} --interpreted --json", letor_file).json
    assert mine | {"rounds_per_second": 0} == theirs | {"rounds_per_second": 0}


@pytest.mark.slow
def test_a_process_of_its_own_ends_badly_in_a_sentence() -> None:
    got = process("simulate", "letor", "none.txt")
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.startswith("heedful: none.txt: no such file")
    assert got.stderr.count("\n") == 1


@pytest.mark.slow
def test_compiled_code_of_ones_own_learner_is_found_again(letor_file: Path, tmp_path: Path) -> None:
    own = tmp_path / "kind.py"
    own.write_text(
        "from typing import Any, NamedTuple\n"
        "import numpy as np\n"
        "class Kind(NamedTuple):\n"
        "    space: Any\n"
        "    def init(self, rng): return 0\n"
        "    def propose(self, state, x, rng): return np.arange(x.shape[0])\n"
        "    def update(self, state, x, y, feedback): return state + 1\n"
    )
    args = ("simulate", "letor", letor_file, "-l", f"{own}:Kind", "--user", "noisy", "--json", "--compiled")
    cache = tmp_path / "cache"
    first = process(*args, HEEDFUL_CACHE_DIR=str(cache))
    assert (first.returncode, first.stderr) == (0, "")
    files = {file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert [file for file in files if file.suffix == ".nbc"]
    second = process(*args, HEEDFUL_CACHE_DIR=str(cache))
    assert second.stderr == ""
    assert {
        file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file() and file.suffix != ".pyc"
    } == files
    interpreted = process(*args[:-1], "--interpreted")
    regrets = [json.loads(got.stdout)[0]["regret"] for got in (first, second, interpreted)]
    assert regrets[0] == regrets[1] == regrets[2]
