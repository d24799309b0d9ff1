"""What axe-core finds wrong with a page, and where the focus goes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page

from watching import still

AXE = (Path(__file__).parents[1] / "vendor" / "axe.min.js").read_text()
GRAVE = {"serious", "critical"}


def findings(page: Page) -> list[str]:
    """Whatever axe-core calls serious or critical, in light and in dark."""
    still(page)
    page.evaluate(AXE)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        still(page)
        told: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations', 'incomplete'] })")
        assert told["passes"], "axe looked at nothing"
        found += [
            f"{scheme}: {wrong['id']}: {node['target']}: {node['failureSummary']}"
            for wrong in told["violations"]
            for node in wrong["nodes"]
            if wrong["impact"] in GRAVE
        ]
    page.emulate_media(color_scheme="light")
    return found


STOP = """() => {
    const it = document.activeElement;
    if (it === document.body || it === document.documentElement) return null;
    const box = it.getBoundingClientRect();
    const ring = [null, "::before", "::after"].some(part => {
        const { outlineStyle, outlineWidth, content } = getComputedStyle(it, part);
        return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && (!part || content !== "none");
    });
    const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
    window.stops = window.stops || new Map();
    if (!window.stops.has(it)) window.stops.set(it, window.stops.size);
    const name = it.ariaLabel || it.textContent.trim() || it.name || it.tagName;
    return { name: name.replace(/\\s+/g, " "), ring, seen, nth: window.stops.get(it) };
}"""


def stops(page: Page, most: int = 200) -> list[str]:
    """What the focus stops at, one Tab after the other, until the page is left; each must be seen to have it."""
    found: list[str] = []
    page.evaluate("() => { document.activeElement.blur(); window.stops = new Map(); }")
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None or (found and stop["nth"] == 0):
            return found
        assert stop["nth"] == len(found), f"the focus goes round before the end of the page: {found} {stop}"
        assert stop["ring"], f"nobody sees where the focus is: {stop}"
        assert stop["seen"], f"the focus is out of sight: {stop}"
        found.append(stop["name"])
    raise AssertionError(f"there is no end to {found}")


def contrast(it: Locator) -> float:
    """Of the lightest and the darkest that is drawn there, after WCAG: whatever colours the page was given."""
    drawn = np.asarray(Image.open(BytesIO(it.screenshot())).convert("RGB"), float) / 255
    linear = np.where(drawn <= 0.04045, drawn / 12.92, ((drawn + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return float((luminance.max() + 0.05) / (luminance.min() + 0.05))


def tab_to(page: Page, selector: str, most: int = 120) -> None:
    """Press Tab until something of that kind has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"the keyboard does not come to {selector}")
