"""What a file of a picture is, by its bytes."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile, ImageOps

from compared import logos, png
from heedful.studies.pictures import DEEP, DRAWN, MOST, aspect_ratio, media_type, picture_type
from heedful.studies.reading import read_material

SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0"/></svg>'
BOMB = b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&b;</svg>'


def drawn(kind: str, **how: object) -> bytes:
    """A picture as somebody else writes it."""
    out = io.BytesIO()
    noise = Image.effect_noise((64, 48), 90.0).convert("RGB")
    noise.save(out, kind, **how)
    return out.getvalue()


MADE = {
    "png": (drawn("PNG"), "image/png"),
    "own png": (png(3), "image/png"),
    "jpeg": (drawn("JPEG"), "image/jpeg"),
    "progressive jpeg": (drawn("JPEG", progressive=True, quality=95), "image/jpeg"),
    "gif": (drawn("GIF"), "image/gif"),
    "webp": (drawn("WEBP"), "image/webp"),
    "lossless webp": (drawn("WEBP", lossless=True), "image/webp"),
    "svg": (SVG, "image/svg+xml"),
}


@pytest.mark.parametrize("kind", MADE)
def test_whole_pictures_are_known_by_their_bytes(kind: str) -> None:
    content, media = MADE[kind]
    assert picture_type(content) == media == media_type(content)


@pytest.mark.parametrize("kind", [kind for kind in MADE if "png" not in kind or kind == "png"])
def test_how_wide_a_picture_is_for_its_height(kind: str) -> None:
    assert aspect_ratio(MADE[kind][0]) == pytest.approx(1.0 if kind == "svg" else 64 / 48)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_photograph_that_is_turned_is_as_wide_as_it_is_shown(turn: int, order: str) -> None:
    exif = Image.Exif()
    exif.endian = order
    exif[0x0112] = turn
    content = drawn("JPEG", exif=exif)
    shown = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    assert aspect_ratio(content) == pytest.approx(shown.width / shown.height)
    assert shown.width / shown.height == pytest.approx(64 / 48 if turn < 5 else 48 / 64)


@pytest.mark.parametrize(
    "rest", [b"", b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"]
)
def test_what_is_said_of_a_turn_may_be_anything(rest: bytes) -> None:
    content = drawn("JPEG")
    odd = content[:2] + b"\xff\xe1" + (len(rest) + 2).to_bytes(2, "big") + rest + content[2:]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert aspect_ratio(odd) == pytest.approx(64 / 48)
    assert not heard


@pytest.mark.parametrize(
    ("head", "ratio"),
    [
        ('width="300" height="100"', 3.0),
        ('width="3cm" height="1.5cm" viewBox="0 0 9 1"', 2.0),
        ('width="100%" height="100%" viewBox="0 0 9 2"', 4.5),
        ('width="300px" viewBox="-1,-1,2 8"', 0.25),
        ('width="1in" height="10px" viewBox="0 0 4 2"', 2.0),
        ('viewBox="0 0 0 0"', 1.0),
        ('viewBox="a b c d" width="x"', 1.0),
        ('width="0" height="5"', 1.0),
        ("", 1.0),
        (f'width="{"9" * 400}" height="1"', 100.0),
        ('viewBox="0 0 1 inf"', 1.0),
        ('viewBox="0 0 nan 1"', 1.0),
        ('width="1.2.3" height="1" viewBox="0 0 2 1"', 2.0),
    ],
)
def test_how_wide_a_drawing_is_for_its_height(head: str, ratio: float) -> None:
    assert aspect_ratio(f'<svg xmlns="http://www.w3.org/2000/svg" {head}><g/></svg>'.encode()) == pytest.approx(ratio)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("part", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_pictures_that_are_cut_off_are_refused(kind: str, part: float) -> None:
    content, _ = MADE[kind]
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        picture_type(content[: int(part * len(content))])


def test_a_png_with_one_changed_byte_is_refused() -> None:
    content = bytearray(MADE["png"][0])
    content[len(content) // 2] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        picture_type(bytes(content))


@pytest.mark.parametrize(
    "content",
    [b"", b"GIF", b"<html><svg></svg></html>", BOMB, b"BM" + b"\0" * 90, b"%PDF-1.7", b"<svg", b"\xff\xd8\xff"],
)
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        picture_type(content)


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 10 MiB"):
        picture_type(MADE["png"][0] + b"\0" * MOST)
    huge = bytearray(png(1))
    huge[16:24] = b"\0\0\xff\xff\0\0\xff\xff"  # 65,535 x 65,535
    with pytest.raises(ValueError, match="damaged"):  # its sum tells
        picture_type(bytes(huge))


def png_of(width: int, height: int) -> bytes:
    """A PNG whose head says that it is so large, with the pixels of a small one."""
    head, small = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0), png(1)
    return small[:12] + head + struct.pack(">I", zlib.crc32(head)) + small[33:]


def gif_of(width: int, height: int) -> bytes:
    """As `png_of`, of GIF."""
    small = MADE["gif"][0]
    return small[:6] + struct.pack("<HH", width, height) + small[10:]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [png_of, gif_of])
@pytest.mark.parametrize(("width", "height"), [(7072, 7072), (10_000, 10_000), (65_535, 65_535)])
def test_too_many_pixels_are_refused_before_one_is_read(
    make: Callable[[int, int], bytes], width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda _: pytest.fail("pixels were read"))
    told = "more" if width > 20_000 else f"{width} x {height}"
    with pytest.raises(ValueError, match=f"^expected 1 to 50,000,000 pixels, got {told}$"):
        picture_type(make(width, height))


def test_as_many_pixels_as_may_be_are_read() -> None:
    with pytest.raises(ValueError, match=r"^expected a whole PNG, got one that is cut off or damaged$"):
        picture_type(png_of(5000, 10_000))  # its pixels are too few


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "MPO"])
def test_pictures_of_several_frames_are_taken(kind: str) -> None:
    """Those that move; and a photograph with a second one behind it, as telephones write them."""
    frames = [Image.effect_noise((64, 48), 90.0).convert("RGB") for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    media = "image/jpeg" if kind == "MPO" else f"image/{kind.lower()}"
    assert picture_type(out.getvalue()) == media
    assert aspect_ratio(out.getvalue()) == pytest.approx(64 / 48)


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "svg"])
@pytest.mark.parametrize("cut", [1, 2, 4])
def test_pictures_without_their_last_bytes_are_refused(kind: str, cut: int) -> None:
    with pytest.raises(ValueError, match=r"^expected a whole .*, got one that is cut off or damaged$"):
        picture_type(MADE[kind][0][:-cut])


@given(kind=st.sampled_from([kind for kind in MADE if kind != "svg"]), data=st.data())
def test_whatever_is_in_a_picture_is_taken_or_refused(kind: str, data: st.DataObject) -> None:
    content = bytearray(MADE[kind][0])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, min(len(content), 200) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        picture_type(bytes(content))
    assert 0.01 <= aspect_ratio(bytes(content)) <= 100.0


def uses(times: int, levels: int) -> bytes:
    """An SVG of few lines in which each group uses the one before so many times."""
    groups = ['<g id="g0"><path d="M0 0"/></g>']
    groups += [f'<g id="g{i}">' + f'<use href="#g{i - 1}"/>' * times + "</g>" for i in range(1, levels)]
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(groups)}</svg>'.encode()


def test_parts_that_are_used_again_count_again() -> None:
    assert picture_type(uses(4, 5)) == "image/svg+xml"
    assert picture_type(uses(100, 2)) == "image/svg+xml"  # a pattern of dots
    with pytest.raises(ValueError, match="at most 50,000 parts"):
        picture_type(uses(10, 6))
    itself = b'<svg xmlns:xlink="x"><g id="a"><use xlink:href="#b"/></g><g id="b"><use xlink:href="#a"/></g></svg>'
    with pytest.raises(ValueError, match="do not use themselves"):
        picture_type(itself)
    # 4 parts; then each use of a is itself and three, each of b itself and two.
    within = b'<svg><g id="a"><g id="b"><path/></g></g>' + b'<use href="#a"/>' * 9000
    assert picture_type(within + b'<use href="#b"/>' * 4665 + b"</svg>") == "image/svg+xml"
    with pytest.raises(ValueError, match="at most 50,000 parts"):
        picture_type(within + b'<use href="#b"/>' * 4666 + b"</svg>")


def test_parts_within_parts_are_few(tmp_path: Path) -> None:
    def nested(levels: int) -> bytes:
        return b"<svg>" + b"<g>" * (levels - 1) + b"</g>" * (levels - 1) + b"</svg>"

    assert picture_type(nested(DEEP)) == "image/svg+xml"
    with pytest.raises(ValueError, match=f"^expected an SVG of at most {DEEP} parts within each other, got more"):
        picture_type(nested(DEEP + 1))
    with pytest.raises(ValueError, match="at most 50,000 parts"):
        picture_type(b"<svg>" + b"<g/>" * DRAWN + b"</svg>")
    folder = logos(tmp_path / "logos", 2)
    (folder / "deep.svg").write_bytes(nested(100_000))
    [left] = read_material(folder).left_out
    assert (left.name, left.why) == ("deep.svg", f"expected an SVG of at most {DEEP} parts within each other, got more")


@pytest.mark.parametrize("encoding", ["bogus", "rot13", "hex"])
def test_an_encoding_that_nobody_knows_is_told(encoding: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a whole SVG"):
        picture_type(f'<?xml version="1.0" encoding="{encoding}"?><svg xmlns="x"/>'.encode())
