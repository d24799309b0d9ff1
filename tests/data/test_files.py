"""Files as bytes: plain or gzip, and no more of them than anybody wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heedful.data import files
from heedful.data.files import open_uncompressed


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
