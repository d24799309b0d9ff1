"""`heedful compare`: a web page that asks which of two items is better, for you, and for others by a link.

The file is long because the command creates a study, serves it on two ports, creates links, and prints the result.
"""

from __future__ import annotations

import re
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli.common import Json, check_absent, holds_loop
from heedful.cli.compare_models import GONE, TOLD, making_study, open_arena
from heedful.cli.console import (
    BadInput,
    check_extra,
    check_server,
    console,
    has_display,
    interrupt_once,
    note,
    notes,
    print_json,
    reading_input,
)
from heedful.cli.own_page import PORT, Browser, Port, listen, open_browser
from heedful.cli.sharing import (
    SHARED,
    Sharing,
    host_and_port,
    link_base,
    listening_host,
    participants_socket,
    say_listening,
)
from heedful.core.times import utc
from heedful.core.wording import count, share
from heedful.data.files import cut_list

if TYPE_CHECKING:
    from heedful.loop import Loop
    from heedful.studies.reading import Material

SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
QUICK = 300
"""The most items for which the result is printed at the end; with more it would take long to compute."""
FREE = ("consent", "questions")
"""The options that may change when a study goes on, as no answer depends on them."""


def compare(
    source: Annotated[
        Path,
        typer.Argument(help="A folder of pictures or texts; a table (CSV, JSON lines, Parquet); PrefLib; or a study."),
    ],
    models: Annotated[
        bool, typer.Option("--models", help="SOURCE has answers of models to the same prompts: ask blind about them.")
    ] = False,
    ask: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The question.", show_default="Which is better?")
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(metavar="best|ranking", help="What is to be known.", show_default="best; with --models, ranking"),
    ] = None,
    share: Annotated[bool, typer.Option("--share", help="Make a link, and let your network in by it.")] = False,
    segment: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="With --share: a link for these; may be repeated.")
    ] = None,
    lasts: Annotated[str, typer.Option(metavar="7d", help="With --share: until a link ends; m, h or d.")] = "7d",
    people: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="With --share: how many a link lets in.")
    ] = 1000,
    questions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many a participant is asked.", show_default="20")
    ] = None,
    consent: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What participants read, and agree to, before they begin.")
    ] = None,
    identifier: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a table: the column of names.", show_default="found")
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Of a table: show this column; may be repeated.", show_default="all"),
    ] = None,
    keep_answers: Annotated[
        bool,
        typer.Option("--keep-answers", help="Answers about an item whose text or picture changed stand for the new."),
    ] = False,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the study.", show_default="that of the source")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="The folder that studies are in.", show_default="here")
    ] = Path("."),
    port: Port = None,
    share_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help=f"Of participants: {SHARED}, or a free one, unless said."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="With --share: the address of this machine that participants come to; 0.0.0.0 for all it has, "
            "127.0.0.1 behind a tunnel or proxy.",
            show_default="its own in the network",
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="URL", help="What links begin with.", show_default="where participants come to"),
    ] = None,
    browser: Browser = True,
    json: Json = False,
) -> None:
    """The command makes a study, NAME.heedful, out of what is to be compared, or goes on with the one that is there. It
    serves the study's page to this machine alone, opens it in a browser, and runs until Ctrl-C. With --share it also
    makes links, and listens on a second port, on which others in your network can open these links. They see a line to
    agree to and then the questions of this study, nothing else. All answers are in the study's log: they can be undone,
    exported, and served again.

    With --models the study is an arena: SOURCE is a folder with a table, or a folder of texts, for each model. People
    see a prompt and the answers of two models, and never which models these are. The results are a leaderboard, and
    `heedful rank NAME.heedful` gives it, too.

    Exit codes: 0 ended with Ctrl-C; 1 it cannot listen or write; 2 bad input.
    """
    check_server("serve", "heedful compare")
    if share:
        check_extra("segno", "serve", "heedful compare --share")
    else:
        only_shared = {"--segment": segment, "--address": address, "--listen": listen, "--share-port": share_port}
        check_absent(only_shared, "expected --share with it, got none")
    if share and share_port is not None and share_port == (port or PORT):
        raise BadInput(f"--share-port: expected another port than --port, got {share_port} for both")
    seconds, reached, segments = _seconds(lasts), _address(address), _segments(segment or [""])
    where = listening_host(listen, reached) if share else ""
    fields: dict[str, Any] = {"ask": ask, "consent": consent, "questions": questions, "show": tuple(show or ()) or None}
    interrupt_once(signal.SIGINT, signal.SIGTERM)
    path, left_out = _open_or_create(
        source, folder, name, identifier, goal, {k: v for k, v in fields.items() if v is not None}, models, keep_answers
    )
    with suppress(KeyboardInterrupt):
        sharing = Sharing(share_port, where, reached, seconds, people, segments) if share else None
        _serve(path, port, browser, json, sharing, left_out)
    _print_answers(path, json)


