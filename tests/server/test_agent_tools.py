"""`heedful mcp`: a loop as tools of the Model Context Protocol, asked by the SDK's own client over stdio."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp")

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from heedful import TEXTS, Loop, Settings, infer
from heedful.server.agent_tools import LIKES, agent_server, likes_in_words
from heedful.storage import Address, Place

CARS = [{"id": name, "hp": hp, "mpg": mpg} for name, hp, mpg in (("a", 190, 13), ("b", 70, 33), ("c", 110, 22))]
DRAFTS = [
    {"id": "x", "text": "The parcel that you ordered is here! You may fetch it!"},
    {"id": "y", "text": "It is here."},
]
COMMAND = [sys.executable, "-c", "from heedful.cli import main; main()", "mcp"]


def cars(folder: Path, **settings: Any) -> Path:
    path = folder / "cars.heedful"
    made = Settings(control=0.0, exploration=0.0, **settings)
    Loop.create(path, encoding=infer(CARS), items=CARS, settings=made).close()
    return path


def letters(folder: Place) -> Place:
    path = folder / "letters.heedful"
    Loop.create(path, encoding=TEXTS, settings=Settings(k=1, control=0.0, exploration=0.0)).close()
    return path


def talk(server: Any, steps: Callable[[Client], Awaitable[None]]) -> None:
    """Let a client of the SDK take the steps, with a server over stdio (a loop's path) or in memory."""

    async def run() -> None:
        if isinstance(server, Place):
            named = f"{server.url}#{server.key}" if isinstance(server, Address) else str(server)
            program = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], named], env=dict(os.environ))
            async with Client(stdio_client(program)) as client:
                await steps(client)
        else:
            async with Client(server) as client:
                await steps(client)

    anyio.run(run)


async def call(client: Client, tool: str, **given: Any) -> Any:
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content  # type: ignore[union-attr]
    return answer.structured_content


async def refused(client: Client, tool: str, **given: Any) -> str:
    answer = await client.call_tool(tool, given)
    assert answer.is_error
    assert "Traceback" not in answer.content[0].text  # type: ignore[union-attr]
    return str(answer.content[0].text).removeprefix(f"Error executing tool {tool}: ")  # type: ignore[union-attr]


