"""The page with the results of a study: the ranking, links for participants, and answers and ranking as files."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.responses import Response

from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.choices import write_choices
from heedful.data.files import MISSING
from heedful.data.preflib import write_preflib
from heedful.loop import Loop
from heedful.server.codecs import whole
from heedful.server.links import MOST_PEOPLE, PEOPLE, Link
from heedful.server.pages import arena, ranking
from heedful.server.pages.forms import names_of
from heedful.server.pages.page import SAFE, Page, Visit, back, in_thread, render
from heedful.server.pages.participant import created_at
from heedful.server.pages.standing import MANY, NOT_OWN, Summary, segments, study_in, summary
from heedful.server.problems import Problem, unavailable
from heedful.studies.answers import StudyAnswer, choices_of, study_answers, what_changes
from heedful.studies.arena import leaderboard_of
from heedful.studies.study import Study
from heedful.studies.things import labels

NO_ANSWER = "answers: expected at least one, got none yet"
DAYS = {"1": "a day", "7": "a week", "30": "a month", "365": "a year"}
"""number of days -> how long a link is valid, in words"""
TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "toi": "text/plain; charset=utf-8"}
"""ending of a file of answers -> its media type"""


async def make(visit: Visit) -> Response:
    """Handle the form that makes a link: render the page with the link, whose URL is shown only this once.

    The form has `days` (how long the link is valid), `people` (how many it admits), `segment` (the group of
    participants) and `shows` ("1": it shows the ranking and asks nothing). Raise ValueError, naming the field, if one
    is invalid."""
    await study_in(visit)
    shows, days = visit.form.get("shows", "0"), visit.form.get("days", "7")
    if shows not in ("0", "1"):
        raise ValueError(f"shows: expected 0 or 1, got {describe(shows)}")
    segment = visit.form.get("segment", "")
    if shows == "1":
        _people(await visit.worker.read(segments, visit.loop), segment)
    else:
        segment = " ".join(segment.split())
    if days not in DAYS:
        raise ValueError(f"days: expected one of {', '.join(DAYS)}, got {describe(days)}")
    link, token = await in_thread(
        visit.service.pool,
        visit.service.links.create,
        visit.caller.tenant,
        visit.name,
        await visit.worker.read(created_at, visit.worker),
        segment=segment,
        seconds=float(days) * 86_400,
        people=whole(visit.form, "people", PEOPLE, 1, MOST_PEOPLE),
        shows=shows == "1",
    )
    origin = visit.request.headers.get("origin") or f"http://{visit.request.headers.get('host', 'localhost')}"
    return await _render(visit, link, f"{visit.service.options.shared or origin}/s/{token}")


async def revoke(visit: Visit) -> Response:
    """Handle the button that ends a link at once, by its `handle` in the form, and redirect to the page of results."""
    await study_in(visit)
    handle = visit.form.get("handle", "")
    await in_thread(visit.service.pool, visit.service.links.revoke, visit.caller.tenant, visit.name, handle)
    return back(f"{visit.base}/results")


def qr_code(url: str) -> str:
    """Return the QR code of a URL as a data: URI; "" if the package that draws it, segno, is not installed."""
    try:
        import segno
    except ModuleNotFoundError:
        return ""
    return str(segno.make(url, error="m").svg_data_uri(scale=5, border=3, dark="#000", light="#fff"))


async def _render(visit: Visit, made: Link | None = None, url: str = "") -> Response:
    """Render the page of results, of all or of the query's `segment`; `made` is a link made just now, at `url`."""
    study, loop = await study_in(visit), visit.loop
    whose = await visit.worker.read(segments, loop)
    segment = made.segment if made is not None and made.shows else visit.query.get("segment", "")
    without = _without(visit)
    people = _people(whose, segment, without)
    board = await visit.worker.read(arena.arena_parts, loop, people) if study.kind == "answers" else None
    standing, fresh = (None, True) if study.kind == "answers" else await _summary(visit, people, segment, without)
    changed = await _changed(visit, study, whose, segment, without, standing) if without else ""
    when = await visit.worker.read(created_at, visit.worker)
    links = await in_thread(visit.service.pool, visit.service.links.all, visit.caller.tenant, visit.name, when)
    return render(
        visit, "results.html", tab="results", study=study, standing=standing, fresh=fresh, segment=segment,
        segments={name: count(len(people), "person", "people") for name, people in whose.items()},
        base=visit.base, links=links[::-1], now=int(time.time() * 1e6), days=DAYS,
        made=made, url=url, code=qr_code(url) if url else "",
        near=any(name in url for name in ("//127.0.0.1", "//localhost", "//[::1]")),
        people=PEOPLE, without=without, changed=changed, query=_query, board=board,
        many=len(loop.projection.catalogue.current) > MANY,
    )  # fmt: skip


