"""What a study is about, read from where it lies."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from compared import logos, png, study_in
from heedful import Loop
from heedful.studies.reading import LONGEST, THINGS, read_material
from heedful.studies.study import Study, add_material, create_study, picture_in, study_of


def test_a_folder_of_pictures_without_the_broken_ones(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 4)
    (folder / "Käse (1).PNG").write_bytes(png(9))
    (folder / "cut.png").write_bytes(png(5)[:60])
    (folder / "fake.jpg").write_bytes(b"<script>alert(1)</script>")
    (folder / "notes.txt").write_text("no picture")
    (folder / ".hidden.png").write_bytes(png(7))
    Image.new("P", (3, 2)).save(folder / "logo 0.gif")
    (folder / "empty.gif").write_bytes(b"GIF89a\1\0\1\0\0\0\0\x3b\0\x3b")  # no picture in it
    material = read_material(folder)
    assert material.kind == "pictures"
    names = [row["name"] for row in material.rows]
    assert sorted(names) == ["Käse (1)", "logo 0.gif", "logo 0.png", "logo 1", "logo 2", "logo 3"]
    told = {each.name: each.why for each in material.left_out}
    assert set(told) == {"cut.png", "empty.gif", "fake.jpg", "notes.txt"}
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
    with pytest.raises(ValueError, match=r"logos: expected two things or more to compare, got 1; cut.png: .*cut off"):
        read_material(folder)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        read_material(tmp_path / "nothing")


def test_a_study_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    material = read_material(logos(tmp_path / "logos", 3))
    next(iter(material.files.values())).unlink()
    with pytest.raises(FileNotFoundError):
        create_study(tmp_path / "s.heedful", material, Study(kind="pictures"), "best")
    assert not (tmp_path / "s.heedful").exists()


def test_a_study_keeps_its_pictures_and_takes_new_ones(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 3)
    path = study_in(tmp_path / "s.heedful", folder)
    (folder / "logo 0.png").unlink()
    (folder / "logo 9.png").write_bytes(png(9))
    with Loop.open(path) as loop:
        assert loop.facts.get("choices") == "best"
        before = read_material(folder)
        assert add_material(loop, before) == (("logo 9",), (), ("logo 0",))
        assert add_material(loop, before) == ((), (), ("logo 0",))
        assert loop.items == ["logo 0", "logo 1", "logo 2", "logo 9"]
    numbers = {row["name"]: row["picture"] for row in before.rows}
    assert picture_in(path, numbers["logo 9"]) == (png(9), "image/png")
    for wrong in ("", "../study.json", "../../etc/passwd", "0" * 16, numbers["logo 9"].upper() + "/"):
        assert picture_in(path, wrong) is None
    study = study_of(path)
    assert study.kind == "pictures"
    for wrong in ('{"ask": 3}', '{"later": 3}'):
        (path / "study.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"^study.json: expected a study as it was written"):
            study_of(path)


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_file_that_comes_later_gives_no_other_another_name(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    first, second = (".svg", ".png") if kind == "pictures" else (".txt", ".md")

    def file(name: str, n: int) -> None:
        drawn = f'<svg xmlns="http://www.w3.org/2000/svg"><rect width="{n}" height="9"/></svg>'.encode()
        pictured = png(n) if name.endswith(".png") else drawn
        (folder / name).write_bytes(pictured if kind == "pictures" else f"text {n}".encode())

    file(f"fox{first}", 1)
    file(f"owl{first}", 2)
    path = study_in(tmp_path / "s.heedful", folder)
    file(f"fox{second}", 3)
    with Loop.open(path) as loop:
        assert add_material(loop, read_material(folder)) == ((f"fox{second}",), (), ())
        assert loop.items == ["fox", "owl", f"fox{second}"]
        assert add_material(loop, read_material(folder)) == ((), (), ())
        # Alone now, it is called fox by its file, which is another one here.
        (folder / f"fox{first}").unlink()
        assert add_material(loop, read_material(folder)) == ((), (), ("fox",))
        # The same under another name, twice: one of them is the one that was there.
        (folder / f"owl{first}").rename(folder / f"uhu{first}")
        file(f"eule{first}", 2)
        added = add_material(loop, read_material(folder))
        assert (len(added.new), added.changed, added.gone) == (1, (), ("fox",))
        assert sorted(loop.items) == sorted(["fox", "owl", f"fox{second}", "uhu"])
        # What is called as before and is another now has changed.
        file(f"uhu{first}", 4)
        assert add_material(loop, read_material(folder)) == ((), ("uhu",), ("fox",))


@pytest.mark.parametrize(
    ("field", "value"), [("ask", ""), ("ask", "x" * 301), ("consent", " "), ("questions", 0), ("show", ("nothing",))]
)
def test_a_study_that_makes_no_sense_is_refused_by_name(tmp_path: Path, field: str, value: object) -> None:
    material = read_material(logos(tmp_path / "logos", 2))
    with pytest.raises(ValueError, match=f"^{field}: expected"):
        create_study(tmp_path / "s.heedful", material, Study(**{"kind": "pictures", field: value}), "best")  # type: ignore[arg-type]
    assert not (tmp_path / "s.heedful").exists()


@pytest.mark.parametrize(
    ("rows", "told", "other"),
    [
        (
            "name,price\nA,1\nA,2\nB,3\n",
            "items.csv:3: name: expected another name in every row, got 'A', as in items.csv:2",
            "price",
        ),
        (
            "Title,slogan\nx,one\n,two\n",
            "items.csv:3: Title: expected a name, got nothing; --identifier picks another",
            "slogan",
        ),
    ],
)
def test_a_column_that_is_called_a_name_names_every_row(tmp_path: Path, rows: str, told: str, other: str) -> None:
    file = tmp_path / "items.csv"
    file.write_text(rows)
    with pytest.raises(ValueError, match="^" + re.escape(told)):
        read_material(file)
    assert read_material(file, other).encoding.identifier == other
    file.write_text("".join(f"{'id' if i == 0 else i},{line}\n" for i, line in enumerate(rows.splitlines())))
    assert read_material(file).encoding.identifier == "id"  # one of them does


def test_what_lies_elsewhere_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("of nobody's business")
    (tmp_path / "secret.png").write_bytes(png(1))
    texts, pictures = tmp_path / "texts", logos(tmp_path / "pictures", 2)
    texts.mkdir()
    for name in "ab":
        (texts / f"{name}.txt").write_text(name)
    (texts / "in.txt").symlink_to(texts / "a.txt")
    (texts / "out.txt").symlink_to(tmp_path / "secret.txt")
    (texts / "none.txt").symlink_to(tmp_path / "nothing")
    (texts / "itself.txt").symlink_to("itself.txt")
    os.mkfifo(texts / "pipe.txt")
    (pictures / "out.png").symlink_to("../secret.png")
    material = read_material(texts)
    assert [row["name"] for row in material.rows] == ["a", "b", "in"]
    told = {each.name: each.why for each in material.left_out}
    assert told["out.txt"] == told["none.txt"] == "expected a file of this folder, got a link to elsewhere"
    assert told["pipe.txt"] == "expected a plain file, got another kind"
    assert told["itself.txt"] == os.strerror(errno.ELOOP)
    assert [each.name for each in read_material(pictures).left_out] == ["out.png"]


def test_what_there_is_more_of_is_what_a_folder_is_of(tmp_path: Path) -> None:
    folder = logos(tmp_path / "mixed", 2)
    for i in range(3):
        (folder / f"text {i}.txt").write_text(f"text {i}")
    assert read_material(folder).kind == "texts"
    (folder / "one more.png").write_bytes(png(7))
    assert read_material(folder).kind == "pictures"


def test_a_name_that_a_table_would_lose_keeps_its_ending(tmp_path: Path) -> None:
    folder = logos(tmp_path / "logos", 2)
    (folder / "NA.png").write_bytes(png(7))
    assert {row["name"] for row in read_material(folder).rows} == {"logo 0", "logo 1", "NA.png"}


@pytest.mark.slow
def test_more_things_than_can_be_compared_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("name\n" + "".join(f"word {i}\n" for i in range(THINGS + 1)))
    with pytest.raises(ValueError, match=r"^items\.csv: expected at most 10,000 things to compare, got 10,001"):
        read_material(file)


@pytest.mark.slow
def test_a_study_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """Killed in the middle of making it: the next time it is made as if nothing had been."""
    folder = logos(tmp_path / "logos", 3)
    path = tmp_path / "s.heedful"
    code = (
        "import os, sys; from pathlib import Path; from heedful.studies import study, reading\n"
        "assert study.write_own\n"
        "study.write_own = lambda *_: os._exit(9)\n"
        f"material = reading.read_material(Path({str(folder)!r}))\n"
        f"study.create_study(Path({str(path)!r}), material, study.Study(kind='pictures'), 'best')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert not path.exists()
    assert [each.name for each in tmp_path.glob("*.heedful")] == []
    assert len(list(tmp_path.glob(".s.heedful.*.part"))) == 1
    (tmp_path / ".s.heedful.notes.part").mkdir()  # of somebody else
    study_in(path, folder)
    assert study_of(path).kind == "pictures"
    assert [each.name for each in tmp_path.glob(".*.part")] == [".s.heedful.notes.part"]
    with pytest.raises(FileExistsError):
        study_in(path, folder)