async def read(client: Client, address: str) -> str:
    return str((await client.read_resource(address)).contents[0].text)  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_life_over_stdio(home: Place) -> None:
    path = letters(home)

    async def steps(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "heedful"
        assert LIKES in str(client.instructions)
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["choose", "learn", "undo", "forget", "ask"]
        assert all(tool.description and tool.description.endswith(".") for tool in tools)
        assert [tool.name for tool in tools if tool.annotations and tool.annotations.destructive_hint] == [
            "undo",
            "forget",
        ]
        chosen = await call(client, "choose", candidates=DRAFTS, person="ann", id="d1")
        assert (chosen["decision"], chosen["order"], chosen["arm"]) == ("d1", ["x"], "learned")
        assert chosen["why"].startswith("x was shown in place 1")
        assert await call(client, "choose", candidates=DRAFTS, person="ann", id="d1") == chosen
        learned = await call(client, "learn", decision="d1", edit="The parcel that you ordered is here.", id="e1")
        assert (learned["status"], learned["learned"]) == ("applied", True)
        again = await call(client, "learn", decision="d1", edit="The parcel that you ordered is here.", id="e1")
        assert again["status"] == "duplicate"
        assert "1 edit does not suffice" in await read(client, f"{LIKES}/ann")
        assert (await call(client, "undo", event="e1"))["status"] == "applied"
        assert (await call(client, "undo", event="e1"))["status"] == "duplicate"
        gone = await call(client, "forget", person="ann")
        where = gone.pop("unreached")
        assert gone == {"person": "ann", "events": 3, "exports": [], "alike": [], "erased": True}
        assert bool(where) is isinstance(path, Address)
        assert "d1 was forgotten" in await refused(client, "learn", decision="d1", thumb="up")

    talk(path, steps)
    with Loop.open(path) as loop:  # the command has closed it
        assert loop.verify() == []
        assert loop.projection.log.counts() == {"erased": 1, "forget": 1, "loop": 1}


@pytest.mark.slow
def test_the_first_lines_of_the_page_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    install, make, serve, tell = page.split("```\n")[1].splitlines()
    assert install == "pip install 'heedful[mcp]'"

    def words(line: str) -> list[str]:
        return [*COMMAND[:-1], *shlex.split(line)[1:]]

    subprocess.run(words(make), cwd=tmp_path, check=True, capture_output=True)
    edited = DRAFTS[0]["text"].replace("!", ".")

    async def steps() -> None:
        command, *args = words(serve)
        program = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=tmp_path)
        async with Client(stdio_client(program)) as client:
            for i in range(14):
                await call(client, "choose", candidates=DRAFTS[:1], person="ann", id=f"d{i}", why=False)
                await call(client, "learn", decision=f"d{i}", edit=edited)

    anyio.run(steps)
    told = subprocess.run(words(tell), cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "without exclamation marks" in told.stdout


def test_choosing_asking_and_what_is_liked(tmp_path: Path) -> None:
    with Loop.open(cars(tmp_path)) as loop:

        async def steps(client: Client) -> None:
            assert await read(client, LIKES) == "Nothing was learned so far about anybody."
            pair = await call(client, "ask", person="ann", id="q1")
            assert (len(pair["pair"]), pair["answers"][0]) == (2, "first")
            assert (await call(client, "learn", decision="q1", choice="second"))["learned"]
            chosen = await call(client, "choose", show=2, why=False)
            assert "why" not in chosen
            assert len(chosen["order"]) == 2
            assert (await call(client, "learn", decision=chosen["decision"], better=["b", "c"]))["status"] == "applied"
            chosen = await call(client, "choose", candidates='["a", "b", "zz"]')  # as some programs send lists
            assert chosen["unknown"] == ["zz"]
            rated = await call(client, "learn", decision=chosen["decision"], rating={"a": 1, "b": 5})
            assert rated["learned"] == (chosen["order"][0] != "b")
            told = await read(client, f"{LIKES}/ann%2Fbob")
            assert told.startswith("What counts most, by weight: ")
            assert "Best of the items on offer: b, " in told
            assert "Does learning help?" in await read(client, LIKES)

        talk(agent_server(loop, "cars"), steps)


def test_a_pair_of_a_loop_of_choices(tmp_path: Path) -> None:
    with Loop.create(tmp_path / "l.heedful", items=CARS, settings=Settings(choices="best", control=0.0)) as loop:

        async def steps(client: Client) -> None:
            for i in range(3):
                pair = await call(client, "ask", person="ann")
                better = "first" if pair["pair"][0] < pair["pair"][1] else "second"
                assert (await call(client, "learn", decision=pair["decision"], choice=better, id=f"e{i}"))["learned"]
            assert "Best of the items on offer: a, " in await read(client, f"{LIKES}/ann")
            assert "got 'zz'; put it on offer first" in await refused(client, "ask", candidates=["a", "zz"])

        talk(agent_server(loop, "l"), steps)


def test_style_is_what_a_person_likes(tmp_path: Path) -> None:
    with Loop.open(letters(tmp_path)) as loop:
        for i in range(14):
            loop.decide(DRAFTS[:1], id=f"d{i}", person="ann")
            loop.feedback(f"d{i}", edit=DRAFTS[0]["text"].replace("!", "."))
        loop.correct_style("ann", always="Sign with the first name.")
        told = likes_in_words(loop, "ann")
        assert "without exclamation marks. Always: Sign with the first name.\n" in told


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("choose", {"candidates": 5}, "candidates: expected a list, got 5"),
        ("choose", {"candidates": "a"}, "candidates: expected a list, got 'a'"),
        (
            "choose",
            {"candidatez": ["a"]},
            "choose: expected only candidates, person, context, show, why, id, got 'cand",
        ),
        ("choose", {"candidates": ["a"], "show": "two"}, "show: expected a whole number, got 'two'"),
        ("choose", {"candidates": ["a"], "why": "perhaps"}, "why: expected true or false, got 'perhaps'"),
        ("choose", {"candidates": ["a"], "context": []}, "context: expected an object, got []"),
        ("choose", {"candidates": ["a"], "show": 10**400}, "show: expected"),
        ("choose", {"candidates": [{"id": "a", "hp": "fast"}]}, "hp"),
        ("choose", {"candidates": [[1, 2], None]}, "candidates"),
        ("learn", {}, "decision: expected a value, got none"),
        (
            "learn",
            {"decision": "d"},
            "learn: expected one of clicks, better, edit, thumb, action, rating, grade, choice, none, got",
        ),
        (
            "learn",
            {"decision": "d", "item": "a"},
            "learn: expected one of clicks, better, edit, thumb, action, rating, grade, choice, none, got",
        ),
        ("learn", {"decision": "d", "better": "y"}, "better: expected a list, got 'y'"),
        ("learn", {"decision": "d", "better": ["y", 2]}, "better.1: expected a text, got 2"),
        ("learn", {"decision": "d", "rating": "five"}, "rating: expected an object, got 'five'"),
        ("learn", {"decision": "d", "edit": "x", "attributes": {"hp": 1}}, "attributes: expected none with edit"),
        ("learn", {"decision": "d", "attributes": {}}, "feedback: expected one of|edit: expected"),
        ("learn", {"decision": "d", "better": ["zz"]}, "better: expected candidates of the decision"),
        ("learn", {"decision": "d", "rating": {"a": "many"}}, "rating.a: expected a number, got 'many'"),
        ("learn", {"decision": 5, "thumb": "up"}, "decision: expected a text, got 5"),
        ("undo", {"event": "zz"}, "feedback zz is not in the log"),
        ("forget", {}, "person: expected a value, got none"),
        ("ask", {"candidates": ["a", "a", "a"]}, "candidates: expected two or more to ask about, got 1"),
        ("ask", {"candidates": []}, "candidates: expected two or more to ask about, got 0"),
        ("ask", {"candidates": ["a", "zz"]}, "got 'zz'; put it on offer first"),
        ("ask", {"candidates": ["a", "b", "b"]}, "candidates: expected each once, got 'b' 2 times"),
        ("nope", {}, "Unknown tool: nope"),
    ],
)
def test_what_is_refused_names_the_field_and_changes_nothing(
    tmp_path: Path, tool: str, given: dict[str, Any], told: str
) -> None:
    with Loop.open(cars(tmp_path)) as loop:
        loop.decide(id="d", show=2)
        before = loop.projection.log.counts(), loop.weights

        async def steps(client: Client) -> None:
            got = await refused(client, tool, **given)
            assert any(each in got for each in told.split("|")), got
            assert "pydantic" not in got

        talk(agent_server(loop, "cars"), steps)
        assert (loop.projection.log.counts(), loop.weights) == before


