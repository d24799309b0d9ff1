"""What a file of a picture is, by its bytes: its kind, whether it is whole, whether a browser can be given it."""

from __future__ import annotations

import re
import struct
import zlib
from contextlib import suppress
from xml.parsers import expat

MOST = 10 * 2**20
"""Bytes of a picture."""
PIXELS = 50_000_000
"""Of a picture, at most: a browser unpacks all of them."""
DRAWN = 50_000
"""Elements of an SVG that a browser draws, at most."""
DEEP = 500
"""Elements of an SVG within each other, at most."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
KINDS = "PNG, JPEG, GIF, WebP or SVG"

_PNG = b"\x89PNG\r\n\x1a\n"
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # of JPEG, which say how large it is
_TURN = 0x0112  # of Exif: which way up
_LENGTH = re.compile(r"\s*([0-9.]+)(px|pt|pc|mm|cm|in)?\s*")
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers of JPEG that nothing follows


def picture_type(content: bytes) -> str:
    """The media type of a picture that is whole. ValueError: what was wanted, and what came."""
    if not content:
        raise ValueError(f"wanted {KINDS}, got an empty file")
    if len(content) > MOST:
        raise ValueError(f"wanted at most {MOST // 2**20} MiB, got {len(content) / 2**20:.1f}")
    if content.startswith(_PNG):
        return _sized("image/png", *_png(content))
    if content.startswith(b"\xff\xd8\xff"):
        return _sized("image/jpeg", *_jpeg(content))
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return _sized("image/gif", *_gif(content))
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _sized("image/webp", *_webp(content))
    if b"<svg" in content[:4096]:
        _svg(content)
        return "image/svg+xml"
    raise ValueError(f"wanted {KINDS}, got something else")


def sniffed(content: bytes) -> str | None:
    """The media type by the first bytes alone, of what was looked at before; None where it is none of ours."""
    if content.startswith(_PNG):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return "image/svg+xml" if b"<svg" in content[:4096] else None


def aspect_ratio(content: bytes) -> float:
    """How many times as wide as high a picture is shown, of one that was looked at before: turned as a photograph says,
    and of an SVG as its first element says; 1 where nothing says it; from 0.01 to 100, whatever is said."""
    return min(max(_ratio(content), 0.01), 100.0)


def _ratio(content: bytes) -> float:
    kind = sniffed(content)
    if kind == "image/svg+xml":
        return _drawing_ratio(content)
    reads = {"image/png": _png_size, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
    width, height = reads[kind](content) if kind in reads else (1, 1)
    return height / width if kind == "image/jpeg" and _lies(content) else width / height


def _sized(kind: str, width: int, height: int) -> str:
    if not (width and height) or width * height > PIXELS:
        raise ValueError(f"wanted 1 to {PIXELS:,} pixels, got {width} x {height}")
    return kind


def _png(content: bytes) -> tuple[int, int]:
    at, size = 8, (0, 0)
    while True:
        if at + 12 > len(content):
            raise ValueError("wanted a whole PNG, got one that is cut off")
        [length] = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + length
        if end > len(content):
            raise ValueError("wanted a whole PNG, got one that is cut off")
        [check] = struct.unpack_from(">I", content, end - 4)
        if zlib.crc32(content[at + 4 : end - 4]) != check:
            raise ValueError("wanted a whole PNG, got a damaged one")
        if (kind == b"IHDR") != (at == 8) or (kind == b"IHDR" and length != 13):
            raise ValueError("wanted a PNG with one header, got another")
        if kind == b"IHDR":
            size = struct.unpack_from(">II", content, at + 8)
        if kind == b"IEND":
            return size
        at = end


def _png_size(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", content, 16)
    return width, height


def _jpeg(content: bytes) -> tuple[int, int]:
    at, size = 2, (0, 0)
    while True:
        while content[at : at + 2] == b"\xff\xff":  # filling
            at += 1
        if at + 4 > len(content) or content[at] != 0xFF:
            raise ValueError("wanted a whole JPEG, got one that is cut off or damaged")
        marker = content[at + 1]
        if marker in _ALONE:
            at += 2
            continue
        [length] = struct.unpack_from(">H", content, at + 2)
        if marker in _FRAMES and length >= 7 and at + 9 <= len(content):
            height, width = struct.unpack_from(">HH", content, at + 5)
            size = (width, height)
        if marker == 0xDA:
            if content.find(b"\xff\xd9", at) < 0:
                raise ValueError("wanted a whole JPEG, got one that is cut off")
            return size
        at += 2 + length


def _lies(content: bytes) -> bool:
    """Whether a JPEG is to be turned by a quarter before it is shown, as its Exif says."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF and content[at + 1] != 0xDA:
        [length] = struct.unpack_from(">H", content, at + 2)
        if content[at + 1] == 0xE1 and content[at + 4 : at + 10] == b"Exif\0\0":
            exif = content[at + 10 : at + 2 + length]
            order = ">" if exif[:2] == b"MM" else "<"
            with suppress(struct.error):
                [first] = struct.unpack_from(f"{order}I", exif, 4)
                [entries] = struct.unpack_from(f"{order}H", exif, first)
                for entry in range(entries):
                    tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, first + 2 + 12 * entry)
                    if tag == _TURN:
                        return 5 <= int(value) <= 8
            return False
        at += 2 + length
    return False


