"""What heedful asks for: bounds where they matter, and locks that keep them."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERVE = {each.name: each.specifier for each in map(Requirement, PROJECT["optional-dependencies"]["serve"])}


def test_uvicorn_is_one_whose_inside_is_known() -> None:
    """`heedful.server.protocol` takes the place of parts of it: what comes after the locked one was never tried."""
    major, minor, *_ = version("uvicorn").split(".")
    assert SERVE["uvicorn"].contains(version("uvicorn"))
    assert not SERVE["uvicorn"].contains(f"{major}.{int(minor) + 1}.0")
    assert not SERVE["uvicorn"].contains(f"{int(major) + 1}.0.0")


@pytest.mark.parametrize(("name", "old"), [("jinja2", "3.1.5"), ("starlette", "0.49.0"), ("httptools", "0.6.3")])
def test_what_is_known_to_be_broken_is_refused(name: str, old: str) -> None:
    """A template out of its sandbox, ranges without end, and heads that end where others do not see it."""
    assert not SERVE[name].contains(old)
    assert SERVE[name].contains(version(name))


def test_ray_is_one_that_can_ask_for_a_token() -> None:
    """Before 2.52 a cluster runs the code of whoever reaches it."""
    [ray] = map(Requirement, PROJECT["optional-dependencies"]["ray"])
    assert not ray.specifier.contains("2.51.1")
    assert ray.specifier.contains("2.52.0")


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-demo.lock", "requirements-server.lock"])
def test_the_locks_keep_the_bounds(lock: str) -> None:
    pinned = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))
    for name, specifier in SERVE.items():
        assert specifier.contains(pinned[name]), name


@pytest.mark.parametrize("name", ["ville", "vw-estimators", "setuptools"])
def test_oracles_are_there_for_the_tests_alone(name: str) -> None:
    """Neither heedful nor an extra asks for them, and the lock pins each with its hashes."""
    locks = {each.stem: each.read_text(encoding="utf-8") for each in ROOT.glob("requirements*.lock")}
    there = {
        stem for stem, text in locks.items() if re.search(rf"^{name}==\S+ \\\n    --hash=sha256:", text, re.MULTILINE)
    }
    assert there == {"requirements"} | ({"requirements-setup"} if name == "setuptools" else set())
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    assert name not in {Requirement(each).name for each in [*PROJECT["dependencies"], *extras]}


NPM_LOCK = ROOT / "clients" / "typescript" / "package-lock.json"


def test_locks_name_no_host() -> None:
    for path in (*ROOT.glob("requirements*.lock"), NPM_LOCK):
        assert not re.search(r"://|index-url|find-links|registry|\"resolved\"", path.read_text(encoding="utf-8")), (
            path.name
        )


def test_the_lock_of_npm_has_a_hash_for_each_package_and_stays_as_it_is() -> None:
    """`npm run lock` writes it, in this form."""
    text = NPM_LOCK.read_text(encoding="utf-8")
    lock = json.loads(text)
    assert json.dumps(lock, indent=2, ensure_ascii=False) + "\n" == text
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 10
    for name, entry in packages.items():
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", entry["integrity"]), name
        assert entry["dev"], name
    asked = json.loads((NPM_LOCK.parent / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert "omit-lockfile-registry-resolved=true" in (NPM_LOCK.parent / ".npmrc").read_text().splitlines()


@pytest.mark.slow
def test_what_is_asked_for_is_what_is_imported() -> None:
    """But for the data of vega_datasets, which is read as files, and llvmlite, which numba brings."""
    imported = {"vega_datasets"}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    packages = packages_distributions()
    found = {packages[name][0] for name in imported - {"heedful", "llvmlite", *sys.stdlib_module_names}}
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    asked = {Requirement(each).name for each in [*PROJECT["dependencies"], *extras]} - {"heedful"}
    assert {name.lower().replace("_", "-") for name in found} == {name.replace("_", "-") for name in asked}