def test_learn_takes_what_the_forms_of_the_loop_declare(tmp_path: Path) -> None:
    best_worst = f"{Path(__file__).parents[1] / 'fifth.py'}:BestWorst"
    with Loop.create(tmp_path / "l.heedful", items=CARS, encoding=infer(CARS), learner=best_worst) as loop:

        async def steps(client: Client) -> None:
            [learn] = [tool for tool in (await client.list_tools()).tools if tool.name == "learn"]
            assert list(learn.input_schema["properties"]) == ["decision", "best", "worst", "none", "id"]
            assert str(learn.description).endswith("in exactly one way: best, none.")
            chosen = await call(client, "choose", id="d")
            first, second = chosen["order"][:2]
            assert (await call(client, "learn", decision="d", best=second, worst=first))["learned"]
            assert "learn: expected only decision, best" in await refused(client, "learn", decision="d", thumb="up")

        talk(agent_server(loop, "l"), steps)


def test_the_same_id_with_other_content_is_refused(tmp_path: Path) -> None:
    with Loop.open(cars(tmp_path)) as loop:
        loop.decide(id="d", show=2)

        async def steps(client: Client) -> None:
            assert (await call(client, "learn", decision="d", thumb="up", id="e"))["status"] == "applied"
            assert "with other content" in await refused(client, "learn", decision="d", thumb="down", id="e")

        talk(agent_server(loop, "cars"), steps)


@pytest.mark.parametrize("address", ["heedful://other", f"{LIKES}/", f"{LIKES}/..%2F..", f"{LIKES}/{'x' * 300}"])
def test_resources_that_are_not_there(tmp_path: Path, address: str) -> None:
    with Loop.open(cars(tmp_path)) as loop:

        async def steps(client: Client) -> None:
            with pytest.raises(MCPError):
                await read(client, address)

        talk(agent_server(loop, "cars"), steps)


