"""Studies for tests: made of rows, texts or pictures that are drawn here; and what was answered in them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

from heedful import Loop
from heedful.features import encode_names
from heedful.server.links import Links
from heedful.studies.answers import study_answers
from heedful.studies.reading import Material, read_material
from heedful.studies.study import Study, create_study

ASK = "Which feels more trustworthy?"


def png(n: int, size: int = 24) -> bytes:
    """A picture of one colour, another for each n."""
    colour = bytes((37 * n % 256, 91 * n % 256, n // 256 * 50 % 256))
    rows = (b"\0" + colour * size) * size

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def logos(folder: Path, n: int = 6) -> Path:
    """A folder of pictures."""
    folder.mkdir(parents=True)
    for i in range(n):
        (folder / f"logo {i}.png").write_bytes(png(i))
    return folder


def study_of_rows(path: Path, rows: list[dict[str, Any]] | int = 6, goal: Any = "best", **told: Any) -> Path:
    """A study that nobody answered yet, of rows, or of so many words."""
    if isinstance(rows, int):
        rows = [{"name": f"word {i}", "letters": i} for i in range(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    material = Material("rows", rows, encode_names(rows), {}, ())
    create_study(path, material, Study(**{"ask": ASK, **told}), goal).close()
    return path


def study_in(path: Path, source: Path, goal: Any = "best", **told: Any) -> Path:
    """A study of what lies in a folder or file."""
    material = read_material(source)
    create_study(path, material, Study(**{"ask": ASK, "kind": material.kind, **told}), goal).close()
    return path


def link_to(path: Path, segment: str = "", seconds: float = 3600.0, people: int = 1000, shows: bool = False) -> str:
    """The path of a new link to a study in the folder of a server; one that `shows` its ranking, or one that asks."""
    with Loop.open(path) as loop:
        first = loop.projection.log.at(1)
        assert first is not None
    links = Links(path.parent)
    _, token = links.create("main", path.stem, first.time, segment=segment, seconds=seconds, people=people, shows=shows)
    return f"/s/{token}"


def answers(path: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """(who, what they said, of what) of every answer that stands, in order."""
    with Loop.open(path) as loop:
        return [(each.person, each.answer, each.shown) for each in study_answers(loop)]
