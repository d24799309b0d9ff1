"""Scores of Langfuse, from files and from a stand-in server that follows its documentation, and from hostile ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from brought import brought as brought_files
from heedful import TEXTS, Loop, Settings
from heedful.client import langfuse_http as client
from heedful.client.langfuse_http import Langfuse, LangfuseError
from heedful.data.langfuse import as_text, parse_score
from heedful.data.row_report import Report
from heedful.io import Outcome
from heedful.io.formats import FORMATS, check_options
from heedful.io.formats.langfuse import Meanings
from loops import rating_loop
from written import write_lines as lines

DRAFTS = [{"id": "long", "text": "We would perhaps like to inform you."}, {"id": "short", "text": "It is here."}]


def score(id: str, value: Any, type: str = "BOOLEAN", trace: str = "t1", **more: Any) -> dict[str, Any]:
    """A score as `GET /api/public/v3/scores?fields=subject` has it."""
    core = {"id": id, "projectId": "p", "name": "helpful", "value": value, "dataType": type, "source": "ANNOTATION"}
    times = {"timestamp": "2026-06-15T11:00:00Z", "createdAt": "2026-06-15T11:00:02Z", "environment": "default"}
    return core | times | {"subject": {"kind": "trace", "id": trace}} | more


def observation(id: str, trace: str, output: Any, root: bool = True, **more: Any) -> dict[str, Any]:
    """An observation as `GET /api/public/v2/observations?fields=core,basic,io` has it."""
    about = {"id": id, "traceId": trace, "startTime": "2026-06-15T10:00:00Z", "isRootObservation": root}
    return about | {"parentObservationId": None if root else "x", "input": "Tell them.", "output": output} | more


def texts(path: Path) -> Loop:
    return Loop.create(path, encoding=TEXTS, settings=Settings(k=1, control=0.0, exploration=0.0))


def brought(loop: Loop, *files: Path, **options: str) -> tuple[list[Outcome], Report]:
    return brought_files(loop, "langfuse", *files, **options)


SCORES = [
    score("s1", True),
    score("s2", False, trace="t2"),
    score("s3", "It has arrived.", "CORRECTION", name="output"),
    score("s4", True, subject={"kind": "observation", "id": "o1", "traceId": "t3"}),
    score("s5", 0.25, "NUMERIC"),
    score("s6", "good", "CATEGORICAL"),
    score("s7", "Nice", "TEXT"),
    score("s8", True, source="EVAL"),
    score("s9", True, subject={"kind": "session", "id": "x"}),
    score("s10", "", "CORRECTION"),
    score("s11", True, trace="nowhere"),
]


def test_scores_are_feedback_on_the_decisions_of_their_traces(tmp_path: Path) -> None:
    with texts(tmp_path / "a.heedful") as loop:
        for id in ("t1", "t2", "t3"):
            loop.decide(DRAFTS, id=id, context={"prompt": "Tell them."})
        outcomes, report = brought(loop, lines(tmp_path / "scores.jsonl", SCORES))
        assert [(each.id, each.status) for each in outcomes] == [(f"s{i}", "applied") for i in (1, 2, 3, 4)]
        assert (report.rows["scores"], report.used["scores"], report.dropped.total()) == (11, 4, 7)
        reasons = " | ".join(report.dropped)
        for told in ("a number without a meaning", "a category without a meaning", "a comment", "given by a model"):
            assert told in reasons
        assert report.dropped["attached to a whole session"] == report.dropped["without a value"] == 1
        told = {each.event: each for each in loop.lessons()}
        assert (told["s1"].values, told["s2"].values, told["s4"].decision) == ((1.0,), (-1.0,), "t3")
        assert told["s3"].text == "It has arrived."
        assert told["s3"].time == 1781521200000000


def test_what_values_mean_is_said(tmp_path: Path) -> None:
    scores = [score(f"n{i}", i / 2, "NUMERIC", name="quality") for i in range(3)]
    scores += [score(f"c{i}", word, "CATEGORICAL", name="mood") for i, word in enumerate(["good", "bad", "odd"])]
    scores += [score("e", True, source="EVAL"), score("x", True, name="off")]
    options = {"score__quality": "0.5", "score__mood": "good:up,bad:down", "score__off": "none", "evaluations": "yes"}
    with texts(tmp_path / "a.heedful") as loop:
        loop.decide(DRAFTS, id="t1")
        outcomes, report = brought(loop, lines(tmp_path / "scores.jsonl", scores), **options)
        told = {each.event: each.values for each in loop.lessons()}
        ups = {name for name, values in told.items() if values == (1.0,)}
        assert (ups, set(told) - ups) == ({"n1", "n2", "c0", "e"}, {"n0", "c1"})
        assert dict(report.dropped) == {"a category that --score does not name": 1, "left out by --score": 1}
    with rating_loop(tmp_path / "r.heedful") as loop:
        shown = loop.decide(["i1", "i2"], person="ann", id="t1").shown
        scores = [score("a", 4, "NUMERIC", name="stars"), score("b", 9, "NUMERIC", name="stars")]
        outcomes, report = brought(loop, lines(tmp_path / "scores.jsonl", scores), score__stars="1..5")
        assert [each.status for each in outcomes] == ["applied"]
        assert loop.lessons()[0].chosen == (shown[0],)
        assert dict(report.dropped) == {"outside of its range": 1}


@pytest.mark.parametrize("how", ["5..1", "a..b", "", "good", "good:", ":up", "nan", "good:up,,", "good:great"])
def test_a_meaning_that_makes_no_sense_is_refused(how: str) -> None:
    with pytest.raises(ValueError, match=r"^--score: expected mood=1\.\.5 "):
        Meanings({"score:mood": how})


def test_options_of_scores_are_known() -> None:
    check_options(FORMATS["langfuse"], {"score:any": "none", "evaluations": "yes"})
    with pytest.raises(ValueError, match=r"^evaluations: expected yes or no, got 'maybe'$"):
        Meanings({"evaluations": "maybe"})
    with pytest.raises(ValueError, match="got 'colour'"):
        check_options(FORMATS["langfuse"], {"colour": "red"})


OUTPUTS = [
    observation("r1", "t1", "We would perhaps like to inform you.", userId="ann"),
    observation("g1", "t1", "Something else", root=False),
    observation("r2", "t2", json.dumps({"role": "assistant", "content": "It is here."})),
    observation("r3", "t3", ""),
    observation("o1", "t3", "Perhaps.", root=False, input=[{"role": "user", "content": "And now?"}]),
]


@pytest.mark.parametrize("shape", ["jsonl", "data", "a record a line", "export"])
def test_outputs_make_decisions(tmp_path: Path, shape: str) -> None:
    scores, outputs = tmp_path / "scores", tmp_path / "outputs"
    if shape == "data":
        scores.write_text(json.dumps({"data": SCORES, "meta": {"limit": 50}}, indent=1))
        outputs.write_text(json.dumps({"data": OUTPUTS, "meta": {}}))
    elif shape == "a record a line":
        for file, records in ((scores, SCORES), (outputs, OUTPUTS)):
            written = ",\n".join(json.dumps(each) for each in records)
            file.write_text(f'{{"data":[{written}]}}')
    else:
        lines(scores, SCORES if shape == "jsonl" else [exported(each) for each in SCORES])
        lines(outputs, OUTPUTS if shape == "jsonl" else [exported(each) for each in OUTPUTS])
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, scores, traces=str(outputs))
        applied = {(each.kind, each.id) for each in outcomes if each.status == "applied"}
        assert applied == {
            *(("decision", id) for id in ("t1", "t2", "o1")),
            *(("feedback", id) for id in ("s1", "s2", "s3", "s4")),
        }
        assert report.dropped["neither its decision nor its output is there"] == 1
        decided = loop.projection.find_decision("t1")
        assert decided is not None
        assert (decided.person, decided.record.context) == ("ann", {"prompt": "Tell them."})
        assert decided.record.attributes[0]["text"] == "We would perhaps like to inform you."
        loop.forget("ann")
        _, report = brought(loop, scores, traces=str(outputs))
        assert report.dropped["forgotten in this loop"] == 2


@pytest.mark.parametrize("turned", [False, True])
def test_a_score_of_an_observation_is_about_its_own_output(tmp_path: Path, turned: bool) -> None:
    """In any order: of another observation than the root, a decision of its own; of the root, that of the trace."""
    about = {"kind": "observation", "traceId": "t1"}
    scores = [
        score("on trace", True),
        score("on root", "It is here.", "CORRECTION", subject=about | {"id": "r1"}),
        score("on inner", "Something better.", "CORRECTION", subject=about | {"id": "g1"}),
    ]
    outputs = lines(tmp_path / "outputs", OUTPUTS)
    with texts(tmp_path / "a.heedful") as loop:
        if not turned:
            loop.decide([{"id": "a", "text": OUTPUTS[0]["output"]}], id="t1", person="ann")
        rows = lines(tmp_path / "scores", scores[:: -1 if turned else 1])
        brought(loop, rows, traces=str(outputs))
        told = {each.event: each.decision for each in loop.lessons()}
        assert told == {"on trace": "t1", "on root": "r1" if turned else "t1", "on inner": "g1"}
        inner = loop.projection.find_decision("g1")
        assert inner is not None
        assert inner.record.attributes[0]["text"] == "Something else"
        head = loop.projection.log.last()
        for again in ({"traces": str(outputs)}, {}):
            outcomes, _ = brought(loop, rows, **again)
            assert {each.status for each in outcomes} == {"duplicate"}
        assert loop.projection.log.last() == head


def exported(record: dict[str, Any]) -> dict[str, Any]:
    """A record as the export to blob storage has it."""
    names = {"dataType": "data_type", "traceId": "trace_id", "startTime": "start_time", "userId": "user_id"}
    names |= {"isRootObservation": "is_root_observation", "parentObservationId": "parent_observation_id"}
    row = {names.get(name, name): value for name, value in record.items() if name != "subject"}
    if "subject" in record:
        subject, none = record["subject"], dict.fromkeys(("trace_id", "observation_id", "session_id"))
        row |= none | {"trace_id": subject.get("traceId"), f"{subject['kind']}_id": subject["id"]}
        if isinstance(row["value"], str):
            row |= {"value": None, "string_value": row["value"]}
        elif isinstance(row["value"], bool):
            row |= {"value": float(row["value"]), "string_value": str(row["value"])}
    return row


def test_flat_scores_of_the_older_api_are_read() -> None:
    flat = {"id": "a", "name": "n", "source": "API", "traceId": "t", "observationId": None}
    scores = [
        parse_score("x", flat | more)
        for more in (
            {"dataType": "BOOLEAN", "value": 1, "stringValue": "True"},
            {"dataType": "CATEGORICAL", "value": 0, "stringValue": "good"},
            {"dataType": "CORRECTION", "value": 0, "stringValue": "Better."},
            {"dataType": "NUMERIC", "value": 2, "stringValue": None},
            {"dataType": "CATEGORICAL", "value": 0, "stringValue": None},
        )
    ]
    assert [score.value for score in scores] == [True, "good", "Better.", 2.0, None]
    assert {(score.kind, score.trace) for score in scores} == {("trace", "t")}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("Hello.", "Hello."),
        ('"Hello."', "Hello."),
        ('{"role": "assistant", "content": "Hello."}', "Hello."),
        ({"answer": "Hello."}, "Hello."),
        ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}], "Hello."),
        ({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}, "Hello."),
        ({"content": [{"type": "text", "text": "Hello."}]}, "Hello."),
        ('{"broken', '{"broken'),
        ("[1, 2]", "[1, 2]"),
        (None, ""),
        (3, "3"),
        ({"b": 1, "a": "x"}, '{"a": "x", "b": 1}'),
        ("[{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello.'}]", "Hello."),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}, ""),
        ({"role": "assistant", "content": "Hello.", "tool_calls": [{"id": "c1"}]}, ""),
        ({"role": "assistant", "content": "Hello.", "tool_calls": None}, "Hello."),
        ({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}}]}, ""),
        ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "function_call": {"name": "x"}}], ""),
        ({"content": [{"type": "text", "text": "Hello."}, {"type": "tool_use", "id": "c1"}]}, ""),
        ([{"type": "image_url", "image_url": {"url": "x"}}], ""),
    ],
)
def test_outputs_are_texts_in_many_forms(given: object, text: str) -> None:
    assert as_text(given) == text


# ---------------------------------------------------------------------------- over HTTP

Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def server(answer: Callable[[str, dict[str, str], BaseHTTPRequestHandler], Reply | None]) -> Iterator[str]:
    """A server whose answer(path, query, handler) is (status, headers, body), or None if it wrote one itself."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            found = answer(parts.path, {name: each[0] for name, each in parse_qs(parts.query).items()}, self)
            if found is None:
                return
            status, headers, body = found
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def page(data: Sequence[Any], cursor: str | None = None) -> Reply:
    meta = {"limit": 100} | ({} if cursor is None else {"cursor": cursor})
    return 200, {"Content-Type": "application/json"}, json.dumps({"data": data, "meta": meta}).encode()