@pytest.mark.slow
def test_stdout_holds_only_the_protocol_whatever_comes_on_stdin(tmp_path: Path) -> None:
    path = cars(tmp_path)

    def asks(id: int, method: str, **params: Any) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        asks(1, "initialize", **hello),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "no JSON",
        "[]",
        "{}",
        "\x00\x01",
        "[" * 5000,
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "nothing/there"}),
        asks(3, "tools/call", name="choose", arguments={"candidates": ["\ud800", "a"]}),
        asks(4, "tools/call", name="choose", arguments={"person": "\ud800"}),
        asks(5, "tools/call", name="learn", arguments={"decision": "zz", "edit": "x" * 2_000_000}),
        asks(6, "tools/call", name="choose", arguments={"id": "last"}),
    ]
    answers = {}
    with subprocess.Popen(
        [*COMMAND, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write("\n".join(lines) + "\n")
        program.stdin.flush()
        while not {1, 2, 3, 4, 5, 6} <= answers.keys():  # to end stdin before would end the requests
            answer = json.loads(program.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            answers[answer["id"]] = answer
        program.stdin.close()
        for line in program.stdout:  # what cannot be read has no id
            assert json.loads(line).items() >= {"jsonrpc": "2.0", "id": None}.items()
    assert program.returncode == 0
    assert answers[6]["result"]["structuredContent"]["decision"] == "last"
    assert answers.keys() == {None, 1, 2, 3, 4, 5, 6}
    assert answers[2]["error"]["code"] == -32601
    assert "edit: expected a text of at most 1000000 characters" in answers[5]["result"]["content"][0]["text"]
    with Loop.open(path) as loop:
        assert loop.verify() == []


@pytest.mark.slow
def test_the_command_says_what_is_missing_and_imports_nothing_before(tmp_path: Path) -> None:
    none = subprocess.run([*COMMAND, str(tmp_path / "none")], capture_output=True, text=True)
    assert (none.returncode, none.stdout) == (2, "")
    assert "no such loop" in none.stderr
    program = "import sys, heedful.cli.mcp, heedful.server.agent_tools; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"mcp", "pydantic", "starlette", "httpx"}.isdisjoint(names)
    assert "heedful.server.agent_tools" in names
    hide = f"import sys; sys.modules['mcp'] = None; sys.argv = ['heedful', 'mcp', {str(cars(tmp_path))!r}]"
    program = (
        f"{hide}; import importlib.util as u; f = u.find_spec; u.find_spec = lambda n: None if n == 'mcp' else f(n)"
    )
    program += "; from heedful.cli import main; main()"
    lacking = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (lacking.returncode, lacking.stdout) == (1, "")
    assert "pip install '.[mcp]'" in lacking.stderr


LEVELS = 900
UNREADABLE = {
    "nested too deep": "[" * LEVELS + "]" * LEVELS,
    "half a surrogate pair": '"\\ud800"',
    "a number that ends early": "1.",
    "an id that is another's": '{"id": 3}, "more": 1.',
}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_a_request_that_cannot_be_read_is_answered_and_so_is_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    def send(id: int, method: str, **parameters: Any) -> str:
        told = {"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}
        requests.write(json.dumps(told).replace('"VALUE"', value) + "\n")
        requests.flush()
        return answers.readline()

    ends = [os.pipe(), os.pipe()]
    with Loop.open(cars(tmp_path)) as loop, ExitStack() as stack:
        stdin, requests, answers, stdout = [
            stack.enter_context(os.fdopen(end, mode)) for pair in ends for end, mode in zip(pair, "rw")
        ]
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        serving = threading.Thread(target=agent_server(loop, "cars").run, args=["stdio"], daemon=True)
        serving.start()
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert "serverInfo" in send(1, "initialize", **about)
        refusal = json.loads(send(2, "tools/call", name="choose", arguments={"context": "VALUE"}))
        assert refusal["id"] == 2
        assert refusal["error"]["code"] == -32700
        assert refusal["error"]["message"].startswith("request: expected a line of JSON, got one that ")
        chosen = json.loads(send(3, "tools/call", name="choose", arguments={"id": "d1"}))
        assert chosen["result"]["structuredContent"]["decision"] == "d1"
        requests.close()
        serving.join()


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"id": "a", "params": [', "a"),
        ('{"params": {"id": 1}, "id" : -2}', -2),
        ('{"params": ' + "[" * 100_000, None),
        ('{"params": ' + "[" * 100_000 + "]" * 100_000 + ', "id": 7}', 7),
        ('{"params": "\\"id\\": 3 {", "id": 4}', 4),
        ('{"a": "\\"id\\": 3' + '\\"' * 100_000, None),
        ('{"id": "\\ud800"}', None),
        ('{"id": "\ud800"}', None),
        ('{"id": ' + "9" * 5_000, None),
        ('[{"id": 3}]', None),
        ('{"method": "id", "x": 1.', None),
        ("", None),
    ],
)  # fmt: skip
def test_the_id_of_a_request_is_found_in_lines_that_cannot_be_read(line: str, id: object) -> None:
    from heedful.server.agent_tools import _id_in

    assert _id_in(line) == id
