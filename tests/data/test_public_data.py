"""docs/data.md: the sums are those of the real files, and the folders those that figures look into."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from films import shared
from heedful.data.files import existing_or_gz, open_uncompressed
from heedful.papers.datasets import EDITIONS, FILES, FOLDERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text()
SUMS = {(folder, file): total for total, folder, file in re.findall(r"^([0-9a-f]{64})  ([^/\n]+)/(\S+)$", PAGE, re.M)}


@pytest.mark.parametrize(("folder", "file"), SUMS)
def test_the_sum_of_a_file_is_the_one_on_the_page(folder: str, file: str) -> None:
    path = existing_or_gz(shared(folder) / file)
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    with open_uncompressed(path) as content:
        assert hashlib.file_digest(content, "sha256").hexdigest() == SUMS[folder, file]


def test_the_page_names_the_folders_and_files_of_the_figures() -> None:
    assert len(SUMS) == 22
    for world, folders in FOLDERS.items():
        assert f"| `{folders[0]}` |" in PAGE, world
        for file in {*FILES[world], *(file for files in EDITIONS.get(world, ()) for file in files)}:
            assert any(name == file for _, name in SUMS) or f"`{file}`" in PAGE, file


@pytest.mark.slow
def test_loaders_import_nothing_heavy() -> None:
    code = (
        "import sys, heedful.data, heedful.data.letor, heedful.data.catalogue;"
        "import heedful.data.movielens, heedful.data.als;"
        "print([name for name in ('numba', 'scipy', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