class StandIn:
    """A stand-in that follows Langfuse's documentation of scores (v3) and observations (v2), two scores a page."""

    def __init__(self, old: bool = False) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refuse = 1  # how many requests get 429
        self.old = old  # whether it is before version 4

    def __call__(self, path: str, query: dict[str, str], handler: BaseHTTPRequestHandler) -> Reply:
        self.asked.append((path, query))
        if handler.headers["Authorization"] != "Basic cGstbGYtMTpzay1sZi0y":  # pk-lf-1:sk-lf-2
            return 401, {}, b'{"message": "Invalid credentials."}'
        if self.refuse:
            self.refuse -= 1
            return 429, {"Retry-After": "7"}, b"{}"
        if path == "/api/public/v3/scores":
            if int(query.get("limit", 50)) > 100 or not set(query) <= {"limit", "cursor", "fields", "fromTimestamp"}:
                return 400, {}, b"{}"
            start = int(query.get("cursor", "0"))
            there = [each for each in SCORES if each["timestamp"] >= query.get("fromTimestamp", "")]
            if "subject" not in query.get("fields", "").split(","):
                there = [{name: value for name, value in each.items() if name != "subject"} for each in there]
            more = str(start + 2) if start + 2 < len(there) else None
            return page(there[start : start + 2], more)
        if path == "/api/public/v2/observations" and not self.old:
            groups = query.get("fields", "core,basic").split(",")
            found = [each for each in OUTPUTS if each["traceId"] == query["traceId"]]
            return page(found if "io" in groups else [{"id": each["id"]} for each in found])
        if self.old and path.startswith("/api/public/traces/"):
            trace = path.rpartition("/")[2]
            inside = [each for each in OUTPUTS if each["traceId"] == trace]
            if inside:
                told = {"id": trace, "input": inside[0]["input"], "output": inside[0]["output"], "observations": inside}
                return 200, {}, json.dumps(told | {"userId": inside[0].get("userId")}).encode()
        return 404, {}, b'{"message": "not found"}'


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-2")


