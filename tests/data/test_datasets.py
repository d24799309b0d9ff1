"""Known data sets: what is told about a folder of files."""

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from films import shared
from heedful.data import datasets
from heedful.data.datasets import KNOWN, DatasetInfo, Finding, check

TOY = DatasetInfo("toy", "A toy", "letor", "none", "https://example.org", "Nobody", {})


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> DatasetInfo:
    """Stand a data set of two small files, and one without sums, in for the real ones."""
    sums = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a.txt", "b.txt")}
    toy = TOY._replace(files=sums)
    monkeypatch.setattr(datasets, "KNOWN", (toy, TOY._replace(key="no-sums")))
    return toy


def told(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.dataset, finding.file, finding.status) for finding in findings]


def test_mq2008_is_whole(mq2008: Path) -> None:
    wanted = [("letor4-mq2008", f"S{i}.txt.gz", "ok") for i in range(1, 6)]
    assert told(check(mq2008)) == wanted
    below = [finding for finding in check(mq2008.parent) if finding.dataset == "letor4-mq2008"]
    assert told(below) == [(key, f"{mq2008.name}/{file}", status) for key, file, status in wanted]


def test_plain_and_gzip_are_checked_by_their_content(tmp_path: Path, toy: DatasetInfo) -> None:
    (tmp_path / "a.txt").write_bytes(b"a.txt")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"b.txt", compresslevel=1))
    assert told(check(tmp_path)) == [("toy", "a.txt", "ok"), ("toy", "b.txt.gz", "ok")]


def test_damaged_and_missing(tmp_path: Path, toy: DatasetInfo) -> None:
    (tmp_path / "a.txt").write_bytes(b"A.txt")
    damaged, missing = check(tmp_path)
    assert told([damaged, missing]) == [("toy", "a.txt", "damaged"), ("toy", "b.txt", "missing")]
    assert hashlib.sha256(b"A.txt").hexdigest() in damaged.detail
    assert toy.files["a.txt"] in damaged.detail
    assert "b.txt.gz" in missing.detail
    assert toy.home in missing.detail


def test_gzip_that_is_cut_off_is_damaged(tmp_path: Path, toy: DatasetInfo) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a.txt")[:-3])
    found = check(tmp_path)[0]
    assert told([found]) == [("toy", "a.txt.gz", "damaged")]
    assert "expected a whole stream, got Compressed file ended" in found.detail


def test_every_copy_is_checked_in_the_folder_and_right_below(tmp_path: Path, toy: DatasetInfo) -> None:
    for place in (tmp_path, tmp_path / "two", tmp_path / "two" / "deep", tmp_path / "empty"):
        place.mkdir(exist_ok=True)
        if place.name != "empty":
            (place / "a.txt").write_bytes(b"a.txt")
            (place / "b.txt").write_bytes(b"b.txt")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"other"))
    assert told(check(tmp_path)) == [
        ("toy", "a.txt", "ok"),
        ("toy", "b.txt", "ok"),
        ("toy", "b.txt.gz", "damaged"),
        ("toy", "two/a.txt", "ok"),
        ("toy", "two/b.txt", "ok"),
    ]


def test_a_set_without_sums_goes_by_its_folder(
    tmp_path: Path, toy: DatasetInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "No-Sums").mkdir()
    (found,) = check(tmp_path)
    assert told([found]) == [("no-sums", "No-Sums", "unknown")]
    assert "no sums on record" in found.detail
    monkeypatch.chdir(tmp_path / "No-Sums")
    assert told(check(".")) == [("no-sums", ".", "unknown")]


def test_a_file_without_a_sum_is_unknown_or_missing(
    tmp_path: Path, toy: DatasetInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "KNOWN", (toy._replace(files={"a.txt": "", "b.txt": toy.files["b.txt"]}),))
    (tmp_path / "b.txt").write_bytes(b"b.txt")
    assert told(check(tmp_path)) == [("toy", "a.txt", "missing"), ("toy", "b.txt", "ok")]
    (tmp_path / "a.txt").write_bytes(b"a.txt")
    assert told(check(tmp_path)) == [("toy", "a.txt", "unknown"), ("toy", "b.txt", "ok")]
    assert check(tmp_path)[0].detail == f"no sum on record; sha256 {toy.files['a.txt']}"


def test_movielens_is_whole() -> None:
    for key in ("movielens-1m", "movielens-100k"):
        statuses = {finding.file.removesuffix(".gz"): finding.status for finding in check(shared(key))}
        assert statuses == {name: "ok" if total else "unknown" for name, total in named(key).files.items()}


def test_sushi_is_whole() -> None:
    statuses = {finding.file.removesuffix(".gz"): finding.status for finding in check(shared("sushi"))}
    assert statuses == dict.fromkeys(named("sushi").files, "ok")


def test_the_ratings_of_other_figures_are_whole() -> None:
    (jester,) = check(shared("jester-1"))
    assert (jester.dataset, jester.status) == ("jester-1", "unknown")  # no sum on record
    (books,) = check(shared("book-crossing-subset"))
    assert (books.dataset, books.status) == ("book-crossing-subset", "ok")


def test_the_sets_of_the_collaborative_paper_are_whole() -> None:
    for key in ("uk-election-2010", "jura", "cgp-synthetic"):
        found = check(shared(key))
        assert {finding.file.removesuffix(".gz"): finding.status for finding in found} == dict.fromkeys(
            named(key).files, "ok"
        )


def named(key: str) -> DatasetInfo:
    return next(entry for entry in KNOWN if entry.key == key)


def test_folders_come_by_name(tmp_path: Path, toy: DatasetInfo) -> None:
    for name in "dbfaec":
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_bytes(b"a.txt")
    assert [f.file for f in check(tmp_path) if f.status == "ok"] == [f"{name}/a.txt" for name in "abcdef"]


def test_nothing_recognised(tmp_path: Path, toy: DatasetInfo) -> None:
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "notes.txt").write_text("nothing of interest")
    assert check(tmp_path) == []


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none: no such folder; nothing is fetched"):
        check(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        check(tmp_path / "file")


def test_the_list() -> None:
    assert {entry.key: len(entry.files) for entry in KNOWN} == {
        "letor4-mq2008": 5,
        "mslr-web10k": 0,
        "mslr-web30k": 0,
        "yahoo-ltrc": 0,
        "trec-session-2012": 2,
        "trec-session-2013": 2,
        "movielens-1m": 3,
        "movielens-100k": 3,
        "jester-1": 1,
        "book-crossing-subset": 1,
        "sushi": 4,
        "uk-election-2010": 1,
        "jura": 1,
        "cgp-synthetic": 3,
    }
    for entry in KNOWN:
        assert entry.home.startswith("https://" if entry.key != "book-crossing-subset" else "http://")  # never moved
        assert all(entry[:6])
        assert all(total == "" or len(bytes.fromhex(total)) == 32 for total in entry.files.values())


@pytest.mark.slow
def test_loaders_import_nothing_heavy() -> None:
    code = (
        "import sys, heedful.data, heedful.data.letor, heedful.data.catalogue, heedful.data.datasets;"
        "import heedful.data.movielens, heedful.data.als;"
        "print([name for name in ('numba', 'scipy', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
