"""The TypeScript client: its types are those of the server, it compiles, and it passes its own tests under Node.js."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import node
from heedful.server.keys import Keys
from heedful.server.main import served

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def built() -> None:
    """The client, compiled."""
    missing = node.WANTED if node.find() is None else "" if node.install() else node.UNREACHED
    if missing and os.environ.get("CI"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    done = node.run("tsc")
    assert done.returncode == 0, done.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where a server is, and a key, as the environment has them."""
    with closing(Keys(tmp_path)) as keys:
        key = keys.create("typescript")[1]
    with served(tmp_path) as url:
        yield {"HEEDFUL_URL": url, "HEEDFUL_KEY": key}


def test_the_types_are_those_of_the_server(built: None, tmp_path: Path) -> None:
    node.write_types(tmp_path / "api.ts", tmp_path / "openapi.json")
    told = "clients/typescript/src/api.ts is not what the OpenAPI document says now: make types writes it again"
    assert (tmp_path / "api.ts").read_text() == (node.FOLDER / "src" / "api.ts").read_text(), told


def test_it_passes_its_own_tests(built: None, server: dict[str, str]) -> None:
    done = node.run("node", "--test", "--test-reporter=tap", "dist/test/client.test.js", **server)
    assert done.returncode == 0, done.stdout
    counts = dict(re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE))
    written = len(re.findall(r'^test\("', (node.FOLDER / "test" / "client.test.ts").read_text(), re.MULTILINE))
    assert counts["pass"] == counts["tests"] == str(written), done.stdout
    assert server["HEEDFUL_KEY"] not in done.stdout


def test_it_has_no_dependencies_and_few_tools() -> None:
    package = json.loads((node.FOLDER / "package.json").read_text())
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & package.keys()
    assert package["devDependencies"].keys() == {"@types/node", "openapi-typescript", "typescript"}
    for path in (node.FOLDER / "src").glob("*.ts"):
        imported = re.findall(r'\b(?:from|import|require)\s*\(?\s*"([^"]+)"', path.read_text())
        assert all(name.startswith("./") for name in imported), path


def test_the_example_of_the_page_prints_what_it_says(built: None, server: dict[str, str]) -> None:
    [example] = re.findall(r"```ts\n(.*?)```", (DOCS / "browsers.md").read_text(), re.DOTALL)
    assert len([line for line in example.splitlines() if line and not line.startswith("import")]) == 5
    expected = re.findall(r"^console\.log\(.*\); // (.*)$", example, re.MULTILINE)
    # It compiles as it stands, strictly, against the package; its JavaScript runs.
    (node.FOLDER / "dist" / "example").mkdir(exist_ok=True)
    source = node.FOLDER / "dist" / "example" / "page.mts"
    source.write_text(example)
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--types", "node"]
    done = node.run("tsc", source, *options)
    assert done.returncode == 0, done.stdout
    ran = node.run("node", "dist/example/page.mjs", **server)
    assert (ran.stdout.splitlines(), ran.returncode) == (expected, 0), ran.stderr
