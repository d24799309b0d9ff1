"""Checks of pictures by their bytes: what type it is, whether it is complete, whether a browser can safely draw it."""

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
"""The most bytes of a picture."""
PIXELS = 50_000_000
"""The most pixels of a picture, as a browser decodes all of them."""
DRAWN = 50_000
"""The most elements of an SVG; one that is used several times (<use>) counts each time."""
DEEP = 500
"""The deepest nesting of elements in an SVG."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
KINDS = "PNG, JPEG, GIF, WebP or SVG"

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # the only formats that Pillow may try
_ORIENTATION = 0x0112  # the tag of Exif data that says how to turn a photograph
_LENGTH = re.compile(r"\s*([0-9.]+)(px|pt|pc|mm|cm|in)?\s*")


def picture_type(content: bytes) -> str:
    """Return the media type of a picture, such as "image/png", having checked its whole `content`.

    Raise ValueError if it is empty, no PNG, JPEG, GIF, WebP or SVG, cut off or damaged, larger than 10 MiB or 50
    million pixels, or an SVG with too many or too deeply nested elements for a browser.
    """
    if not content:
        raise ValueError(f"expected {KINDS}, got an empty file")
    if len(content) > MOST:
        raise ValueError(f"expected at most {MOST // 2**20} MiB, got {len(content) / 2**20:.1f}")
    kind = media_type(content)
    if kind is None:
        raise ValueError(f"expected {KINDS}, got something else")
    if kind == "image/svg+xml":
        _check_svg(content)
    else:
        _check_whole(content, kind)
    return kind


def media_type(content: bytes) -> str | None:
    """Return the media type of a picture by the first bytes of its `content`; None if they are of no known type.

    Nothing else is checked: the rest may be missing or damaged.
    """
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
    """Return width over height of a picture as it is shown, between 0.01 and 100; 1 if it cannot be found out.

    `content` has passed `picture_type`. A JPEG is turned as its Exif data say; the size of an SVG is in its first
    element.
    """
    return min(max(_ratio(content), 0.01), 100.0)


def _ratio(content: bytes) -> float:
    """Return width over height of the picture `content`, as it is shown; 1 if it cannot be found out."""
    kind = media_type(content)
    if kind == "image/svg+xml":
        return _svg_ratio(content)
    with warnings.catch_warnings(), suppress(Exception):  # Pillow may raise anything on a damaged file
        warnings.simplefilter("ignore")  # Exif that is cut off: then nothing is turned
        with _read_head(content) as image:
            width, height = image.size
            turned = kind == "image/jpeg" and _is_turned(image)
            return height / width if turned else width / height
    return 1.0


def _read_head(content: bytes) -> Image:
    """Open the picture `content` with Pillow, which reads only its header for now."""
    from PIL import Image

    return Image.open(BytesIO(content), formats=_FORMATS)


def _check_whole(content: bytes, kind: str) -> None:
    """Raise ValueError if a picture is cut off, damaged or, by its header, before decoding, has too many pixels."""
    from PIL.Image import DecompressionBombError

    size = "more"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an error says what is wrong
            with _read_head(content) as image:
                size = f"{image.width} x {image.height}"
                if not 0 < image.width * image.height <= PIXELS:
                    raise DecompressionBombError
                image.verify()  # the checksums of a PNG
            with _read_head(content) as image:
                image.draft(None, (1, 1))  # a JPEG at an eighth of its size: all of its bytes are read all the same
                image.load()
        # Pillow does not notice that the end of these two is missing.
        end = {"image/png": b"IEND\xaeB`\x82" in content, "image/gif": content.rstrip(b"\0").endswith(b";")}
        if not end.get(kind, True):
            raise EOFError
    except DecompressionBombError:
        raise ValueError(f"expected 1 to {PIXELS:,} pixels, got {size}") from None
    except Exception as error:  # Pillow may raise anything on a damaged file
        name = kind.removeprefix("image/").upper().replace("WEBP", "WebP")
        raise ValueError(f"expected a whole {name}, got one that is cut off or damaged") from error


def _is_turned(image: Image) -> bool:
    """Return whether the Exif data of `image` turn it by 90 degrees, so that width and height change places."""
    try:
        return 5 <= int(image.getexif().get(_ORIENTATION, 1)) <= 8
    except Exception:  # Exif that makes no sense
        return False


def _check_svg(content: bytes) -> None:
    """Raise ValueError for an SVG that is malformed, declares entities, or is too large or deep with <use> expanded."""
    names: list[str] = []
    uses: list[str] = []  # for each element in order, the id that it uses; "" for none
    ends: list[int] = []  # for each element, the number of the first one after it that is not in it
    within: list[int] = []  # the numbers of the elements that are open
    first: dict[str, int] = {"": 0}  # id -> the first element with it, which is the one used; "": the whole SVG

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
        check_count(len(uses))

    def end(_: str) -> None:
        ends[within.pop()] = len(uses)

    def check_count(parts: int) -> None:
        if parts > DRAWN:
            raise ValueError(
                f"expected an SVG of at most {DRAWN:,} parts, those that are used again counted again, got more"
            )

    def count_drawn(id: str, above: tuple[str, ...] = ()) -> int:
        if id in above or len(above) > 50:
            raise ValueError("expected an SVG whose parts do not use themselves, got one that does")
        if id not in counts:
            start = first[id]
            parts = ends[start] - start
            for used in uses[start : ends[start]]:
                if used and used in first:
                    parts += count_drawn(used, (*above, id))
                    check_count(parts)
            counts[id] = parts
        return counts[id]

    counts: dict[str, int] = {}
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = entity
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an unknown encoding
        raise ValueError(f"expected a whole SVG, got one that is none: {error}") from None
    if names[0].rpartition(":")[2] != "svg":
        raise ValueError(f"expected an SVG, got a document of {names[0][:40]!r}")
    count_drawn("")


def _svg_ratio(content: bytes) -> float:
    """Return width over height of an SVG: by its width and height if their units agree, else its viewBox, else 1."""
    roots: list[dict[str, str]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda _, attributes: roots.append(attributes) if not roots else None
    with suppress(expat.ExpatError, LookupError):
        parser.Parse(content, True)
    root = roots[0] if roots else {}
    width, height = (_LENGTH.fullmatch(root.get(name, "")) for name in ("width", "height"))
    with suppress(ValueError, ZeroDivisionError):
        if width and height and width[2] == height[2] and (ratio := float(width[1]) / float(height[1])) > 0.0:
            return ratio
    with suppress(ValueError, ZeroDivisionError):
        *_, across, down = map(float, re.split(r"[\s,]+", root.get("viewBox", "").strip()))
        if across / down > 0.0:
            return across / down
    return 1.0