def _seconds(text: str) -> float:
    """Return a duration such as "90m", "12h" or "7d" in seconds; raise BadInput unless it is a minute to 366 days."""
    match = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if match is None or not 60.0 <= int(match[1]) * SECONDS[match[2]] <= 366 * SECONDS["d"]:
        raise BadInput(f"--lasts: expected a minute to a year, such as 90m, 12h or 7d, got {text!r}")
    return int(match[1]) * SECONDS[match[2]]


def _address(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+/?", text):
        expected = "expected where a site begins, such as https://study.example.org, without a path"
        raise BadInput(f"--address: {expected}, got {text!r}")
    return None if text is None else text.rstrip("/")


def _segments(names: list[str]) -> list[str]:
    """Return the `names` of segments, all checked before a link, which is shown only once, is made for the first."""
    from heedful.server.links import check_segment

    with reading_input():
        return [check_segment("--segment", name) for name in names]


# ---------------------------------------------------------------------------- the study


def _open_or_create(
    source: Path,
    folder: Path,
    name: str | None,
    identifier: str | None,
    goal: str | None,
    fields: dict[str, Any],
    models: bool,
    keep: bool,
) -> tuple[Path, list[str]]:
    """Return (folder of the study `source`, or of a new one in `folder`, a line for each file that was left out)."""
    if holds_loop(source):
        check_absent({"--name": name, "--identifier": identifier}, "expected none with a study that is there, got {}")
        with reading_input():
            path = _study_folder(source)
            _check_same(path, goal, fields)
        return path, []
    if goal not in (None, "best", "ranking"):
        raise BadInput(f"--goal: expected best or ranking, got {goal!r}")
    with reading_input():
        from heedful.server.loops import loop_name
        from heedful.studies.reading import read_material

        path = folder.absolute() / f"{loop_name('--name', name or _study_name(source))}.heedful"
        if models:
            of_tables = {"--identifier": identifier, "--show": fields.get("show")}
            check_absent(of_tables, "expected none with --models, got {}")
            if holds_loop(path):
                _check_same(path, goal, fields)
            return path, open_arena(source, path, goal or "ranking", fields)
        with notes().status("Reading what is to be compared"):
            material = read_material(source, identifier)
        left_out = [f"{part.name}: {part.why}" for part in material.left_out]
        if holds_loop(path):
            _check_same(path, goal, fields)
            _add_material(path, material, keep)
        else:
            _create(path, material, goal, fields)
    return path, left_out


def _study_folder(source: Path) -> Path:
    """Return the absolute path of the study `source`; raise ValueError for a name that cannot be part of a URL."""
    from heedful.server.loops import loop_name
    from heedful.storage.address import SUFFIX

    path = source.resolve() if source.name == ".." else source.absolute()
    if not path.name.endswith(SUFFIX):
        raise ValueError(f"{source}: expected a study called NAME{SUFFIX}, got {path.name!r}")
    loop_name(str(source), path.name.removesuffix(SUFFIX))
    return path


def _create(path: Path, material: Material, goal: str | None, fields: dict[str, Any]) -> None:
    from heedful.studies.study import Study, create_study

    kind: Literal["best", "ranking"] = "ranking" if goal == "ranking" else "best"
    study = Study(kind=material.kind, **fields)
    with making_study(path):
        create_study(path, material, study, kind).close()
    by = f", named by their {material.encoding.identifier}" if material.kind == "rows" else ""
    note(f"{len(material.rows):,} {material.kind} to compare{by}, in {path}")


def _add_material(path: Path, material: Material, keep: bool) -> None:
    from heedful.loop import Loop
    from heedful.studies.study import add_material

    with Loop.open(path) as loop:
        added = add_material(loop, material, keep)
    note(f"going on with {path}" + (f"; {len(added.new):,} new" if added.new else ""))
    for what, names in (("people see otherwise from now on", added.changed), (GONE, added.gone)):
        if names:
            note(f"{what}: {cut_list(names, TOLD)}")


def _check_same(path: Path, goal: str | None, fields: dict[str, Any]) -> None:
    """Raise BadInput if `goal` or `fields` contradict the study's own question; update the fields that are FREE."""
    from heedful.loop import Loop
    from heedful.studies.study import study_of, update_study

    study = study_of(path)
    with Loop.open(path) as loop:
        interaction = loop.projection.interaction
    goal_before, words = interaction.facts().get(interaction.setting), interaction.words
    if words.widget != "pairs":
        told = f"expected a study, or a loop that compares two, got {words.loop}: choose another --name"
        raise BadInput(f"{path}: {told}")
    for option, given in {"goal": goal, **{name: fields[name] for name in fields if name not in FREE}}.items():
        before = goal_before if option == "goal" else getattr(study, option)
        if given is not None and given != before:
            more = "; --name begins another study"
            raise BadInput(
                f"--{option}: expected {before!r}, as the study in {path.name} began with, got {given!r}{more}"
            )
    free = {name: fields[name] for name in FREE if fields.get(name) not in (None, getattr(study, name))}
    if free:
        from msgspec.structs import replace

        update_study(path, replace(study, **free))
        note(f"from now on: {', '.join(f'--{name} {value}' for name, value in free.items())}")


def _study_name(source: Path) -> str:
    """Return a name for a study of `source`, from the file's or folder's name, with characters that a URL can have."""
    stem = source.resolve().name if source.is_dir() else source.name.removesuffix(".gz").rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:100] or "study"


