"""Imports run one way, and what is heavy is imported where it is used. Read off the syntax trees."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import heedful

SRC = Path(heedful.__file__).parent
FILES = {".".join(("heedful", *p.relative_to(SRC).with_suffix("").parts)): p for p in SRC.rglob("*.py")}

# What each package may import of ours, besides itself; from the ground up.
MAY = {
    "core": "jit",
    "storage": "core",
    "jit": "core",
    "data": "core",
    "features": "core data",
    "spaces": "core jit",
    "worlds": "core jit spaces",
    "inference": "core jit data",
    "learners": "core jit spaces worlds inference",
    "evaluation": "core jit",
    "results": "core data evaluation",
    "boards": "core jit data features inference results",
    "diagnostics": "core jit spaces learners",
    "experiments": "core jit data spaces worlds learners",
    "papers": "core jit data spaces worlds inference learners diagnostics experiments",
    "estimators": "core jit spaces worlds inference learners",
    "loop": "results boards evaluation core jit storage data features spaces worlds inference learners",
    "studies": "core storage data features results boards loop",
    "io": "core storage data evaluation features spaces results loop",
    "testing": "core data results loop io",
    "client": "core data results",
    "server": "core storage data features learners results loop studies io",
    "cli": "core jit storage data features spaces worlds inference learners experiments papers results boards "
    "loop studies io client server",
}
# Imported at the top of a module only where named; elsewhere inside the function that needs it.
HEAVY = {
    "numba": {"heedful.jit.cache", "heedful.jit.overloads", "heedful.jit.whole"},
    "llvmlite": set(),
    "scipy": set(),
    "matplotlib": set(),
    "vega_datasets": set(),
    "psycopg": set(),
    "ray": set(),
    "pyarrow": set(),
    "pandas": set(),
    "polars": set(),
    "sklearn": {
        f"heedful.estimators.{name}" for name in ("labels", "base", "preferences", "ranking")
    },  # which the package imports when asked
}
HEAVY |= {"typer": {"heedful.cli"}, "rich": {"heedful.cli"}, "safetensors": set()}
HEAVY |= {"starlette": {"heedful.server"}, "uvicorn": {"heedful.server"}}
HEAVY |= {
    "prometheus_client": set(),
    "uvloop": set(),
    "httpx": set(),
    "jinja2": set(),
    "PIL": set(),
    "segno": set(),
    "mcp": set(),
    "pydantic": set(),
    "pytest": set(),
}


def read_imports(module: str) -> Iterator[tuple[str, bool]]:
    """(what is imported, whether at the top of the module)."""
    tree = ast.parse(FILES[module].read_text())
    top = {id(node) for node in tree.body}
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if node.module == "heedful" or name in FILES else node.module or ""), id(node) in top


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a module, also inside of others; expressions, of which there are ten times as many, import
    nothing."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inside in getattr(node, field, ()):
            yield inside
            yield from statements(inside)


@pytest.fixture(scope="module")
def imports() -> dict[str, list[tuple[str, bool]]]:
    """Of each module what it imports, and whether at its top."""
    return {module: list(read_imports(module)) for module in sorted(FILES)}


def among(module: str, places: Iterable[str]) -> bool:
    """Whether a module is one of these, or inside of one."""
    return any(f"{module}.".startswith(f"{place}.") for place in places)


def test_the_root_holds_packages_and_nothing_loose() -> None:
    assert {p.name for p in SRC.iterdir() if p.is_file()} == {"__init__.py", "py.typed"}
    assert {p.name for p in SRC.iterdir() if p.is_dir() and p.name != "__pycache__"} == set(MAY)


Imports = dict[str, list[tuple[str, bool]]]


def test_imports_run_one_way(imports: Imports) -> None:
    wrong = []
    for module, names in imports.items():
        package = module.split(".")[1]
        allowed = MAY if package == "__init__" else {package, "__version__", *MAY[package].split()}
        for name, _ in names:
            top, *rest = name.split(".")
            if top == "heedful" and rest[0] not in heedful.__all__ and rest[0] not in allowed:
                wrong.append(f"{module} imports {name}; it may import {allowed}")
    assert wrong == []


def test_no_more_than_two_files_import_one_another(imports: Imports) -> None:
    """In a circle, counting what is imported in a function or for types alone: one file is understood after another."""
    of: dict[str, set[str]] = {module: set() for module in imports}
    for module in imports:
        for name in {name for name, _ in imports[module] if name.startswith("heedful.")}:
            files = [file for file in (name, f"{name}.__init__") if file in imports]
            of[module] |= {*files} or {"heedful.__init__"}  # of the root something is imported, such as its version
    reached = {module: reach(of, module) for module in imports}
    circles = {frozenset({other for other in reached[module] if module in reached[other]}) for module in imports}
    assert {circle for circle in circles if len(circle) > 2} == set()


def reach(of: dict[str, set[str]], module: str) -> set[str]:
    """What a module imports, and what that imports, and so on."""
    found, left = set[str](), [module]
    while left:
        new = of[left.pop()] - found
        found |= new
        left += new
    return found


def test_what_is_heavy_is_imported_where_it_is_used(imports: Imports) -> None:
    wrong = []
    for module, names in imports.items():
        for name, at_top in names:
            package = name.split(".")[0]
            if at_top and package in HEAVY and not among(module, HEAVY[package]):
                wrong.append(f"{module} imports {name} at its top")
    assert wrong == []


def test_who_names_the_network_only_storage_the_database_and_nothing_unpickles(imports: Imports) -> None:
    for module, names in imports.items():
        for name, _ in names:
            assert name.split(".")[0] not in {"pickle", "shelve", "marshal", "dill", "joblib"}, module
            if module != "heedful.storage.sqlite":
                assert name.split(".")[0] != "sqlite3", f"{module}: only storage/sqlite.py touches a database"
            if not among(module, ("heedful.data", "heedful.server", "heedful.client")):
                assert name.split(".")[0] not in {"socket", "urllib", "http", "requests", "httpx"}, module


@pytest.mark.slow
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
    heavy = {"numba", "llvmlite", "scipy", "typer", "rich", "matplotlib", "safetensors", "ray", "psycopg"}
    assert not heavy & set(out)


def test_the_first_example_of_the_package_runs() -> None:
    results = doctest.testmod(heedful)
    assert results.attempted == 5
    assert results.failed == 0


def test_a_long_file_says_why_it_is_long() -> None:
    for module, path in FILES.items():
        text = path.read_text()
        if len(text.splitlines()) > 400:
            said = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
            assert "The file is long because" in said, f"{module}: over 400 lines: its docstring says no reason"


def test_learners_by_name_and_nothing_else() -> None:
    from heedful.learners.coactive.second_order import SecondOrderPerceptron

    assert heedful.SecondOrderPerceptron is SecondOrderPerceptron
    assert heedful.team_draft.__name__ == "team_draft"
    for wrong in ("Perceptrom", "np", "_private"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(heedful, wrong)


# ---------------------------------------------------------------------------- kinds of feedback

HOUSE = ("cli", "client", "core", "diagnostics", "experiments", "features", "io", "loop", "server", "studies")
"""What stands around the learners: of the kinds of feedback it asks the interaction."""
OF_ONE_KIND = (
    "loop/interactions/",
    "experiments/definitions/",
    *(f"experiments/{name}.py" for name in ("coactive", "comparisons", "movielens", "ordinal", "ratings", "registry")),
)
"""What is about one kind: the interactions, an experiment's definition and its setting, and the list of experiments."""
KIND = re.compile(
    r"\b(coactive(?! learning)|ordinal|pairwise(?!-))\b|\bloops? of (rankings|grades|ratings|choices|routes)\b"
    r"|\bloops? that shows? one item\b"
    r"|\b(grading|rating) loops?\b|\bpredicts? grades\b",
    re.IGNORECASE,
)
"""A kind of feedback in words."""
OF_KINDS = {"grades", "ratings", "choices", "chances", "cost_weight"}
"""What only loops of one kind have: of settings, decisions, reports."""
LOOPS = re.compile(r"(^|_)(loop|settings|projection|decision|record|report|found|said|told)$")
"""What such a thing may be an attribute of."""
OWN = {"is_grading", "GradingModel", "RatingModel", "ChoiceModel", "RouteModel"}


