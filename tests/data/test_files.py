"""Files as bytes: plain or gzip, and no more of them than anybody wrote."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.data import files
from heedful.data.files import open_uncompressed
from heedful.data.table import read_records, read_table


def test_a_file_of_which_far_too_much_comes_is_refused_before_it_is_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "UNZIPPED", 100_000)
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(b"a,b\n" * 20_000))
    with open_uncompressed(file) as lines:
        assert len(lines.read()) == 80_000
    file.write_bytes(gzip.compress(b"a,b\n" * 1_000_000))
    told = r"^a\.csv\.gz: gzip: expected at most .* gunzip it first"
    read: list[int] = []
    with pytest.raises(ValueError, match=told), open_uncompressed(file) as lines:
        read.extend(map(len, lines))
    assert 100_000 < sum(read) < 2_000_000


@pytest.mark.parametrize("read", [read_table, lambda path: list(read_records(path))], ids=["table", "records"])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("cell", [7.5, "seven" * 100], ids=["numbers", "texts"])
def test_a_parquet_file_of_which_far_too_much_comes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object], zipped: bool, cell: object
) -> None:
    """Equal cells take next to nothing in the file, and in memory what they are."""
    pyarrow = pytest.importorskip("pyarrow")
    file, made = tmp_path / "a.parquet", pyarrow.BufferOutputStream()
    rows = 20_000 if isinstance(cell, float) else 2_000
    importlib.import_module("pyarrow.parquet").write_table(pyarrow.table({"a": [cell] * rows}), made)
    content = made.getvalue().to_pybytes()
    assert len(content) < 3_000
    file.write_bytes(gzip.compress(content) if zipped else content)
    read(file)
    monkeypatch.setattr(files, "UNZIPPED", 100_000)
    monkeypatch.setattr(files, "TIMES", 1)
    with pytest.raises(ValueError, match=r"^a\.parquet: content: expected at most .* bytes of it, got more"):
        read(file)
