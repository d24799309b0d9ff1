"""Make the README's picture from the real page: a click reorders the list, and is taken back.

    make setup && .venv/bin/python docs/pictures/make.py

writes `click.webp`, an animation, beside this file. The server is a real one over generated cars, and the browser a
real Chromium (`tests/browser/chromium.py` finds or installs one); the page's own animations are held and drawn step by
step, so that the picture is the same however slow the machine is.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "tests" / "browser")]

import chromium  # noqa: E402
from cars import cars, loop_of_cars  # noqa: E402
from heedful.server.context import Options  # noqa: E402
from processes import here  # noqa: E402
from teaching import Teaching, middle  # noqa: E402
from watching import come  # noqa: E402

SIZE = {"width": 1120, "height": 660}
SCALE = 1
FRAME = 45  # milliseconds
WORDS = {
    "horsepower": ("more horsepower", "less horsepower"),
    "weight": ("heavier", "lighter"),
    "miles per gallon": ("more miles per gallon", "fewer miles per gallon"),
    "seconds to 60": ("slower to 60 mph", "quicker to 60 mph"),
    "year": ("newer", "older"),
} | {f"origin={there}": (f"from {there}", f"not from {there}") for there in ("Europe", "Japan", "USA")}
LARGEST = 600_000  # bytes
HOW = {"save_all": True, "loop": 0, "minimize_size": True, "method": 4}

HOLD = """() => {
    const animate = Element.prototype.animate;
    window.held = [];
    Element.prototype.animate = function (...how) {
        const it = animate.apply(this, how);
        it.pause();
        window.held.push(it);
        return it;
    };
    const pointer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    pointer.setAttribute("viewBox", "0 0 24 24");
    pointer.innerHTML = `<circle cx="5" cy="3" r="0" fill="#0f6b5c" opacity=".35"/>
        <path d="M5 3l6.6 16 2.2-6.6 6.6-2.2z" fill="#111" stroke="#fff" stroke-width="1.4"/>`;
    const look = { position: "fixed", width: "34px", height: "34px", overflow: "visible" };
    Object.assign(pointer.style, look, { zIndex: 9, pointerEvents: "none" });
    document.body.append(pointer);
    window.point = (x, y, ring) => {
        pointer.style.left = `${x - 7}px`;
        pointer.style.top = `${y - 4}px`;
        pointer.querySelector("circle").setAttribute("r", ring);
    };
}"""


class Film:
    """Frames, each with how long it is seen."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[tuple[Image.Image, int]] = []
        self.x, self.y = SIZE["width"] * 0.62, SIZE["height"] * 0.5

    def take(self, milliseconds: int = FRAME, ring: float = 0.0) -> None:
        """One frame of the page as it is, the pointer where the mouse is."""
        self.page.evaluate("([x, y, ring]) => window.point(x, y, ring)", [self.x, self.y, ring])
        self.frames.append((Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"), milliseconds))

    def go(self, to: Locator) -> None:
        """The mouse goes there."""
        x, y = middle(to)
        from_x, from_y = self.x, self.y
        for part in eased(14):
            self.x, self.y = from_x + part * (x - from_x), from_y + part * (y - from_y)
            self.page.mouse.move(self.x, self.y)
            self.take()
        self.page.wait_for_timeout(250)  # what hovering changes
        self.take(350)

    def click(self) -> None:
        """Click, and what moves then."""
        self.take(80, ring=6.0)
        self.page.evaluate("() => { window.held = [] }")
        self.page.mouse.click(self.x, self.y)
        come(self.page, "() => window.held.length > 0")
        for at in range(0, 520, FRAME):
            self.page.evaluate("at => { for (const it of window.held) it.currentTime = at }", at)
            self.take(ring=max(0.0, 6.0 - at / 30))
        self.page.evaluate("() => { for (const it of window.held) it.finish() }")
        self.page.wait_for_timeout(250)

    def save(self, path: Path) -> None:
        """As an animation that goes round. ValueError where it is too large for a page."""
        images, durations = zip(*self.frames, strict=True)
        images[0].save(path, append_images=images[1:], duration=durations, quality=80, **HOW)
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.name}: wanted at most {LARGEST:,} bytes, got {path.stat().st_size:,}")


def eased(steps: int) -> Iterator[float]:
    """From 0 to 1, slowly at both ends."""
    return (part * part * (3 - 2 * part) for part in (step / steps for step in range(1, steps + 1)))


def hand() -> list[str]:
    """Five cars as nobody ordered them yet: what is light and thrifty comes last."""
    by_weight = [car["name"] for car in sorted(cars(), key=lambda car: car["weight"])]
    light, heavy = by_weight[2:20:9], by_weight[-4:-20:-6]
    return [heavy[0], heavy[1], light[0], heavy[2], light[1]]


def main() -> None:
    """Make the picture."""
    path = chromium.find()
    if path is None:
        sys.exit(f"heedful: {chromium.WANTED}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        loops = Path(folder) / "loops"
        loops.mkdir()
        loop_of_cars(loops / "cars.heedful", control=0.0)
        with here(loops, Options(words=WORDS)) as (_, server):
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)  # type: ignore[arg-type]
            page.goto(f"{server.base_url}/loops/cars?hand={quote(msgspec.json.encode(hand()).decode())}")
            teaching = Teaching(page)
            page.evaluate(HOLD)
            film = Film(page)
            film.take(900)
            film.go(teaching.pick(teaching.hand()[-1]))
            film.click()
            film.take(2600)
            film.go(page.locator("#undo"))
            film.click()
            expect(page.locator("#side .lessons .undone")).to_have_count(1)
            film.take(1500)
            browser.close()
    picture = HERE / "click.webp"
    film.save(picture)
    print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