def _people(segments: Mapping[str, list[str]], segment: str, without: Sequence[str] = ()) -> list[str] | None:
    """Return the people of a `segment` but those in `without`; None, for everybody, without any of the two."""
    if segment and segment not in segments:
        raise Problem("not-found", f"nobody of the segment {describe(segment)} answered")
    everybody = [name for of, people in segments.items() if of != NOT_OWN for name in people]
    if strange := sorted(set(without) - set(everybody)):
        raise Problem("not-found", f"nobody called {describe(strange[0])} answered")
    if not without:
        return segments[segment] if segment else None
    return [name for name in (segments[segment] if segment else everybody) if name not in without]


def _without(visit: Visit) -> list[str]:
    """Return the names of the people whose answers the visitor leaves out, a JSON list in the query."""
    return names_of("without", visit.query["without"]) if visit.query.get("without") else []


def _query(segment: str, without: Sequence[str] = ()) -> str:
    """Return the query of the results of a `segment` without some people: "?segment=staff", or "" for all."""
    fields = ({"segment": segment} if segment else {}) | ({"without": json.dumps(list(without))} if without else {})
    return f"?{urlencode(fields)}" if fields else ""


async def _summary(
    visit: Visit, people: Sequence[str] | None, segment: str, without: Sequence[str]
) -> tuple[Summary | None, bool]:
    return await summary(visit.worker, people, "\0".join([segment, *without]) if without else segment)


async def _changed(
    visit: Visit,
    study: Study,
    whose: Mapping[str, list[str]],
    segment: str,
    without: Sequence[str],
    standing: Summary | None,
) -> str:
    """Return a sentence on whether the first place changes without these people; "" if it is not known yet."""
    everybody, rest = _people(whose, segment), _people(whose, segment, without)
    if study.kind == "answers":
        boards = [await visit.worker.read(leaderboard_of, visit.loop, people) for people in (everybody, rest)]
        first = [board.items[0] for board in boards if board is not None]
    else:
        before, _ = await summary(visit.worker, everybody, segment)
        first = [shown.called[shown.board.items[0]] for shown in (before, standing) if shown is not None]
    return what_changes(without, *first) if len(first) == 2 else ""


# ---------------------------------------------------------------------------- files


async def export(visit: Visit) -> Response:
    """Send all answers that were not taken back as a file: CSV, which `heedful rank` reads; JSON; or PrefLib (.toi)."""
    study, form, segment, people = await _export_of(visit, "answers are", TYPES)
    if study.kind == "answers" and form == "csv":
        votes = await visit.worker.read(arena.votes_file, visit.loop, people)
        if votes is not None:
            return _file(visit, votes, "votes", segment, form, TYPES[form])
    content = await visit.worker.read(write_answers, visit.loop, study, visit.name, form, people)
    return _file(visit, content, "answers", segment, form, TYPES[form])


async def export_ranking(visit: Visit) -> Response:
    """Send the ranking, of everybody or of one segment, as a file: CSV, or a picture (SVG).

    Raise Problem (503) while it is being computed."""
    study, form, segment, people = await _export_of(visit, "the ranking is", ranking.TYPES)
    standing, fresh = await _summary(visit, people, segment, _without(visit))
    if standing is None and not fresh:
        detail = "the ranking is being computed: ask for it again in a few seconds"
        raise unavailable(detail, 3)
    if standing is None:
        raise ValueError(NO_ANSWER)
    content = ranking.table(standing) if form == "csv" else ranking.picture(standing, study.ask)
    return _file(visit, content, "ranking", segment, form, ranking.TYPES[form])