def _gif(content: bytes) -> tuple[int, int]:
    if len(content) < 14 or not content.rstrip(b"\0").endswith(b"\x3b"):
        raise ValueError("wanted a whole GIF, got one that is cut off")
    width, height = struct.unpack_from("<HH", content, 6)
    return width, height


def _webp(content: bytes) -> tuple[int, int]:
    [length] = struct.unpack_from("<I", content, 4)
    if length + 8 > len(content) or len(content) < 30:
        raise ValueError("wanted a whole WebP, got one that is cut off")
    kind, head = content[12:16], content[20:]
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(head[i : i + 3], "little") for i in (4, 7))
        return width, height
    if kind == b"VP8L" and head[:1] == b"\x2f":
        bits = int.from_bytes(head[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 6)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("wanted a WebP of a kind that is known, got another")


def _svg(content: bytes) -> None:
    """SVG is text that a browser draws: well-formed, without entities, of which ten lines can make gigabytes, and
    without parts that are used so often, by parts that are used so often, that nobody can draw it."""
    names: list[str] = []
    uses: list[str] = []  # of each element in order, which one it uses; "" where it uses none
    ends: list[int] = []  # of each, the number of the first after it that is not in it
    within: list[int] = []  # the numbers of those that are open
    first: dict[str, int] = {"": 0}  # id -> the first element of that id, which is the one that is used; "" is all

    def entity(*_: object) -> None:
        raise ValueError("wanted an SVG without entities of its own, got one with some")

    def start(name: str, attributes: dict[str, str]) -> None:
        names.append(name) if not names else None
        if len(within) >= DEEP:
            raise ValueError(f"wanted an SVG of at most {DEEP} parts within each other, got more")
        first.setdefault(attributes.get("id", ""), len(uses))
        within.append(len(uses))
        used = attributes.get("href", attributes.get("xlink:href", "")).removeprefix("#")
        uses.append(used if name.rpartition(":")[2] == "use" else "")
        ends.append(0)
        few(len(uses))

    def end(_: str) -> None:
        ends[within.pop()] = len(uses)

    def few(parts: int) -> None:
        if parts > DRAWN:
            raise ValueError(
                f"wanted an SVG of at most {DRAWN:,} parts, those that are used again counted again, got more"
            )

    def drawn(id: str, above: tuple[str, ...] = ()) -> int:
        if id in above or len(above) > 50:
            raise ValueError("wanted an SVG whose parts do not use themselves, got one that does")
        if id not in known:
            at = first[id]
            parts = ends[at] - at
            for used in uses[at : ends[at]]:
                if used and used in first:
                    parts += drawn(used, (*above, id))
                    few(parts)
            known[id] = parts
        return known[id]

    known: dict[str, int] = {}
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = entity
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: of an encoding that nobody knows
        raise ValueError(f"wanted a whole SVG, got one that is none: {error}") from None
    if names[0].rpartition(":")[2] != "svg":
        raise ValueError(f"wanted an SVG, got a document of {names[0][:40]!r}")
    drawn("")


def _drawing_ratio(content: bytes) -> float:
    """Width by height of an SVG: its own, where both are lengths of one unit, otherwise that of its viewBox."""
    found: list[dict[str, str]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda _, attributes: found.append(attributes) if not found else None
    with suppress(expat.ExpatError, LookupError):
        parser.Parse(content, True)
    root = found[0] if found else {}
    width, height = (_LENGTH.fullmatch(root.get(name, "")) for name in ("width", "height"))
    with suppress(ValueError, ZeroDivisionError):
        if width and height and width[2] == height[2] and (ratio := float(width[1]) / float(height[1])) > 0.0:
            return ratio
    with suppress(ValueError, ZeroDivisionError):
        *_, across, down = map(float, re.split(r"[\s,]+", root.get("viewBox", "").strip()))
        if across / down > 0.0:
            return across / down
    return 1.0
