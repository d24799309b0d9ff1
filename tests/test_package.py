"""The wheel, in a clean environment outside the checkout: what a stranger gets who installs it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from alone import KEPT, alone
from heedful import __version__
from processes import ENDED, free_port

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, env=environment)
    assert not check or result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=ROOT)
    [built] = out.glob("heedful-*.whl")
    return built


@pytest.mark.slow
def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """It holds what the wheel is built from, and the tests, pages and locks."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    [packed] = tmp_path.glob("heedful-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=unpacked)
    [built] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(built) as theirs:
        assert {name: ours.read(name) for name in ours.namelist()} == {
            name: theirs.read(name) for name in theirs.namelist()
        }
    kept = ("Makefile", "README.md", "SECURITY.md", "requirements.lock", "docs/conf.py", "tests/test_package.py")
    assert [name for name in kept if not (unpacked / name).exists()] == []


@pytest.mark.slow
def test_the_wheel_is_small_and_brings_few_packages(wheel: Path, clean: Path) -> None:
    """Under 2 MB, and under 20 packages, heedful included."""
    assert wheel.stat().st_size < 2_000_000
    program = "from importlib.metadata import distributions; print(*{each.name for each in distributions()})"
    installed = {*run(clean, "-c", program).stdout.split()} - {"pip", "setuptools"}
    assert {"heedful", "numpy", "numba"} <= installed
    assert len(installed) < 20


def test_the_classifiers_name_this_python() -> None:
    """Others only after the tests ran on them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in named


def test_the_version_is_one() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    for name in ("package.json", "package-lock.json"):
        assert json.loads((ROOT / "clients" / "typescript" / name).read_text())["version"] == __version__


@pytest.fixture(scope="module")
def clean(wheel: Path) -> Path:
    """The python of an environment with the wheel and its locked core dependencies, and nothing else."""
    return installed(wheel, "requirements-core.lock")


def installed(wheel: Path, lock: str) -> Path:
    """The python of an environment with the wheel and the packages of a lock, and nothing else.

    Kept under a name made of their hashes: as long as nothing changed, the next run installs nothing.
    """
    digest = hashlib.sha256(sys.version.encode())
    digest.update((ROOT / lock).read_bytes())
    base = KEPT / digest.hexdigest()[:16]
    python = base / "bin" / "python"
    with alone("wheel"):  # another run may be about to do the same
        if not (base / "ready").exists():
            run(sys.executable, "-m", "venv", "--clear", base)
            run(python, "-m", "pip", "install", "-q", "--require-hashes", "-r", ROOT / lock)
            (base / "ready").touch()
        contents = hashlib.sha256()
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                contents.update(name.encode() + archive.read(name))
        installed = base / "installed"
        if not installed.exists() or installed.read_text() != contents.hexdigest():
            run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel)
            installed.write_text(contents.hexdigest())
    return python


def first_example() -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return str(blocks[0])


@pytest.mark.slow
def test_the_first_example_of_the_readme_runs(clean: Path, tmp_path: Path) -> None:
    """Twelve lines that rank, take a correction and rank better, and print what the README says."""
    example = first_example()
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 12
    expected = [m.strip() for m in re.findall(r"print\(.*\)\s*#\s*(.*)", example)]
    out = run(clean, "-c", example, cwd=tmp_path).stdout.splitlines()
    assert len(expected) >= 2
    assert out == expected
    where = run(clean, "-c", "import heedful; print(heedful.__file__)", cwd=tmp_path).stdout
    assert str(ROOT) not in where


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "start").glob("*.md")), ids=lambda page: page.stem)
def test_a_newcomer_types_what_the_page_says(wheel: Path, tmp_path: Path, page: Path) -> None:
    """Each line as it stands, in an empty folder, with the wheel and the packages of the extra `serve`.

    The first line installs heedful, which the environment did. Not typed are blocks below a comment that says why: data
    that the reader has to download, pictures of their own."""
    fences = re.findall(r"^(<!-- not typed: .+ -->\n\n)?```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    lines = [line for why, language, block in fences if not why and not language for line in block.splitlines()]
    assert re.fullmatch(r"pip install 'heedful\[[a-z,]+\]'", lines[0])
    assert lines[1] == "heedful examples"
    port, folder = str(free_port()), tmp_path / "empty"
    folder.mkdir()
    (tmp_path / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
    path = f"{installed(wheel, 'requirements-server.lock').parent}{os.pathsep}{os.environ['PATH']}"
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "HEEDFUL_DATABASE")
    environment = {k: v for k, v in os.environ.items() if k not in dropped}
    environment |= {"PATH": path, "HEEDFUL_SERVE_PORT": port, "CURL_HOME": str(tmp_path)}
    told = []
    with ExitStack() as servers:
        for line in lines[1:]:
            command = ["bash", "-c", f"exec {line}" if SERVES.match(line) else line.replace("8710", port)]
            if SERVES.match(line):
                servers.enter_context(running(command, folder, environment))
                continue
            got = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert got.returncode == 0, f"{line}\n{got.stdout}\n{got.stderr}"
            told.append(got.stdout)
    if page.stem == "language-models":  # the draft that the edit made warmer
        *_, first, _, then = told
        assert re.search(r"^ +1 +\S+ +brief ", first, re.M), first
        assert re.search(rf"^ +1 +\S+ +{'brief' if 'arm control' in then else 'warm'} ", then, re.M), then


SERVES = re.compile(r"heedful (serve|compare)\b")
"""What runs until Ctrl-C."""


@contextmanager
def running(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A command that serves pages, from when it has said where until Ctrl-C."""
    said = folder.with_name("said")
    with said.open("wb") as out:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        end = time.monotonic() + 120
        while "http://127.0.0.1:" not in said.read_text():
            assert child.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        yield
        child.send_signal(signal.SIGINT)
        assert child.wait(60) in (*ENDED, -signal.SIGINT, 128 + signal.SIGINT), said.read_text()
    finally:
        child.kill()
        child.wait(60)