# ---------------------------------------------------------------------------- while it runs


def _serve(
    path: Path,
    port: int | None,
    browser: bool,
    json: bool,
    share: Sharing | None,
    left_out: list[str],
) -> None:
    from heedful.server.context import Options
    from heedful.server.main import serve

    with ExitStack() as stack:
        sharing, reached = None, ""
        if share is not None:
            sharing = stack.enter_context(participants_socket(share.listen, share.port))
            reached = share.address or link_base(share.listen, sharing.getsockname()[1])
        app, listener = listen(stack, path.parent, port, Options(shared=reached))
        page_host = host_and_port(*listener.getsockname()[:2])
        shared_host = None if sharing is None else host_and_port(*sharing.getsockname()[:2])
        page = f"http://{page_host}/loops/{path.name.removesuffix('.heedful')}/compare"
        links = app.service.links
        study = "main", path.name.removesuffix(".heedful"), _creation_time(path)
        if old := sum(link.good(int(time.time() * 1e6)) for link in links.all(*study)):
            earlier = f"{old} earlier {'link is' if old == 1 else 'links are'} still good"
            note(earlier if share is not None else f"{earlier}, but reached by nobody else without --share")
        made = []
        if share is not None:
            for segment in share.segments:
                with reading_input():
                    link, token = links.create(*study, segment=segment, seconds=share.seconds, people=share.people)
                made.append({"segment": segment, "url": f"{reached}/s/{token}", "until": utc(link.ends)})

        def announce() -> None:
            if share is not None and shared_host is not None:
                say_listening(shared_host, share)
            _say(path, page, made, left_out, json, {"page": page_host, "participants": shared_host})
            if browser and has_display():
                open_browser(page)

        serve(app, listener, announce, sharing)


def _creation_time(path: Path) -> int:
    from heedful.loop import Loop

    with Loop.open(path) as loop:
        first = loop.projection.log.at(1)
    return 0 if first is None else first.time


def _say(
    path: Path, page: str, links: list[dict[str, str]], left_out: list[str], json: bool, listens: dict[str, str | None]
) -> None:
    """Print where the study can be reached, once the server answers; `listens` has its ports, for `json`."""
    if json:
        print_json({"study": str(path), "page": page, "listens": listens, "links": links, "left_out": left_out})
        return
    for file in left_out[:TOLD]:
        note(f"left out: {file}")
    if len(left_out) > TOLD:
        note(f"left out: {len(left_out) - TOLD:,} more")
    print(f"Compare, and see the results, at {page} (Ctrl-C ends it)", flush=True)
    for link in links:
        print(f"\nFor {link['segment'] or 'participants'}, until {link['until']}:\n{link['url']}\n", flush=True)
        if console().is_terminal:
            import segno

            segno.make(link["url"], error="m").terminal(compact=True)


def _print_answers(path: Path, json: bool) -> None:
    """Print what the answers to the study in the folder `path` say so far, unless `json` is true; called at the end."""
    from heedful.loop import Loop
    from heedful.studies.answers import study_answers

    if json:
        return
    with Loop.open(path) as loop:
        n = sum(1 for _ in study_answers(loop))
        is_large = len(loop.items) > QUICK
        summary = (count(n, "answer") if is_large else closing_line(loop)) if n else "nobody has answered yet"
    note(f"{summary}; heedful compare {path} goes on")


def closing_line(loop: Loop) -> str:
    """Return in words which of what is compared is first, and how sure that is; of an arena, by its leaderboard."""
    from heedful.studies.arena import leaderboard_of, outputs_of
    from heedful.studies.things import labels

    board = loop.standing()
    verdict = board.verdict
    if not board.answers or verdict is None:
        return "nobody could judge yet"
    answers = count(board.answers, "answer")
    sure = "enough" if verdict.stop or verdict.left is None else verdict.left.told
    leaderboard = None if outputs_of(loop.path) is None else leaderboard_of(loop)
    if leaderboard is not None:
        first = leaderboard.board.ranking[0]
        return f"{answers}: {first.item} is first, and the best with probability {share(first.best)} ({sure})"
    favourite = labels(loop, [verdict.favourite])[verdict.favourite]
    if verdict.goal == "best":
        return f"{answers}: {favourite} is first, {share(verdict.probability)} sure ({sure})"
    right = f"{share(verdict.probability)} of all pairs are expected to be in the right order"
    return f"{answers}: {favourite} is first; {right} ({sure})"
