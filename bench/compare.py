"""How soon the next question is there: from the key that answers to the changed page, in a real Chromium.

    .venv/bin/python bench/compare.py [--quick]

A server in a process of its own, as `heedful serve` starts it; rows without features, one person, then twenty people
who answer by HTTP meanwhile, each every four seconds.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import record

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "browser")]

import chromium
import httpx
from compared import link_to, study_of_rows
from playwright.sync_api import Page, sync_playwright
from processes import Process

ITEMS, PEOPLE, PAUSE = (20, 100, 1000), 20, 4.0
ONCE = """key => new Promise(done => {
    const began = performance.now(), before = document.getElementById("ask");
    new MutationObserver((_, watching) => {
        if (document.getElementById("ask") === before) return;
        watching.disconnect();
        done(performance.now() - began);
    }).observe(document.querySelector("main"), { childList: true, subtree: true });
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
})"""


def answered(page: Page, answers: int) -> list[float]:
    """Milliseconds from each key to the next question."""
    found = []
    for i in range(answers + 3):
        page.wait_for_selector("#ask:not([aria-busy])")  # a key that comes before is none
        took = page.evaluate(ONCE, "12"[i % 2])
        if i >= 3:  # the first ones wait for what is read once
            found.append(float(took))
        page.wait_for_timeout(200)
    return found


def crowd(url: str, link: str, ended: threading.Event) -> None:
    """Somebody who answers by HTTP until it is ended."""
    with httpx.Client(base_url=url, headers={"origin": url, "hx-request": "true"}, timeout=60) as client:
        client.post(f"{link}/agree", data={"a": "b"})
        client.get(link)
        number = 0
        while not ended.wait(PAUSE):
            form = {"number": str(number), "attempt": "0", "choice": "first" if number % 3 else "second"}
            number += client.post(f"{link}/answer", data=form).status_code == 200


def told(times: list[float]) -> dict[str, float]:
    """Median and the slow ones, in milliseconds."""
    return {name: round(float(np.quantile(times, q)), 1) for name, q in (("median", 0.5), ("p95", 0.95), ("max", 1.0))}


def measured(browser: Any, items: int, answers: int) -> dict[str, Any]:
    """One study of so many items, alone and with twenty other people."""
    with tempfile.TemporaryDirectory(prefix="heedful-bench-") as folder:
        path = study_of_rows(Path(folder) / "loops" / "words.heedful", items, questions=10_000)
        link, ended = link_to(path), threading.Event()
        with Process(path.parent) as server:
            page = browser.new_page()
            page.goto(server.wait().url + link)
            page.click("#agree")
            page.wait_for_selector("#pick-first")
            alone = answered(page, answers)
            others = [threading.Thread(target=crowd, args=(server.url, link, ended)) for _ in range(PEOPLE)]
            for other in others:
                other.start()
                time.sleep(PAUSE / PEOPLE)
            beside = answered(page, answers)
            ended.set()
            for other in others:
                other.join()
            page.close()
    return {"items": items, "ms": told(alone), f"ms, {PEOPLE} others": told(beside)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=40, help="that are measured, of each kind")
    parser.add_argument("--quick", action="store_true", help="ten answers; nothing is written")
    options = parser.parse_args()
    answers = 10 if options.quick else options.answers
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=["--no-sandbox", "--disable-gpu"])
        rows = []
        for items in ITEMS:
            rows.append(measured(browser, items, answers))
            print(rows[-1], flush=True)
        browser.close()
    if not options.quick:
        record("compare", {"answers": answers, "next question": rows})


if __name__ == "__main__":
    main()
