"""Ranking files: what is written comes back to the last bit."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.letor import Queries, least_squares, load_letor
from written import write

# --- MQ2008 -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(mq2008: Path) -> list[Path]:
    return [mq2008 / f"S{i}.txt.gz" for i in range(1, 6)]


@pytest.fixture(scope="module")
def loaded(files: list[Path]) -> Queries:
    return load_letor(*files)


@pytest.mark.slow
def test_mq2008_has_the_published_size(loaded: Queries) -> None:
    sizes = np.diff(loaded.offsets)
    assert loaded.X.shape == (15_211, 46)
    assert loaded.X.flags.c_contiguous
    assert len(loaded.qids) == len(sizes) == 784
    assert np.bincount(loaded.labels).tolist() == [12_279, 2_001, 931]
    assert (sizes.min(), sizes.max(), sizes.sum()) == (5, 121, 15_211)
    assert sum(not loaded.labels[a:b].any() for a, b in zip(loaded.offsets, loaded.offsets[1:])) == 220


@pytest.mark.slow
def test_mq2008_cell_by_cell(files: list[Path], loaded: Queries) -> None:
    row, qids = 0, []
    for file in files:
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            grade, qid, *features = line.split("#")[0].split()
            assert loaded.labels[row] == int(grade)
            assert loaded.X[row].tolist() == [float(feature.split(":")[1]) for feature in features]
            if qid[4:] not in qids[-1:]:
                qids.append(qid[4:])
                assert row in loaded.offsets
            row += 1
    assert loaded.qids.tolist() == qids


# --- round trip ---------------------------------------------------------------------------------------------

VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)
DOCUMENT = st.tuples(st.integers(0, 4), st.dictionaries(st.integers(1, 9), VALUES, max_size=6))
QUERIES = st.dictionaries(
    st.text("abz019-_é:", min_size=1, max_size=4),
    st.lists(DOCUMENT, min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)
SIDES = [None, "{}.query", "{}.group"]


@pytest.mark.slow
@settings(deadline=None)
@given(
    parts=st.lists(QUERIES, min_size=1, max_size=3),
    zipped=st.booleans(),
    dense=st.booleans(),
    side=st.sampled_from(SIDES),
    side_of_unzipped=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
    gap=st.sampled_from([" ", "\t", "  \t"]),
    comments=st.booleans(),
    bom=st.booleans(),
    last_end=st.booleans(),
    wider=st.booleans(),
)
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[dict[str, list[tuple[int, dict[int, float]]]]],
    zipped: bool,
    dense: bool,
    side: str | None,
    side_of_unzipped: bool,
    end: str,
    gap: str,
    comments: bool,
    bom: bool,
    last_end: bool,
    wider: bool,
) -> None:
    folder = tmp_path_factory.mktemp("letor")
    documents = [document for part in parts for query in part.values() for document in query]
    largest = max((max(features, default=0) for _, features in documents), default=0)
    N = 12 if wider or largest == 0 else largest
    paths = []
    for i, part in enumerate(parts):
        lines = ["# a heading", ""] if comments else []
        for qid, query in part.items():
            for grade, features in query:
                shown = range(1, N + 1) if dense else sorted(features)
                fields = [str(grade)] + [f"qid:{qid}"] * (side is None)
                fields += [f"{j}:{features.get(j, 0.0)!r}" for j in shown]
                lines.append(gap.join(fields) + (f"{gap}# docid = 1:2 ü" if comments else ""))
        content = ("\ufeff" * bom + end.join(lines) + end * last_end).encode()
        path = folder / (f"{i}.txt.gz" if zipped else f"{i}.txt")
        path.write_bytes(gzip.compress(content) if zipped else content)
        if side:
            beside = f"{i}.txt" if side_of_unzipped else path.name
            counts = end.join(str(len(query)) for query in part.values())
            (folder / side.format(beside)).write_text(counts, newline="")
        paths.append(path)

    got = load_letor(*paths, n_features=N if wider or largest == 0 else 0)

    X = np.zeros((len(documents), N))
    for row, (_, features) in enumerate(documents):
        for j, value in features.items():
            X[row, j - 1] = value
    assert got.X.dtype == np.float64
    assert got.X.flags.c_contiguous
    assert np.array_equal(got.X, X)
    assert np.array_equal(np.signbit(got.X), np.signbit(X))
    assert got.labels.dtype == got.offsets.dtype == np.int64
    assert got.labels.tolist() == [grade for grade, _ in documents]
    sizes = [len(query) for part in parts for query in part.values()]
    assert got.offsets.tolist() == [sum(sizes[:q]) for q in range(len(sizes) + 1)]
    wanted = [str(k) if side else qid for part in parts for k, qid in enumerate(part, 1)]
    assert got.qids.tolist() == wanted


def test_more_lines_than_a_block(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=3000)
    lines = [f"{i % 5} qid:{i // 7} {1 + i // 1000}:{value!r}" for i, value in enumerate(values.tolist())]
    got = load_letor(write(tmp_path / "a.txt", "\n".join(lines)))
    X = np.zeros((3000, 3))  # the width grows from block to block
    X[np.arange(3000), np.arange(3000) // 1000] = values
    assert np.array_equal(got.X, X)
    assert got.offsets.tolist() == [*range(0, 3000, 7), 3000]
    lines[2500] = "0 qid:357 2:1 2:1"
    with pytest.raises(ValueError, match=r"^a\.txt:2501: feature index: .* got '2'$"):
        load_letor(write(tmp_path / "a.txt", "\n".join(lines)))


def test_the_same_query_in_two_files_is_two_queries(tmp_path: Path) -> None:
    got = load_letor(write(tmp_path / "a", "1 qid:7 1:1\n"), write(tmp_path / "b", "2 qid:7 1:2\n0 qid:7 2:3"))
    assert got.qids.tolist() == ["7", "7"]
    assert got.offsets.tolist() == [0, 1, 3]
    assert got.X.tolist() == [[1, 0], [2, 0], [0, 3]]


def test_a_side_file_is_not_read_where_lines_carry_their_query(tmp_path: Path) -> None:
    write(tmp_path / "a.query", "rubbish")
    assert load_letor(write(tmp_path / "a", "1 qid:7 1:1\n")).qids.tolist() == ["7"]


# --- least squares ------------------------------------------------------------------------------------------


def test_least_squares_solves_the_normal_equations() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 6)) * 10.0 ** -np.arange(6)  # of full rank, however small a feature is
    y = rng.integers(0, 5, 50)
    np.testing.assert_allclose(least_squares(X, y), np.linalg.solve(X.T @ X, X.T @ y), rtol=1e-4)


def test_least_squares_is_the_shortest_of_all_solutions() -> None:
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(50, 4)), rng.integers(0, 5, 50)
    X = np.column_stack([A, A[:, 0], A[:, 1] - A[:, 2], np.zeros(50)])  # 7 columns of rank 4
    w = least_squares(X, y)
    np.testing.assert_allclose(X.T @ (X @ w - y), 0, atol=1e-10)  # a minimum ...
    np.testing.assert_allclose(w, np.linalg.pinv(X) @ y, atol=1e-12)  # ... and the shortest
    assert w[0] == pytest.approx(w[4])


def test_least_squares_has_no_intercept() -> None:
    assert least_squares(np.array([[1.0], [1.0], [2.0]]), np.array([1, 3, 4])) == pytest.approx([2.0])
