"""What a study is about, read from where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from compared import logos, png, study_in
from heedful import Loop
from heedful.studies.reading import LONGEST, read_material
from heedful.studies.study import Study, added, found, picture_in, study_of


def test_a_folder_of_pictures_without_the_broken_ones(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 4)
    (folder / "Käse (1).PNG").write_bytes(png(9))
    (folder / "cut.png").write_bytes(png(5)[:60])
    (folder / "fake.jpg").write_bytes(b"<script>alert(1)</script>")
    (folder / "notes.txt").write_text("no picture")
    (folder / ".hidden.png").write_bytes(png(7))
    (folder / "logo 0.gif").write_bytes(b"GIF89a\1\0\1\0\0\0\0\x3b\0\x3b")
    material = read_material(folder)
    assert material.kind == "pictures"
    names = [row["name"] for row in material.rows]
    assert sorted(names) == ["Käse (1)", "logo 0.gif", "logo 0.png", "logo 1", "logo 2", "logo 3"]
    told = {each.name: each.why for each in material.left_out}
    assert set(told) == {"cut.png", "fake.jpg", "notes.txt"}
    assert "cut off" in told["cut.png"]
    numbers = [row["picture"] for row in material.rows]
    assert set(material.files) == set(numbers)
    assert all(len(number) == 16 for number in numbers)


def test_a_folder_of_texts(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes("\ufeffGrüße\r\n".encode())
    (folder / "b.md").write_text("# Title")
    (folder / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    (folder / "long.txt").write_text("x" * (LONGEST + 1))
    (folder / "empty.txt").write_text(" \n")
    (folder / "data.bin").write_bytes(b"\0")
    material = read_material(folder)
    assert material.kind == "texts"
    assert material.rows == [{"name": "a", "text": "Grüße"}, {"name": "b", "text": "# Title"}]
    assert {each.name for each in material.left_out} == {"latin.txt", "long.txt", "empty.txt", "data.bin"}


def test_a_csv_with_commas_quotes_and_umlauts(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text('name,claim\nÄpfel,"red, ""sweet"""\nBirnen,"<b>x</b>; y"\n', encoding="utf-8")
    material = read_material(file)
    assert material.encoding.identifier == "name"
    assert material.rows[0] == {"name": "Äpfel", "claim": 'red, "sweet"'}
    assert material.rows[1]["claim"] == "<b>x</b>; y"


def test_rows_that_nothing_names_are_numbered(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("claim\n" + "\n".join(f"{'long ' * 60}{i}" for i in range(3)) + "\n")
    material = read_material(file)
    assert [row["row"] for row in material.rows] == ["1", "2", "3"]
    with pytest.raises(ValueError, match="identifier"):
        read_material(file, "size")


@pytest.mark.parametrize("ending", ["soc", "soi", "toc", "toi"])
def test_preflib(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"sushi.{ending}"
    head = f"# DATA TYPE: {ending}\n# NUMBER ALTERNATIVES: 3\n"
    names = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate(("ebi", "anago", "maguro"), 1))
    file.write_text(f"{head}{names}2: 1,2,3\n1: 3,1,2\n")
    assert [row["name"] for row in read_material(file).rows] == ["ebi", "anago", "maguro"]


def test_fewer_than_two_are_refused_and_why(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 1)
    (folder / "cut.png").write_bytes(png(5)[:60])
    with pytest.raises(ValueError, match=r"logos: wanted two things or more to compare, got 1; cut.png: .*cut off"):
        read_material(folder)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        read_material(tmp_path / "nothing")


def test_a_study_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    material = read_material(logos(tmp_path / "logos", 3))
    next(iter(material.files.values())).unlink()
    with pytest.raises(FileNotFoundError):
        found(tmp_path / "s.heedful", material, Study(kind="pictures"), "best")
    assert not (tmp_path / "s.heedful").exists()


def test_a_study_keeps_its_pictures_and_takes_new_ones(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 3)
    path = study_in(tmp_path / "s.heedful", folder)
    (folder / "logo 0.png").unlink()
    (folder / "logo 9.png").write_bytes(png(9))
    with Loop.open(path) as loop:
        assert loop.choices == "best"
        before = read_material(folder)
        assert added(loop, before) == 1
        assert added(loop, before) == 0
        assert loop.items == ["logo 0", "logo 1", "logo 2", "logo 9"]
    numbers = {row["name"]: row["picture"] for row in before.rows}
    assert picture_in(path, numbers["logo 9"]) == (png(9), "image/png")
    for wrong in ("", "../study.json", "../../etc/passwd", "0" * 16, numbers["logo 9"].upper() + "/"):
        assert picture_in(path, wrong) is None
    study = study_of(path)
    assert study.kind == "pictures"
    (path / "study.json").write_text('{"ask": 3}')
    with pytest.raises(ValueError, match=r"^study.json: wanted a study as it was written"):
        study_of(path)


@pytest.mark.parametrize(
    ("field", "value"), [("ask", ""), ("ask", "x" * 301), ("consent", " "), ("questions", 0), ("show", ("nothing",))]
)
def test_a_study_that_makes_no_sense_is_refused_by_name(tmp_path: Path, field: str, value: object) -> None:
    material = read_material(logos(tmp_path / "logos", 2))
    with pytest.raises(ValueError, match=f"^{field}: wanted"):
        found(tmp_path / "s.heedful", material, Study(**{"kind": "pictures", field: value}), "best")  # type: ignore[arg-type]
    assert not (tmp_path / "s.heedful").exists()