def run(tmp_path: Path, url: str, *more: str) -> Any:
    from typer.testing import CliRunner

    from heedful.cli import app

    args = ["import", str(tmp_path / "a.heedful"), "--langfuse", url, "--json", *more]
    return CliRunner().invoke(app, args, prog_name="heedful")


@pytest.mark.parametrize("old", [False, True])
def test_scores_come_over_http_with_their_outputs(tmp_path: Path, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waits.append)
    monkeypatch.setattr(Langfuse.__init__, "__kwdefaults__", {"seconds": 60.0, "sleep": waits.append})
    texts(tmp_path / "a.heedful").close()
    stand_in = StandIn(old)
    with server(stand_in) as url:
        got = run(tmp_path, url)
        assert (got.exit_code, got.stderr) == (0, "")
        told = json.loads(got.stdout)
        assert told["counts"]["feedback"] == {"applied": 4, "duplicate": 0, "rejected": 0}
        assert told["counts"]["decision"] == {"applied": 3, "duplicate": 0, "rejected": 0}
        assert told["report"]["rows"] == {"scores": 11}
        assert waits == [7.0]
        cursors = [query.get("cursor") for path, query in stand_in.asked if path.endswith("scores")]
        assert cursors == [None, None, "2", "4", "6", "8", "10"]
        listed = [path for path, _ in stand_in.asked if path.endswith("v2/observations")]
        assert len(listed) == (1 if old else 4)
        again = json.loads(run(tmp_path, url).stdout)
        assert again["counts"] == {"feedback": {"applied": 0, "duplicate": 4, "rejected": 0}}
        assert json.loads(run(tmp_path, url, "--since", "2027-01-01T00:00:00Z").stdout)["lines"] == 0
    log = b"".join(file.read_bytes() for file in (tmp_path / "a.heedful").iterdir())
    assert b"sk-lf" not in log + got.output.encode()