def kinds_named(path: Path) -> set[str]:
    """How a file names kinds of feedback: in its words, in the names it uses."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {each.group() for each in KIND.finditer(node.value)}
            found |= {node.value} & OF_KINDS
        elif isinstance(node, ast.Attribute):
            of = getattr(node.value, "attr", getattr(node.value, "id", ""))
            found |= {f".{node.attr}"} if node.attr in OF_KINDS and LOOPS.search(of) else set()
            found |= {node.attr} & OWN
        elif isinstance(node, ast.Name | ast.alias):
            found |= {node.id if isinstance(node, ast.Name) else node.name} & OWN
        elif isinstance(node, ast.keyword | ast.arg):
            found |= {str(node.arg)} & OF_KINDS
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found |= {node.target.id} & OF_KINDS
    return found


def in_the_house() -> list[str]:
    files = [path.relative_to(SRC) for part in HOUSE for path in (SRC / part).rglob("*.py")]
    return sorted(path.as_posix() for path in files if not path.as_posix().startswith(OF_ONE_KIND))


@pytest.mark.slow  # by its time: it reads half of the source
def test_only_interactions_name_a_kind_of_feedback() -> None:
    named = {file: sorted(kinds_named(SRC / file)) for file in in_the_house()}
    assert {file: kinds for file, kinds in named.items() if kinds} == {}, "ask the interaction"


def test_the_words_of_every_kind_are_known_here() -> None:
    from heedful.loop.interactions.registry import interactions

    assert [kind.name for kind in interactions().values() if not KIND.search(kind.words.loop)] == []


def test_benches_import_what_is_there() -> None:
    """They are run by hand, now and then: what was renamed meanwhile is found here."""
    for path in sorted((SRC.parents[1] / "bench").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if ".venv" not in path.parts else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "heedful":
                package = importlib.import_module(str(node.module))
                for name in [each.name for each in node.names if not hasattr(package, each.name)]:
                    assert find_spec(f"{node.module}.{name}"), f"{path.name}: {node.module} has no {name}"
