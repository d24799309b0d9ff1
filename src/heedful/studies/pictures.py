"""Recognises pictures by their bytes: type, whether the file is complete, whether a browser may show it."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING
from xml.parsers import expat

if TYPE_CHECKING:
    from PIL.Image import Image

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

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # that Pillow reads for us; of the others, none is tried
_TURN = 0x0112  # of Exif: which way up
_LENGTH = re.compile(r"\s*([0-9.]+)(px|pt|pc|mm|cm|in)?\s*")


def picture_type(content: bytes) -> str:
    """Media type of a complete picture. ValueError, with what was expected and what came, for anything else."""
    if not content:
        raise ValueError(f"expected {KINDS}, got an empty file")
    if len(content) > MOST:
        raise ValueError(f"expected at most {MOST // 2**20} MiB, got {len(content) / 2**20:.1f}")
    kind = media_type(content)
    if kind is None:
        raise ValueError(f"expected {KINDS}, got something else")
    if kind == "image/svg+xml":
        _svg(content)
    else:
        _check_whole(content, kind)
    return kind


def media_type(content: bytes) -> str | None:
    """Media type by the first bytes, for files checked before; None where unknown."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return "image/svg+xml" if b"<svg" in content[:4096] else None


def aspect_ratio(content: bytes) -> float:
    """Width over height as shown, for files checked before: turned by Exif for photographs, from the first element of
    an SVG; 1 where unknown; between 0.01 and 100.
    """
    return min(max(_ratio(content), 0.01), 100.0)


def _ratio(content: bytes) -> float:
    kind = media_type(content)
    if kind == "image/svg+xml":
        return _drawing_ratio(content)
    with warnings.catch_warnings(), suppress(Exception):  # Pillow may raise anything at what makes no sense to it
        warnings.simplefilter("ignore")  # an Exif that is cut off: then nothing is turned
        with _read_head(content) as image:
            width, height = image.size
            turned = kind == "image/jpeg" and _is_turned(image)
            return height / width if turned else width / height
    return 1.0


def _read_head(content: bytes) -> Image:
    """The picture with only its header read by Pillow."""
    from PIL import Image

    return Image.open(BytesIO(content), formats=_FORMATS)


def _check_whole(content: bytes, kind: str) -> None:
    """Raise ValueError where a picture is cut off, damaged, or has too many pixels, before any pixel is read."""
    from PIL.Image import DecompressionBombError

    size = "more"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is told by an error
            with _read_head(content) as image:
                size = f"{image.width} x {image.height}"
                if not 0 < image.width * image.height <= PIXELS:
                    raise DecompressionBombError
                image.verify()  # the sums of all parts of a PNG
            with _read_head(content) as image:
                image.draft(None, (1, 1))  # of a JPEG an eighth as wide and high is enough: all of its bytes are read
                image.load()
        # Pillow does not miss the end of these two.
        end = {"image/png": b"IEND\xaeB`\x82" in content, "image/gif": content.rstrip(b"\0").endswith(b";")}
        if not end.get(kind, True):
            raise EOFError
    except DecompressionBombError:
        raise ValueError(f"expected 1 to {PIXELS:,} pixels, got {size}") from None
    except Exception as error:  # Pillow may say anything of what makes no sense to it
        name = kind.removeprefix("image/").upper().replace("WEBP", "WebP")
        raise ValueError(f"expected a whole {name}, got one that is cut off or damaged") from error


def _is_turned(image: Image) -> bool:
    """Whether Exif turns a photograph by a quarter."""
    try:
        return 5 <= int(image.getexif().get(_TURN, 1)) <= 8
    except Exception:  # Exif that makes no sense
        return False


def _svg(content: bytes) -> None:
    """Check an SVG: well-formed, without entities, of which ten lines can make gigabytes, and without deeply reused
    parts, which no browser could draw. ValueError otherwise.
    """
    names: list[str] = []
    uses: list[str] = []  # of each element in order, which one it uses; "" where it uses none
    ends: list[int] = []  # of each, the number of the first after it that is not in it
    within: list[int] = []  # the numbers of those that are open
    first: dict[str, int] = {"": 0}  # id -> the first element of that id, which is the one that is used; "" is all

    def entity(*_: object) -> None:
        raise ValueError("expected an SVG without entities of its own, got one with some")

    def start(name: str, attributes: dict[str, str]) -> None:
        names.append(name) if not names else None
        if len(within) >= DEEP:
            raise ValueError(f"expected an SVG of at most {DEEP} parts within each other, got more")
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
                f"expected an SVG of at most {DRAWN:,} parts, those that are used again counted again, got more"
            )

    def drawn(id: str, above: tuple[str, ...] = ()) -> int:
        if id in above or len(above) > 50:
            raise ValueError("expected an SVG whose parts do not use themselves, got one that does")
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
        raise ValueError(f"expected a whole SVG, got one that is none: {error}") from None
    if names[0].rpartition(":")[2] != "svg":
        raise ValueError(f"expected an SVG, got a document of {names[0][:40]!r}")
    drawn("")


def _drawing_ratio(content: bytes) -> float:
    """Width over height of an SVG: its own, where both are lengths of one unit, else that of its viewBox."""
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
