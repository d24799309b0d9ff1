"""The form of the first page: a loop or a study of what is uploaded or pasted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from browsing import Seen, Visitor, words

from compared import png
from heedful import Loop
from heedful.core.extras import EXAMPLES
from heedful.server.audit import Audit
from heedful.server.context import Options
from heedful.server.keys import Keys
from heedful.server.main import served
from heedful.studies.study import picture_in, study_of

FIELD = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
FORM = "multipart/form-data; boundary=x"
CARS = (EXAMPLES / "cars.csv").read_text()


def send(visitor: Visitor, files: dict[str, bytes] | None = None, **fields: str) -> Seen:
    """The form, sent as a browser does."""
    parts = [(name, (None, value)) for name, value in fields.items()]
    parts += [("files", (name, content)) for name, content in (files or {}).items()]
    return Seen(visitor.http.post("/", files=parts, headers={"origin": visitor.url}))


def refused(seen: Seen, status: int = 422) -> str:
    """What the page says is wrong."""
    assert seen.status == status
    assert len(seen.all("form[@class='begin stack']")) == 1
    return words(seen.one("p[@role='alert']"))


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"use": "rank"}, ("k", 10)),
        ({"use": "one"}, ("k", 1)),
        ({"use": "rate", "range": "0..10"}, ("ratings", (0.0, 10.0))),
    ],
)
def test_a_pasted_table_becomes_a_loop(
    visitor: Visitor, tmp_path: Path, fields: dict[str, str], setting: tuple[str, object]
) -> None:
    sent = send(visitor, name="mine", table=CARS.replace("\n", "\r\n"), **fields)
    assert (sent.status, sent.headers["location"]) == (303, "/loops/mine")
    assert visitor.get("/loops/mine").status == 200
    with Loop.open(tmp_path / "mine.heedful", read_only=True) as loop:
        assert len(loop.items) == 12
        assert getattr(loop.manifest.settings, setting[0]) == setting[1]


def test_uploaded_rows_can_be_compared(visitor: Visitor, tmp_path: Path) -> None:
    rows = b"""{"name": "a", "hp": 1}\n{"name": "b", "hp": 2}\n"""
    sent = send(
        visitor, {"C:\\\\things\\\\..rows.jsonl": rows}, name="two", use="compare", ask="Which is faster?", table=""
    )
    assert (sent.status, sent.headers["location"]) == (303, "/loops/two/compare")
    assert "Which is faster?" in words(visitor.get("/loops/two/compare").one("main"))
    assert study_of(tmp_path / "two.heedful").kind == "rows"


def test_pictures_can_be_compared_and_nothing_else_done_with_them(visitor: Visitor, tmp_path: Path) -> None:
    files = {"red.png": png(1), "blue.png": png(2)}
    assert "files: expected one table, got pictures or several files" in refused(send(visitor, files, name="logos"))
    assert send(visitor, files, name="logos", use="compare").status == 303
    path = tmp_path / "logos.heedful"
    numbers = {picture.name for picture in (path / "pictures").iterdir()}
    assert {picture_in(path, number) for number in numbers} == {(content, "image/png") for content in files.values()}


def test_what_is_wrong_is_said_and_what_was_typed_is_kept(visitor: Visitor, tmp_path: Path) -> None:
    typed = {"name": "mine", "use": "rate", "table": "name,hp\na,1\na,2\n", "range": "5..1", "ask": "Why <so>?"}
    told = send(visitor, **typed)
    assert "ratings: expected" in refused(told)
    assert (told.fields("/") | {"files": ""}) == {**{k: v for k, v in typed.items() if k != "table"}, "files": ""}
    assert (told.one("textarea").text or "").lstrip("\n") == typed["table"]
    for changed, expected in [
        ({"name": "a/b"}, "name: expected a name of 1 to 100 letters"),
        ({"use": "x"}, "use: expected one of rank, one, rate, compare, got 'x'"),
        ({"range": "1..5"}, "identifier: expected a column with another name in every row"),
        ({"table": " "}, "files: expected files or a pasted table, got neither"),
        ({"use": "compare", "table": "name\na\n"}, "table: expected two things or more to compare, got 1"),
        ({"use": "compare", "table": "name\na\nb\n", "ask": " "}, "ask: expected a text of 1 to 300 characters"),
    ]:
        told = refused(send(visitor, **typed | changed))
        assert expected in told, told
        assert str(tmp_path.parent) not in told
        assert "heedful-" not in told
    both = refused(send(visitor, {"a.csv": b"name\na\nb\n"}, name="x", table="name\na\n"))
    assert "files: expected files or a pasted table, got both" in both
    assert "got gzip or Parquet" in refused(send(visitor, {"a.csv.gz": b"\x1f\x8b\x08"}, name="x"))
    assert not list(tmp_path.glob("*.heedful"))
    assert send(visitor, name="mine", table=CARS).status == 303
    assert "name: expected one that is free" in refused(send(visitor, name="mine", table=CARS), 409)
    with Loop.open(tmp_path / "mine.heedful", read_only=True) as loop:
        assert len(loop.items) == 12


def test_the_example_fills_the_form(visitor: Visitor) -> None:
    page = visitor.get("/?example=1")
    assert (page.one("textarea").text or "").lstrip("\n") == CARS
    assert send(visitor, **page.fields("/") | {"table": CARS}).headers["location"] == "/loops/cars"
    assert visitor.get("/").one("details[@class='card']").attrib.get("open") is None


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/x-www-form-urlencoded", b"name=x", 415),
        ("multipart/form-data", b"", 415),
        (FORM, b"", 400),
        (FORM, b"--x\r\n\r\nno name\r\n--x--\r\n", 400),
        (FORM, FIELD + b"cut", 400),
        (FORM, b"--x\r\n" * 1100 + b"--x--", 400),
        (FORM, 2 * (FIELD + b"\r\n") + b"--x--", 422),
    ],
)
def test_a_body_that_is_no_such_form_is_refused(visitor: Visitor, kind: str, body: bytes, status: int) -> None:
    sent = visitor.http.post("/", content=body, headers={"origin": visitor.url, "content-type": kind})
    assert sent.status_code == status


def test_it_takes_admin_a_page_of_this_server_and_a_body_within_the_limit(tmp_path: Path) -> None:
    options = Options()
    options = options._replace(limits=options.limits._replace(body=2000))
    with served(tmp_path, options) as url, closing(Visitor(url)) as visitor:
        assert send(visitor, name="big", table="name\n" + "x" * 2000).status == 413
        other = visitor.http.post("/", files=[("name", (None, "x"))], headers={"origin": "http://elsewhere.example"})
        assert other.status_code == 403
        with closing(Keys(tmp_path)) as keys:
            looker, maker = keys.create("looker", scopes=["read"])[1], keys.create("maker", scopes=["read", "admin"])[1]
        visitor.sign_in(looker)
        assert send(visitor, name="mine", table=CARS).status == 403
        assert not list(tmp_path.glob("*.heedful"))
        visitor.sign_in(maker)
        assert send(visitor, name="mine", table=CARS).status == 303
        newest, *_ = Audit(tmp_path).newest("main", 2**62, 10)
        assert (newest.action, newest.loop) == ("make loop", "mine")