def test_the_lines_of_the_page_over_http_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from heedful.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Langfuse.__init__, "__kwdefaults__", {"seconds": 60.0, "sleep": lambda seconds: None})
    (tmp_path / "drafts.json").write_text(json.dumps(DRAFTS))
    script = (Path(__file__).parents[2] / "docs" / "langfuse.md").read_text().split("```sh\n")[2].split("```")[0]
    [read] = [line.split()[1:] for line in script.splitlines() if line.startswith("heedful ")]
    commands = [["init", "replies", "--texts"], read, ["decide", "replies", "--candidates", "drafts.json"]]
    with server(StandIn()) as url:
        for words in commands:
            got = CliRunner().invoke(app, [word.replace("https://cloud.langfuse.com", url) for word in words])
            assert (got.exit_code, got.stderr) == (0, ""), words
    assert "short" in got.stdout


def test_an_import_that_broke_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Langfuse.__init__, "__kwdefaults__", {"seconds": 60.0, "sleep": lambda seconds: None})
    texts(tmp_path / "a.heedful").close()
    stand_in, broken = StandIn(), [True]

    def answer(path: str, query: dict[str, str], handler: BaseHTTPRequestHandler) -> Reply:
        return (500, {}, b"") if broken[0] and query.get("cursor") == "2" else stand_in(path, query, handler)

    with server(answer) as url:
        got = run(tmp_path, url)
        assert got.exit_code == 1
        assert "expected an answer, got status 500" in got.stderr
        with Loop.open(tmp_path / "a.heedful") as loop:
            assert [each.event for each in loop.lessons()] == ["s2", "s1"]
        broken[0] = False
        told = json.loads(run(tmp_path, url).stdout)
        assert told["counts"]["feedback"] == {"applied": 2, "duplicate": 2, "rejected": 0}


