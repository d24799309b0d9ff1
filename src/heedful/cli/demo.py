"""`heedful demo`: a web page with 406 cars on which you teach a loop; with `--once` a simulated person teaches it, and
with `--proof` other learners are tried in a made shop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from heedful.cli import demo_loops
from heedful.cli.common import check_absent, holds_loop
from heedful.cli.console import (
    BadInput,
    check_extra,
    check_server,
    console,
    has_display,
    interrupt_once,
    note,
    notes,
)
from heedful.cli.own_page import HOST, Browser, Port, listen, open_browser

MOST = 5
"""How many of the features that the user likes are printed at the end."""


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="A folder that keeps the loops, so that the next demo goes on with them."
        ),
    ] = None,
    port: Port = None,
    browser: Browser = True,
    once: Annotated[
        bool, typer.Option("--once", help="No page: a simulated person teaches, it tells what was learned, and ends.")
    ] = False,
    proof: Annotated[
        bool,
        typer.Option("--proof", help="No page: three learners are tried in a made shop, and the best is promoted."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="As --once unless --proof is given, and prints nothing on stdout but JSON.")
    ] = False,
) -> None:
    """Serves two loops to this machine alone: `cars` knows nothing, and you teach it; `simulated` was taught by a
    simulated person with a hidden taste. The command prints the page's address, opens it in a browser if there is a
    display, and runs until Ctrl-C (or SIGTERM). Then it says what was learned, and deletes the loops, unless --dir
    names a folder to keep them in.

    With --once nothing waits for anybody: for scripts, and for a first look without a browser.

    With --proof it makes a shop with simulated people, whose tastes are known to the program and not to the loop. Three
    learners are tried next to the one that serves: by the log, without being shown, in interleaved lists, and at the
    gate; the one that was promoted is rolled back. What comes out is printed next to the truth.

    Exit codes: 0 ended with Ctrl-C, or --once or --proof is done; 1 it cannot listen or write; 2 bad input; 130
    interrupted before the page was there.
    """
    if once and proof:
        raise BadInput("--once: expected without --proof")
    once = once or (as_json and not proof)
    if once or proof:
        option = "--proof" if proof else "--once"
        options = {"--dir": folder, "--port": port}
        check_absent(options, f"expected without {option}, which keeps nothing and serves nobody")
    if proof:
        from heedful.cli import demo_proof

        demo_proof.run(as_json)
        return
    check_extra("vega_datasets", "demo", "the demo")
    check_server("demo", "the demo")
    if once:
        check_extra("httpx", "demo", "the demo")
        from heedful.cli import demo_once

        demo_once.run(as_json)
        return
    interrupt_once(signal.SIGINT, signal.SIGTERM)
    with _home(folder) as home:
        with notes().status("Making two loops of 406 cars"):
            demo_loops.make_demo_loops(home)
        with suppress(KeyboardInterrupt):
            _serve(home, port, browser, kept=folder is not None)
        _print_lessons(home, kept=folder)


@contextmanager
def _home(folder: Path | None) -> Iterator[Path]:
    """Yield the folder of the loops: `folder`, or a temporary one that is deleted when the block ends."""
    if folder is None:
        with TemporaryDirectory(prefix="heedful-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    if holds_loop(folder):
        raise BadInput(f"--dir: expected the folder that loops are in, got one of them: {str(folder)!r}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield folder


# ---------------------------------------------------------------------------- while it runs


def _serve(home: Path, port: int | None, browser: bool, kept: bool) -> None:
    from contextlib import ExitStack

    from heedful.server.context import Options
    from heedful.server.main import serve

    with ExitStack() as stack:
        options = Options(words=demo_loops.WORDS, passing=not kept, example=demo_loops.SIMULATED)
        app, listener = listen(stack, home, port, options)
        port = listener.getsockname()[1]
        if kept:
            note(f"what you teach is kept in {home}")
        else:
            note(f"what you teach is in {home} and goes when you end it; heedful demo --dir DIR keeps it")
        serve(app, listener, lambda: _say(port, browser and has_display()))


def _say(port: int, browser: bool) -> None:
    """Print the address of the page, and open it in a `browser`, once it answers: Ctrl-C would interrupt the start."""
    address = f"http://{HOST}:{port}/loops/{demo_loops.CARS}"
    print(f"Teach it at {address} (Ctrl-C ends it)", flush=True)
    note(
        f"one list in {1 / demo_loops.CONTROL:.0f} comes shuffled, to compare with, more than is usual: so about "
        f"{demo_loops.ENOUGH} lists tell whether learning helps; a loop that was taught: "
        f"http://{HOST}:{port}/loops/{demo_loops.SIMULATED}/learned"
    )
    if browser:
        open_browser(address)


# ---------------------------------------------------------------------------- at the end


def _print_lessons(home: Path, kept: Path | None) -> None:
    """Print what the loop in `home` learned, and whether it is kept or gone."""
    from heedful import Loop
    from heedful.server.pages.feature_phrases import Phrases, level

    with Loop.open(home / f"{demo_loops.CARS}.heedful") as loop:
        lessons = sum(lesson.learned and not lesson.undone for lesson in loop.lessons(10_000))
        helped = demo_loops.benefit(loop)
        bars = Phrases(loop.manifest, loop.feature_names, demo_loops.WORDS).bars(loop.weights)[:MOST]
    screen = console()
    if lessons:
        sure = (
            "What you may like, one of these or several"
            if level(bars)
            else "What you seem to like, the strongest first"
        )
        text = f"{lessons} {'lesson' if lessons == 1 else 'lessons'}. {sure}: "
        liked = ", ".join(bar.words if level(bars) else f"{bar.words} {bar.pluses}" for bar in bars) or "nothing yet"
        screen.print(f"\n{text}{liked}.\nDoes learning help? {helped}", soft_wrap=True, markup=False)
    else:
        screen.print("\nNobody taught it, so nothing was learned.")
    if kept is None:
        note("the loops are gone with the demo; heedful demo --dir DIR keeps them")
    else:
        note(f"the loops are kept: heedful demo --dir {kept} goes on with them")
