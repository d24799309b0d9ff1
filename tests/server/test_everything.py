"""What pages, reports and commands say of a log that has everything in it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browsing import Visitor
from typer.testing import CliRunner

from brought import taken
from everything import STRANGE, decisions, everything, reports
from heedful import Loop
from heedful.cli import app
from heedful.io import export_lines
from heedful.server.pages import PAGES
from heedful.server.pages.formatting import describe_event, describe_lesson
from kinds import NAMES, Kind, each_kind
from loops import as_json, small_loop

WHYS = 4
"""How many explanations are asked for: each replays a part of the log."""
NOTHING = ("s2-p0", "s3-p0")
"""The decisions that showed nothing which was on offer."""
FORMS = ("csv", "json", "jsonl", "parquet")


def words_of(loop: Loop, decision: str) -> set[str]:
    """What pages say of the answers to a decision, as pieces of feedback and as events."""
    lessons = [describe_lesson(loop, each) for each in loop.lessons() if each.decision == decision]
    lines = [line for line in export_lines(loop) if line["kind"] == "feedback" and line["decision"] == decision]
    return {*lessons, *[describe_event(loop, line) for line in lines]}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"clicks": [STRANGE]}, f"clicked {STRANGE}"),
        ({"better": [STRANGE]}, f"would rather have {STRANGE}"),
        ({"thumb": "down", "item": STRANGE}, f"thumb down for {STRANGE}"),
        ({"choice": "second"}, "the second"),
        ({"edit": "a text", "item": STRANGE}, "corrected what was shown"),
    ],
)
def test_an_answer_about_what_was_not_on_offer_is_said_as_it_was_given(
    tmp_path: Path, answer: dict[str, object], said: str
) -> None:
    with small_loop(tmp_path / "l", n_items=3) as loop:
        shown = loop.decide([STRANGE, "nor this"], id="d").shown
        assert loop.feedback("d", **answer).status == "applied"
        assert words_of(loop, "d") == {said[:1].upper() + said[1:], f"Answer: {said}"}
        [lesson] = loop.lessons()
        assert (lesson.form, lesson.learned, lesson.said) == (next(iter(answer)), False, answer)
        [line] = [line for line in export_lines(loop) if line["kind"] == "decision"]
        assert describe_event(loop, line).startswith(f"Shown: {shown[0]} and {shown[1]}")


def test_a_text_that_is_not_kept_can_be_exported_and_imported(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l", n_items=3, store_text=False) as loop:
        loop.decide([STRANGE], id="d")
        assert loop.feedback("d", edit="nobody may read this").status == "applied"
        lines = as_json(list(export_lines(loop)))
        assert words_of(loop, "d") == {"Corrected what was shown", "Answer: corrected what was shown"}
    assert "nobody may" not in str(lines)
    with small_loop(tmp_path / "copy", n_items=0, store_text=False) as copy:
        outcomes = taken(copy, lines)
        assert {each.status for each in outcomes} == {"applied"}


@pytest.mark.slow
@each_kind
def test_every_report_is_given_or_refused_with_a_reason(kind: Kind, tmp_path: Path) -> None:
    refused = set()
    with everything(kind, tmp_path / "l.heedful") as loop:
        for name, report in reports(loop, kind):
            try:
                report()
            except (KeyError, IndexError):
                raise  # nobody's reason
            except (ValueError, LookupError) as error:
                refused |= {name.split()[0]} if len(str(error)) > 20 else {name}
    assert refused <= {"standing", "why", "export", "experiment"}


@pytest.mark.slow
@each_kind
def test_every_page_is_there(kind: Kind, visitor: Visitor, tmp_path: Path) -> None:
    """Those that there are, of everybody and of single people, of each decision; and all that they lead to."""
    with everything(kind, tmp_path / "l.heedful") as loop:
        assert {"d33", "imported-strange"} <= {line["id"] for line in decisions(loop)}
    paths = {page.path for page in PAGES if page.method == "GET" and not page.path.endswith("/live")}
    todo = [
        re.sub(r"\{(loop|name)\}", "l", path).replace("{form}", form).replace("{number}", "0") + query
        for path in sorted(paths)
        for form in (FORMS if "{form}" in path else ("",))
        for query in ("", *[f"?{urlencode({'person': who})}" for who in ("p0", "nobody") if "{loop}" in path])
    ]
    asked = [{"decision": id, "item": each} for id in ("d33", "imported-strange") for each in ("", STRANGE)]
    todo += [f"/loops/l/why?{urlencode(each)}" for each in asked]
    seen, linked = dict[str, int](), set[str]()
    while todo:
        path = todo.pop()
        explains = path.startswith("/loops/l/why?")
        if path not in seen and not (explains and sum(each.startswith("/loops/l/why?") for each in seen) >= WHYS):
            answer = visitor.http.get(path)
            seen[path] = answer.status_code
            links = {
                each.partition("#")[0].replace("&amp;", "&") for each in re.findall(r'href="(/[^"]*)"', answer.text)
            }
            linked |= {each for each in links if each}
            todo += sorted(links - seen.keys() - {""})
    assert {path: status for path, status in seen.items() if status >= 500} == {}
    assert {path: seen[path] for path in linked if seen.get(path, 200) >= 400} == {}
    assert not [path for path in linked for id in NOTHING if f"decision={id}" in path]  # there is nothing to explain


@pytest.mark.slow
@each_kind
def test_every_command_speaks(kind: Kind, tmp_path: Path) -> None:
    path, own = tmp_path / "l.heedful", [] if kind.own is None else ["--own", kind.own]
    with everything(kind, path) as loop:
        loop.snapshot()
        ids = [line["id"] for line in decisions(loop)][::7]
    commands = [["report"], ["health"], ["standing"], ["style"], ["evaluate", "--learner", kind.other], ["experiment"]]
    commands = [[each[0], str(path), *each[1:], *json] for each in commands for json in ([], ["--json"])]
    commands += [["why", str(path), id] for id in [*ids, *NOTHING]]
    commands += [["why", str(path), id, name] for id in [*ids, "s1-p0"] for name in (STRANGE, NAMES[0])]
    commands += [["export", str(path), "-"], ["doctor", str(path)]]
    for command in commands:
        result = CliRunner().invoke(app, [*command, *([] if command[0] == "doctor" else own)])
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        assert result.exit_code in (0, 1, 2), command
        assert "Traceback" not in result.output