def test_a_malformed_score_keeps_no_other_out(tmp_path: Path) -> None:
    texts(tmp_path / "a.heedful").close()

    def answer(path: str, query: dict[str, str], handler: BaseHTTPRequestHandler) -> Reply:
        if path.endswith("scores"):
            return page([score("bad", "x", "NUMERIC"), {"id": 3}, SCORES[0]])
        return page([{"id": "no output"}, OUTPUTS[0]])

    with server(answer) as url:
        told = json.loads(run(tmp_path, url).stdout)
    assert told["counts"]["feedback"]["applied"] == 1
    assert told["report"]["dropped"] == {"malformed": 2}
    assert "page 1: record 1: value: expected a number with NUMERIC" in told["report"]["examples"]["malformed"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--as", "unpaired"], "--langfuse: expected no FILE and no other format with it, got one"),
        (["--traces", "x"], "--langfuse: expected no FILE and no other format with it, got one"),
        (
            ["--option", "colour=red"],
            "--option: expected evaluations, traces, score:NAME, text with --as langfuse, got 'colour'",
        ),
        (["--score", "mood=odd"], "--score: expected mood=1..5 (a range)"),
        (["--since", "yesterday"], "--since: expected a time such as 2026-01-31T12:00:00Z, got 'yesterday'"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, more: list[str], told: str) -> None:
    texts(tmp_path / "a.heedful").close()
    got = run(tmp_path, "http://127.0.0.1:9", *more)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr.startswith(f"heedful: {told}")


def reader(url: str, seconds: float = 5.0) -> Langfuse:
    return Langfuse(url, "pk-lf-1", "sk-lf-2", seconds=seconds, sleep=lambda wait: None)


def test_hostile_servers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 10_000)
    monkeypatch.setattr(client, "MOST_PAGES", 50)
    monkeypatch.setattr(client, "MOST_VALUES", 3_000)
    count = iter(range(10**9))
    other = "http://127.0.0.1:9/api/public/v3/scores"
    cases: list[tuple[Reply | Callable[[], Reply], str]] = [
        ((200, {}, b"x" * 20_000), "at most 10,000 bytes"),
        (page([{}] * 2_000), "at most 3,000 values"),
        (page([{"id": [[[]]] * 1_200}]), "at most 3,000 values"),
        (page([], "again"), "leads nowhere"),
        (page([SCORES[0]], "again"), "leads nowhere"),
        (lambda: page([SCORES[0]], f"c{next(count)}"), "at most 50 pages"),
        (lambda: page([], f"c{next(count)}"), "leads nowhere"),
        ((302, {"Location": other}, b""), "a redirect, which is not followed"),
        ((301, {"Location": "/elsewhere"}, b""), "a redirect, which is not followed"),
        ((401, {}, b"sk-lf-2"), "status 401: do LANGFUSE_PUBLIC_KEY"),
        ((404, {}, b""), "status 404: is it Langfuse 3.179 or newer"),
        ((429, {"Retry-After": "86400"}, b""), "to try again in 86400 s"),
        ((429, {"Retry-After": "soon"}, b""), "got status 429"),
        ((500, {}, b""), "got status 500"),
        ((200, {}, b"<html>"), "json: expected one JSON document"),
        ((200, {}, b"[]"), "json: expected an object"),
        ((200, {}, b"[" * 9_000), "json: expected"),
        ((200, {}, b"\xff"), "json: expected|text: expected"),
        ((200, {}, b'{"data": 3, "meta": {}}'), "data: expected a list of objects"),
        ((200, {}, b'{"data": [3], "meta": {}}'), "data: expected a list of objects"),
        ((200, {}, b'{"data": []}'), "meta: expected an object"),
        ((200, {}, b'{"data": [], "meta": {"cursor": 3}}'), "meta: expected an object"),
        ((200, {"Content-Length": "9999"}, b'{"data"'), "no answer"),
    ]
    for reply, told in cases:

        def answer(*_: object, reply: Any = reply) -> Reply:
            found: Reply = reply() if callable(reply) else reply
            return found

        with server(answer) as url, pytest.raises(LangfuseError, match=told) as error:
            list(reader(url, 0.5).scores())
        assert "sk-lf" not in str(error.value)
        assert "127.0.0.1:9" not in str(error.value)