SIMULATE = "heedful simulate catalogue examples/cars.csv --user best --interpreted --rounds 3 --people 2 --learner"
PARQUET = """
import pyarrow, pyarrow.parquet
from heedful.data.set_aside import item_rows
from heedful.data.table import open_table
pyarrow.parquet.write_table(pyarrow.table({"name": ["a", "b"]}), "items.parquet")
assert [row["name"] for row in item_rows(open_table("items.parquet"))] == ["a", "b"]
"""
TRIED = {
    "plot": f"{SIMULATE} perceptron --plot curve.png && test -s curve.png",
    "demo": "heedful demo --once",
    "parquet": f"python -c '{PARQUET}'",
    "sklearn": f"{SIMULATE} ranking-svm",
    "serve": "python -c 'import heedful.server.main, heedful.server.app'",
    "client": "python -c 'from heedful.client import Client; Client(\"http://127.0.0.1:1\")'",
    "postgres": "python -c 'import psycopg, heedful.storage.postgres'",
    "ray": f"{SIMULATE} perceptron --engine ray",
    "mcp": "python -c 'import heedful.server.agent_tools'",
}
"""By extra, a line that needs it."""


def test_each_extra_is_tried() -> None:
    assert set(TRIED) == set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.mark.long
@pytest.mark.parametrize("extra", TRIED)
def test_the_wheel_and_each_extra_in_an_empty_environment(wheel: Path, tmp_path: Path, extra: str) -> None:
    pins = re.findall(r"^([\w.-]+==[\w.+-]+)(.*?) \\$", (ROOT / "requirements.lock").read_text(), re.M)
    (tmp_path / "pins.txt").write_text("\n".join(f"{pin}{marker}" for pin, marker in pins))
    with TemporaryDirectory(dir=KEPT) as home:  # not in memory
        run(sys.executable, "-m", "venv", home)
        binaries = Path(home) / "bin"
        run(binaries / "python", "-m", "pip", "install", "-q", "-c", tmp_path / "pins.txt", f"{wheel}[{extra}]")
        path = f"PATH={binaries}:$PATH"
        run(binaries / "heedful", "examples", cwd=tmp_path)
        run("bash", "-c", f"{path}; {TRIED[extra]}", cwd=tmp_path)


