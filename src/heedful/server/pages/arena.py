"""The results of an arena of models on the pages of a study: its leaderboard, and files of it and of the votes."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from heedful.data.spreadsheet import rows_of, write_rows
from heedful.loop import Loop
from heedful.studies.arena import BATTLES, battles, leaderboard_of, outputs_of
from heedful.studies.board_page import board_page, board_section, insight, odd_judges
from heedful.studies.study import Study, study_of

TYPES = {"csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8", "json": "application/json"}
"""ending of a file of the leaderboard -> its media type"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""What a browser may do with the leaderboard as a page, which has its style in it and no script."""


def arena_parts(loop: Loop, people: Sequence[str] | None) -> dict[str, object] | None:
    """Return what templates show of an arena's leaderboard, from the answers of `people` (None: of all); None if nobody
    could judge yet, or if it is no arena."""
    board = leaderboard_of(loop, people) if study_of(loop.path).kind == "answers" else None
    if board is None:
        return None
    # `board_section` escapes what it is given, so templates may show it as it is.
    return {"table": Markup(board_section(board)), "sentences": insight(board), "odd": odd_judges(board)}


def board_file(loop: Loop, study: Study, people: Sequence[str] | None, form: str) -> bytes | None:
    """Return the leaderboard of an arena as a file of one of TYPES, `form`; None if nobody could judge yet."""
    board = leaderboard_of(loop, people)
    if board is None:
        return None
    if form == "html":
        return board_page(board, study.ask).encode()
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(board.to_dict()), indent=1)
    out = io.StringIO()
    write_rows(out, list(board.fields()), rows_of(board.fields()))
    return out.getvalue().encode()


def votes_file(loop: Loop, people: Sequence[str] | None) -> bytes | None:
    """Return the votes of an arena as CSV, which `heedful rank` reads; None if it is no arena."""
    outputs = outputs_of(loop.path)
    if outputs is None:
        return None
    out = io.StringIO()
    write_rows(out, BATTLES, battles(loop, outputs, people))
    return out.getvalue().encode()
