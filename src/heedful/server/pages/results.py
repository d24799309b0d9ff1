"""What a study found, for who has a key, or is on this machine; the links to it; answers and ranking as files."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from starlette.responses import Response

from heedful.core.validation import describe
from heedful.data.choices import write_choices
from heedful.data.preflib import write_preflib
from heedful.loop import Loop
from heedful.server.links import MOST_PEOPLE, PEOPLE, Link
from heedful.server.pages import ranking
from heedful.server.pages.card_selection import widget_of
from heedful.server.pages.formatting import Moment, count, moment
from heedful.server.pages.page import SAFE, Page, Visit, back, render
from heedful.server.pages.participant import created_at
from heedful.server.pages.standing import MANY, segments, summary
from heedful.server.problems import Problem
from heedful.studies.answers import StudyAnswer, choices_of, study_answers
from heedful.studies.study import study_of

T = TypeVar("T")
NO_ANSWER = "answers: expected at least one, got none yet"
DAYS = {"1": "a day", "7": "a week", "30": "a month", "365": "a year"}
"""How long a link may last."""
TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "toi": "text/plain; charset=utf-8"}
"""What answers are written as."""


class Row(NamedTuple):
    """A link in the list."""

    handle: str
    shows: bool
    segment: str
    ends: Moment
    begun: str
    """how many people it has let in, of how many"""
    state: str
    """good, full, ended or revoked"""


class NewLink(NamedTuple):
    """A link that was made just now, shown this once."""

    url: str
    code: str
    """its QR code, as a data: URI"""
    segment: str
    near: bool
    """whether only this machine reaches it"""
    shows: bool
    """the ranking, and asks nothing"""


async def results(visit: Visit) -> Response:
    """The ranking, of all or of one segment."""
    return await _render(visit)


async def make(visit: Visit) -> Response:
    """Make a link, and show it this once."""
    assert visit.worker is not None
    _check_study(visit)
    shows, days = visit.form.get("shows", "0"), visit.form.get("days", "7")
    if shows not in ("0", "1"):
        raise ValueError(f"shows: expected 0 or 1, got {describe(shows)}")
    segment = visit.form.get("segment", "")
    if shows == "1":
        _people(await _segments(visit), segment)
    else:
        segment = " ".join(segment.split())
    if days not in DAYS:
        raise ValueError(f"days: expected one of {', '.join(DAYS)}, got {describe(days)}")
    when = await visit.worker.read(partial(created_at, visit.worker))
    links, tenant = visit.service.links, visit.caller.tenant
    people = visit.form.get("people", str(PEOPLE))
    if not people.isascii() or not people.isdecimal() or len(people) > 9:
        raise ValueError(f"people: expected a whole number, 1 to {MOST_PEOPLE}, got {describe(people)}")
    seconds = float(days) * 86_400
    given: dict[str, Any] = {"segment": segment, "seconds": seconds, "people": int(people), "shows": shows == "1"}
    link, token = await _in_thread(visit, partial(links.create, tenant, visit.name, when, **given))
    return await _render(visit, _show_once(visit, link, token))


async def revoke(visit: Visit) -> Response:
    """End a link at once."""
    _check_study(visit)
    handle = visit.form.get("handle", "")
    await _in_thread(visit, partial(visit.service.links.revoke, visit.caller.tenant, visit.name, handle))
    return back(f"/loops/{quote(visit.name)}/results")


def code_of(url: str) -> str:
    """A QR code of it, as a data: URI; "" where the package that draws it is not installed."""
    try:
        import segno
    except ModuleNotFoundError:
        return ""
    return str(segno.make(url, error="m").svg_data_uri(scale=5, border=3, dark="#000", light="#fff"))


def _show_once(visit: Visit, link: Link, token: str) -> NewLink:
    origin = visit.request.headers.get("origin") or f"http://{visit.request.headers.get('host', 'localhost')}"
    base = visit.service.options.shared or origin
    near = any(name in base for name in ("//127.0.0.1", "//localhost", "//[::1]"))
    url = f"{base}/s/{token}"
    return NewLink(url, code_of(url), link.segment, near, link.shows)


async def _render(visit: Visit, made: NewLink | None = None) -> Response:
    assert visit.worker is not None
    _check_study(visit)
    worker, loop = visit.worker, visit.loop
    whose = await _segments(visit)
    segment = made.segment if made is not None and made.shows else visit.query.get("segment", "")
    told, fresh = await summary(worker, _people(whose, segment), segment)
    study = await worker.read(partial(study_of, loop.path))
    when = await worker.read(partial(created_at, worker))
    links = await _in_thread(visit, partial(visit.service.links.all, visit.caller.tenant, visit.name, when))
    return render(
        visit, "results.html", tab="results", study=study, standing=told, fresh=fresh,
        segment=segment,
        segments={name: count(len(people), "person", "people") for name, people in whose.items()},
        base=f"/loops/{quote(visit.name)}", links=[_row(link) for link in links][::-1], made=made, days=DAYS,
        people=PEOPLE, many=len(loop.projection.catalogue.current) > MANY,
    )  # fmt: skip


async def _segments(visit: Visit) -> dict[str, list[str]]:
    assert visit.worker is not None
    return await visit.worker.read(partial(segments, visit.loop))


def _people(segments: Mapping[str, list[str]], segment: str) -> list[str] | None:
    """The people of a segment; None, which is all, of "". Problem where there is no such segment."""
    if segment and segment not in segments:
        raise Problem("not-found", f"nobody of the segment {describe(segment)} answered")
    return segments[segment] if segment else None


def _row(link: Link) -> Row:
    good, full = link.good(int(time.time() * 1e6)), link.begun >= link.most
    state = "revoked" if link.revoked is not None else "ended" if not good else "full" if full else "good"
    begun = "–" if link.shows else f"{link.begun:,} of {link.most:,}"
    return Row(link.handle, link.shows, link.segment, moment(link.ends), begun, state)


def _check_study(visit: Visit) -> None:
    if widget_of(visit.loop).name != "pairs":
        raise Problem("not-found", "in this loop people do not compare pairs: it has no results of that kind")


# ---------------------------------------------------------------------------- files


async def export(visit: Visit) -> Response:
    """All answers that stand: CSV, which `heedful rank` reads; JSON; PrefLib, as orders with ties, incomplete."""
    assert visit.worker is not None
    _check_study(visit)
    form = visit.request.path_params["form"]
    if form not in TYPES:
        raise Problem("not-found", f"answers are written as {', '.join(TYPES)}")
    segment = visit.query.get("segment", "")
    people = _people(await _segments(visit), segment)
    content = await visit.worker.read(partial(write_answers, visit.loop, visit.name, form, people))
    return _file(visit, content, "answers", segment, form, TYPES[form])


async def export_ranking(visit: Visit) -> Response:
    """The ranking, of all or of one segment: CSV, or a picture."""
    assert visit.worker is not None
    _check_study(visit)
    form = visit.request.path_params["form"]
    if form not in ranking.TYPES:
        raise Problem("not-found", f"the ranking is written as {', '.join(ranking.TYPES)}")
    segment = visit.query.get("segment", "")
    told, fresh = await summary(visit.worker, _people(await _segments(visit), segment), segment)
    if told is None and not fresh:
        told_so = "the ranking is being computed: ask for it again in a few seconds"
        raise Problem("unavailable", told_so, headers={"Retry-After": "3"})
    if told is None:
        raise ValueError(NO_ANSWER)
    study = await visit.worker.read(partial(study_of, visit.loop.path))
    content = ranking.table(told) if form == "csv" else ranking.picture(told, study.ask)
    return _file(visit, content, "ranking", segment, form, ranking.TYPES[form])


def _file(visit: Visit, content: bytes, what: str, segment: str, form: str, media: str) -> Response:
    of = f"-{quote(segment.removeprefix('-'), safe='')}" if segment else ""
    disposition = f'attachment; filename="{visit.name}-{what}{of}.{form}"'
    return Response(content, headers={**SAFE, "content-disposition": disposition}, media_type=media)


def write_answers(loop: Loop, name: str, form: str, people: Sequence[str] | None = None) -> bytes:
    """The answers of a study, or of these people in it, as a file of that form. ValueError where there is none, or a
    name does not fit it."""
    of = None if people is None else set(people)
    if form == "json":
        study = study_of(loop.path)
        answers = [_with_date(each) for each in study_answers(loop) if of is None or each.person in of]
        told: dict[str, Any] = {
            "study": name,
            "ask": study.ask,
            "goal": loop.projection.interaction.goal,
            "items": loop.items,
        }
        return json.dumps(told | {"answers": answers}, ensure_ascii=False, indent=1).encode()
    choices = choices_of(loop, of)
    if not choices.comparisons:
        raise ValueError(NO_ANSWER)
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        path = Path(folder) / f"{name}.{form}"
        if form == "csv":
            write_choices(path, choices)
        else:
            write_preflib(path, choices, title=" ".join(study_of(loop.path).ask.split()))
        return path.read_bytes()


def _with_date(each: StudyAnswer) -> dict[str, Any]:
    when = datetime.fromtimestamp(each.time / 1e6, UTC).isoformat(timespec="milliseconds")
    return each._asdict() | {"time": when}


async def _in_thread(visit: Visit, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(visit.service.pool, work)


PAGES = (
    Page("GET", "/loops/{loop}/results", ("read",), results),
    Page("GET", "/loops/{loop}/results/answers.{form}", ("read",), export),
    Page("GET", "/loops/{loop}/results/ranking.{form}", ("read",), export_ranking),
    Page("POST", "/loops/{loop}/links", ("admin", "read"), make),
    Page("POST", "/loops/{loop}/links/revoke", ("admin", "read"), revoke),
)