@pytest.mark.slow
def test_the_command_line_is_there(clean: Path, tmp_path: Path) -> None:
    out = run(clean.parent / "heedful", "learners", "--json", cwd=tmp_path).stdout
    assert "second-order" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["demo", "--json"], "demo"),
        (
            [
                "simulate",
                "catalogue",
                "items.csv",
                "--user",
                "best",
                "--learner",
                "perceptron",
                "--interpreted",
                "--rounds",
                "3",
                "--people",
                "2",
                "--plot",
                "out.png",
            ],
            "plot",
        ),
    ],
)
def test_a_missing_extra_names_the_command_that_installs_it(
    clean: Path, tmp_path: Path, command: list[str], extra: str
) -> None:
    rows = "\n".join(f"item {i},{i % 5},{i * i % 7}" for i in range(20))
    (tmp_path / "items.csv").write_text(f"name,a,b\n{rows}\n")
    result = run(clean.parent / "heedful", *command, cwd=tmp_path, check=False)
    assert result.returncode != 0
    assert f"pip install 'heedful[{extra}]'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_marker_for_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "heedful/py.typed" in names
    assert {n.split("/")[0] for n in names} == {"heedful", f"heedful-{__version__}.dist-info"}


@pytest.mark.slow
def test_the_wheel_holds_the_pages_and_what_they_need_with_its_licences(wheel: Path) -> None:
    """Every template and every file that a page may ask for, as in the checkout; nothing that only the tests need."""
    server = ROOT / "src" / "heedful" / "server"
    ours = [path for part in ("templates", "static", "embed") for path in (server / part).rglob("*") if path.is_file()]
    vendored = [path for path in ours if "vendor" in path.parts and path.suffix != ".md"]
    assert {path.suffix for path in ours} >= {".html", ".css", ".js", ".md"}
    assert len(vendored) == 4
    with zipfile.ZipFile(wheel) as archive:
        for path in ours:
            assert archive.read(path.relative_to(ROOT / "src").as_posix()) == path.read_bytes()
        licences = archive.read("heedful/server/static/vendor/LICENSES.md").decode()
        assert not [name for name in archive.namelist() if "axe" in name.lower()]
    for path in vendored:
        assert f"`{path.name}`" in licences


def test_what_was_vendored_is_what_its_licence_page_says() -> None:
    """The versions are the ones told, and nothing asks another host for a part of itself."""
    vendor = ROOT / "src" / "heedful" / "server" / "static" / "vendor"
    licences = (vendor / "LICENSES.md").read_text()
    for name, project, mark in (
        ("htmx.min.js", "htmx", r'version:"([\d.]+)"'),
        ("uPlot.iife.min.js", "uPlot", r"uPlot \(v([\d.]+)\)"),
        ("Sortable.min.js", "Sortable", r"Sortable ([\d.]+) - MIT"),
    ):
        text = (vendor / name).read_text()
        found = re.search(mark, text)
        assert found is not None, name
        assert re.search(rf"\| {project}\w*, .* \| {re.escape(found[1])} \|", licences), name
    for path in vendor.glob("*.*s"):
        assert "sourceMappingURL" not in path.read_text()
        assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", path.read_text())


def test_the_smaller_locks_are_parts_of_the_whole_one() -> None:
    """So that `make demo` and `make test` fill one environment, in either order, and more of it changes nothing."""
    whole, demo, server, core, setup = (
        set(re.split(r"\n(?=\S)", (ROOT / f"requirements{name}.lock").read_text().strip()))
        for name in ("", "-demo", "-server", "-core", "-setup")
    )
    assert core < demo < whole
    unmarked = [{re.sub(r" ; [^\\]*", " ", entry) for entry in lock} for lock in (core, server, whole)]
    assert unmarked[0] < unmarked[1] < unmarked[2]  # without pandas, tzdata is for Windows alone
    assert setup < whole
    assert {"starlette", "vega-datasets", "hatchling"} <= {entry.split("==")[0] for entry in demo}
    assert {"starlette", "psycopg", "hatchling"} <= {entry.split("==")[0] for entry in server}
    assert not {"vega-datasets", "httpx"} & {entry.split("==")[0] for entry in server}
    assert {entry.split("==")[0] for entry in setup} == {"setuptools"}
    assert not {"mypy", "playwright", "pyarrow", "matplotlib", "setuptools"} & {entry.split("==")[0] for entry in demo}