def test_requests_are_sent_again_after_waits_and_keys_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """5xx, a broken connection and 429, each once: after 1 and 2 s, what Retry-After says, twice that."""
    caplog.set_level(0)
    replies = iter([(503, {}, b""), "break off", (429, {"Retry-After": "30"}, b""), (500, {}, b""), page([SCORES[0]])])
    sent, waits = list[str](), list[float]()

    def answer(path: str, query: dict[str, str], handler: BaseHTTPRequestHandler) -> Reply | None:
        sent.append(handler.headers["Authorization"])
        reply = next(replies)
        if isinstance(reply, str):
            handler.close_connection = True
            return None
        return reply

    with server(answer) as url:
        found = list(Langfuse(url, "pk-lf-1", "sk-lf-2", sleep=waits.append).scores())
    assert [record["id"] for each in found for _, record in each] == ["s1"]
    assert waits == [1.0, 2.0, 30.0, 60.0]
    assert sent == ["Basic cGstbGYtMTpzay1sZi0y"] * 5
    assert "lf-2" not in caplog.text
    assert "cGstbGYt" not in caplog.text


@pytest.mark.parametrize("where", ["head", "body"])
def test_a_server_that_dribbles_is_given_up(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TRIES", 1)

    def answer(path: str, query: dict[str, str], handler: BaseHTTPRequestHandler) -> None:
        if where == "body":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(200):
            try:
                handler.wfile.write(b"x")
            except OSError:
                return
            time.sleep(0.02)

    with server(answer) as url, pytest.raises(LangfuseError, match=r"not whole within 0\.2 s"):
        list(reader(url, 0.2).scores())


@pytest.mark.parametrize(
    "url",
    [
        "http://cloud.langfuse.com",
        "ftp://cloud.langfuse.com",
        "cloud.langfuse.com",
        "https://",
        "https://pk:sk@cloud.langfuse.com",
        "https://cloud.langfuse.com?x=1",
        "https://cloud.langfuse.com:port",
        "https://cloud.langfuse.com/a b",
        "https://cloud.langfuse.com\r\nX: y",
        "https://cloud.längfuse.com",
    ],
)
def test_keys_go_nowhere_else(url: str) -> None:
    with pytest.raises(ValueError, match=r"^--langfuse: expected ") as error:
        Langfuse(url, "pk-lf-1", "sk-lf-2")
    assert "sk" not in str(error.value)


def test_keys_are_needed_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with pytest.raises(ValueError, match=r"^LANGFUSE_SECRET_KEY: expected a key of the project, got none$"):
        Langfuse.from_environment("https://cloud.langfuse.com")
    with pytest.raises(ValueError, match=r"^LANGFUSE_SECRET_KEY: expected a key of the project, got something else$"):
        Langfuse("https://cloud.langfuse.com", "pk", "a\r\nb")
    assert repr(Langfuse("https://cloud.langfuse.com/", "pk", "secret")) == "Langfuse('cloud.langfuse.com')"


def test_what_a_score_needs_may_stand_behind_it_and_the_same_scores_again_change_nothing(tmp_path: Path) -> None:
    """A score of an observation without an output is about the decision of its trace, which a later score brings; a
    correction that is the output is none, whether or not its decision was there."""
    scores = [
        score("x", True, subject={"kind": "observation", "id": "nothing", "traceId": "t1"}),
        score("e", "It has arrived.", "CORRECTION", name="output"),
        score("y", False),
        score("gone", True, trace="t9"),
        score("e2", "It has arrived.", "CORRECTION", name="output"),
    ]
    traces = lines(tmp_path / "traces.jsonl", [observation("o1", "t1", "It has arrived.")])
    with texts(tmp_path / "a.heedful") as loop:
        outcomes, report = brought(loop, lines(tmp_path / "scores.jsonl", scores), traces=str(traces))
        applied = sorted((each.kind, each.id) for each in outcomes)
        assert applied == [("decision", "t1"), ("feedback", "x"), ("feedback", "y")]
        assert {each.status for each in outcomes} == {"applied"}
        assert (report.rows["scores"], report.used["scores"]) == (5, 2)
        assert dict(report.dropped) == {
            "the correction is the output": 2,
            "neither its decision nor its output is there": 1,
        }
        head = loop.projection.log.last()
        again, same = brought(loop, tmp_path / "scores.jsonl", traces=str(traces))
        assert {each.status for each in again} == {"duplicate"}
        assert (same.used, same.dropped) == (report.used, report.dropped)
        assert loop.projection.log.last() == head
