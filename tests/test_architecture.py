"""Imports run one way, and what is heavy is imported where it is used. Read off the syntax trees."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful

SRC = Path(heedful.__file__).parent
FILES = {".".join(("heedful", *p.relative_to(SRC).with_suffix("").parts)): p for p in SRC.rglob("*.py")}

# What each part may import of ours, by prefix. A part not named here fails.
MAY: dict[str, tuple[str, ...]] = {
    "heedful": ("heedful.fold", "heedful.spaces", "heedful.learners"),
    "heedful.kernel": (),
    "heedful.blas": ("heedful.kernel",),
    "heedful.doors": ("heedful.kernel",),
    "heedful.fold": ("heedful.kernel", "heedful.doors", "heedful.compile"),
    "heedful.compile": ("heedful.kernel", "heedful.lowering", "heedful.fold", "heedful.__version__"),
    "heedful.lowering": ("heedful.kernel",),
    "heedful.spaces": ("heedful.kernel", "heedful.doors"),
    "heedful.learners": ("heedful.kernel", "heedful.doors", "heedful.blas", "heedful.spaces"),
    "heedful.worlds": ("heedful.kernel", "heedful.doors", "heedful.spaces", "heedful.worlds"),
    "heedful.data": ("heedful.data",),
    "heedful.snapshot": ("heedful.fold",),
    "heedful.checks": ("heedful.kernel", "heedful.fold", "heedful.snapshot"),
    "heedful.naming": ("heedful.learners", "heedful.worlds.users", "heedful.spaces", "heedful.fold"),
    "heedful.experiment": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.fold",
        "heedful.spaces",
        "heedful.naming",
        "heedful.worlds",
        "heedful.data",
    ),
    "heedful.cli": ("heedful",),
}
# Imported at the top of a module only where named; elsewhere inside the function that needs it.
HEAVY = {
    "numba": {"heedful.compile", "heedful.lowering"},
    "llvmlite": set(),
    "scipy": set(),
    "matplotlib": set(),
    "vega_datasets": set(),
}
HEAVY |= {"typer": {"heedful.cli"}, "rich": {"heedful.cli"}, "safetensors": set()}


def part(module: str) -> str:
    """The longest prefix of a module's name that the table knows."""
    words = module.split(".")
    for n in range(len(words), 0, -1):
        if ".".join(words[:n]) in MAY and (n > 1 or len(words) == 1 or words[1:] == ["__init__"]):
            return ".".join(words[:n])
    return ""


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """(what is imported, whether at the top of the module)."""
    tree = ast.parse(FILES[module].read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if node.module == "heedful" else node.module or ""), id(node) in top


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_run_one_way(module: str) -> None:
    allowed = MAY[part(module)]
    for name, _ in imports(module):
        if name.split(".")[0] == "heedful":
            assert name.startswith(allowed), f"{module} imports {name}; it may import {allowed}"


@pytest.mark.parametrize("module", sorted(FILES))
def test_what_is_heavy_is_imported_where_it_is_used(module: str) -> None:
    for name, at_top in imports(module):
        package = name.split(".")[0]
        if at_top and package in HEAVY:
            assert part(module) in HEAVY[package], f"{module} imports {name} at its top"


def test_only_the_data_folder_names_the_network_and_nothing_unpickles() -> None:
    for module in FILES:
        for name, _ in imports(module):
            assert name.split(".")[0] not in {"pickle", "shelve", "marshal", "dill", "joblib"}, module
            if part(module) != "heedful.data":
                assert name.split(".")[0] not in {"socket", "urllib", "http", "requests", "httpx"}, module


def test_importing_heedful_is_light() -> None:
    """Neither numba nor scipy, nor anything of the command line, comes with `import heedful` or a session."""
    program = (
        "import sys, heedful\n"
        "s = heedful.Session(heedful.PreferencePerceptron(2, heedful.Ranking(2)))\n"
        "s.propose([[1., 0.], [0., 1.]]); s.learn([1, 0])\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "heedful" in out
    assert not {"numba", "llvmlite", "scipy", "typer", "rich", "matplotlib", "safetensors"} & set(out)


def test_the_first_example_of_the_package_runs() -> None:
    results = doctest.testmod(heedful)
    assert results.attempted == 5
    assert results.failed == 0


def test_learners_by_name_and_nothing_else() -> None:
    from heedful.learners.second_order import SecondOrderPerceptron

    assert heedful.SecondOrderPerceptron is SecondOrderPerceptron
    assert heedful.team_draft.__name__ == "team_draft"
    for wrong in ("Perceptrom", "np", "_private"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(heedful, wrong)