async def export_board(visit: Visit) -> Response:
    """Send the leaderboard of an arena of models, of everybody or of one segment: as a page, CSV or JSON.

    Raise Problem (404) in another study."""
    study, form, segment, people = await _export_of(visit, "the leaderboard is", arena.TYPES)
    if study.kind != "answers":
        raise Problem("not-found", "only an arena of models has a leaderboard")
    content = await visit.worker.read(arena.board_file, visit.loop, study, people, form)
    if content is None:
        raise ValueError(NO_ANSWER)
    response = _file(visit, content, "leaderboard", segment, form, arena.TYPES[form])
    if form == "html":
        response.headers["content-security-policy"] = arena.POLICY
    return response


async def _export_of(visit: Visit, what: str, types: Mapping[str, str]) -> tuple[Study, str, str, Sequence[str] | None]:
    """Return (study, ending of the file, segment, people of the segment) for a request for a file."""
    study, form = await study_in(visit), visit.request.path_params["form"]
    if form not in types:
        raise Problem("not-found", f"{what} written as {', '.join(types)}")
    segment = visit.query.get("segment", "")
    return study, form, segment, _people(await visit.worker.read(segments, visit.loop), segment, _without(visit))


def _file(visit: Visit, content: bytes, what: str, segment: str, form: str, media: str) -> Response:
    """Return the response with which a browser saves `content` as a file of the media type `media`."""
    of = f"-{quote(segment.removeprefix('-'), safe='')}" if segment else ""
    disposition = f'attachment; filename="{visit.name}-{what}{of}.{form}"'
    return Response(content, headers={**SAFE, "content-disposition": disposition}, media_type=media)


def write_answers(loop: Loop, study: Study, name: str, form: str, people: Sequence[str] | None = None) -> bytes:
    """Return the answers of a study as the bytes of a file, in the format with the ending `form`: "csv", "json" or
    "toi" (PrefLib).

    Items are called what participants saw; CSV and JSON have their names, too. `name` is the name of the study in the
    file. With `people`, only their answers are in it. Raise ValueError if there
    are none, or if a name cannot be written in that format."""
    of = None if people is None else set(people)
    if form == "json":
        content = {
            "study": name,
            "ask": study.ask,
            "goal": loop.projection.interaction.facts()[loop.projection.interaction.setting],
            "items": loop.items,
            "called": labels(loop, loop.items),
            "answers": [_with_date(answer) for answer in study_answers(loop) if of is None or answer.person in of],
        }
        return json.dumps(content, ensure_ascii=False, indent=1).encode()
    choices = choices_of(loop, of)
    if not choices.comparisons:
        raise ValueError(NO_ANSWER)
    names, called = choices.items, labels(loop, choices.items)
    called = {
        name: f"{seen} ({name})" if seen.lower() in MISSING and seen != name else seen for name, seen in called.items()
    }
    choices = choices._replace(items=tuple([called[name] for name in names]))
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        path = Path(folder) / f"{name}.{form}"
        if form == "csv":
            write_choices(path, choices, dict(zip(choices.items, names)))
        else:
            write_preflib(path, choices, title=" ".join(study.ask.split()))
        return path.read_bytes()


def _with_date(answer: StudyAnswer) -> dict[str, object]:
    """Return the fields of an answer as a mapping, with its time in ISO 8601 in place of microseconds."""
    when = datetime.fromtimestamp(answer.time / 1e6, UTC).isoformat(timespec="milliseconds")
    fields = answer._asdict() | {"time": when}
    return fields if answer.prompt else {name: value for name, value in fields.items() if name != "prompt"}


PAGES = (
    Page("GET", "/loops/{loop}/results", ("read",), _render),
    Page("GET", "/loops/{loop}/results/answers.{form}", ("read",), export, "export"),
    Page("GET", "/loops/{loop}/results/ranking.{form}", ("read",), export_ranking),
    Page("GET", "/loops/{loop}/results/leaderboard.{form}", ("read",), export_board),
    Page("POST", "/loops/{loop}/links", ("admin", "read"), make, "make link"),
    Page("POST", "/loops/{loop}/links/revoke", ("admin", "read"), revoke, "revoke link"),
)
