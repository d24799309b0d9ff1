"""A loop for agents: tools and a resource of the Model Context Protocol (MCP), as its Python SDK serves them.

Each tool is one call of `heedful.Loop`: choose, learn, undo, forget, ask. What a loop refuses, it refuses here by an
error of the tool that names the field; an event that is sent again under its id counts once. What a person likes is a
resource, in words. An optional text is "" if it is left out, and not null: where a field may be something other than a
text, the SDK reads a text such as "null" or "[1]" as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from heedful import __version__
from heedful.core.formatting import signed
from heedful.core.validation import describe
from heedful.results.answers import Answer, plain

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.shared.message import SessionMessage

    from heedful.loop import Loop
    from heedful.loop.interactions.fields import Field
    from heedful.loop.interactions.telling import Part

F = TypeVar("F", bound=Callable[..., Any])
LIKES = "heedful://likes"
"""The address of the resource that says what everybody likes; of one person, with "/" and the name behind it."""
MOST = 5
"""How many rows of a table, weights or items are said."""
INSTRUCTIONS = (
    "Before you show people one of several things, call choose and show them in the order that it returns. Tell learn "
    "what they did: which they preferred, their corrected text, a thumb. Read {likes}/PERSON before you write for "
    "them. Give every call an id of your own: sent again under it, it counts once."
)
ATTRIBUTES = "attributes"
"""The argument of learn that takes an object, where a form takes that or a text."""
PERSON_TOLD = "whom it is for: a name of yours for a person; without it nobody in particular"
ID_TOLD = "an id of your own for this event: sent again under it, it counts once"


def about(text: str) -> Any:
    """Return the annotation that gives an argument of an MCP tool the description `text`, as the MCP SDK reads it."""
    from pydantic import Field

    return Field(description=text)


def agent_server(loop: Loop, name: str) -> MCPServer[Any]:
    """Return an MCP server, not running yet, whose tools use `loop`; it is called heedful and says that the loop is
    `name`.

    Raise ModuleNotFoundError if the SDK, package mcp of the extra `mcp`, is missing."""
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ToolError
    from mcp.server.stdio import stdio_server
    from mcp.types import ToolAnnotations
    from pydantic import ValidationError

    from heedful.loop.interactions.fields import fields_of
    from heedful.loop.interactions.forms import CHOICES

    class Server(MCPServer[Any]):
        """A server that refuses arguments in the words of heedful, and answers requests that cannot be read."""

        async def run_stdio_async(self) -> None:
            served, requests = anyio.create_memory_object_stream[Any](0)
            lower = self._lowlevel_server

            async def read() -> None:
                async with served:
                    async for message in messages:
                        if isinstance(message, Exception):
                            await answers.send(_unreadable(message))
                        else:
                            await served.send(message)

            async with stdio_server() as (messages, answers), anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await lower.run(requests, answers, lower.create_initialization_options())

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            names = accepted.get(name)
            if names is not None and (unknown := [argument for argument in arguments if argument not in names]):
                raise ToolError(f"{name}: expected only {', '.join(names)}, got {describe(unknown[0])}")
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    raise ToolError(_refused_argument(error.__cause__.errors()[0])) from None
                raise

    accepted: dict[str, list[str]] = {}  # the names of each tool's arguments
    server: MCPServer[Any] = Server(
        "heedful",
        title=f"heedful: {name}",
        instructions=INSTRUCTIONS.format(likes=LIKES),
        version=__version__,
        log_level="WARNING",
    )

    def tool(destroys: bool = False) -> Callable[[F], F]:
        hints = ToolAnnotations(idempotent_hint=True, destructive_hint=destroys, open_world_hint=False)

        def add(function: F) -> F:
            accepted[function.__name__] = list(signature(function).parameters)
            return server.tool(description=getdoc(function), annotations=hints)(function)

        return add

    @tool()
    def choose(
        candidates: Annotated[
            list[Any] | None,
            about("names of items on offer, or objects with an id and attributes, in your order; without it all items"),
        ] = None,
        person: Annotated[str, about(PERSON_TOLD)] = "",
        context: Annotated[dict[str, Any] | None, about("what describes the request, if the loop uses that")] = None,
        show: Annotated[int | None, about("how many will be shown; without it as the loop's settings say")] = None,
        why: Annotated[bool, about("whether to say why; without it a loop with a long log answers faster")] = True,
        id: Annotated[str, about(ID_TOLD)] = "",
    ) -> dict[str, Any]:
        """Order candidates by what was learned, best first, and log that decision; the answer says why, and has the id
        that `learn` needs."""
        with _refusing(ToolError):
            decision = loop.decide(candidates, person=person or None, context=context, show=show, id=id or None)
            strange = {"unknown": decision.unknown, "undeclared": decision.undeclared}
            order = {"decision": decision.id, "order": list(decision.shown), "arm": decision.arm}
            order |= {name: list(names) for name, names in strange.items() if names is not None}
            return order | ({"why": _why(loop, decision.id)} if why else {})

    fields = fields_of(*loop.projection.interaction.forms.values())

    def learn(decision: str, id: str, **given: Any) -> dict[str, Any]:
        with _refusing(ToolError):
            attributes = given.pop(ATTRIBUTES, None)
            for field in fields if attributes is not None else ():
                if field.takes_object:
                    if given[field.name]:
                        raise ValueError(f"{ATTRIBUTES}: expected none with {field.name}, got some")
                    given[field.name] = attributes
            form = {name: value for name, value in given.items() if value is not None and value != ""}
            ways = [field.name for field in fields if field.own]
            if not any(name in form for name in ways):
                raise ValueError(f"learn: expected one of {', '.join(ways)}, got none")
            return _answered(loop.feedback(decision, id=id or None, **form))

    _declare_learn(learn, fields)
    tool()(learn)

    @tool(destroys=True)
    def undo(
        event: Annotated[str, about("the id of what is taken back, which learn returned as event")],
        id: Annotated[str, about(ID_TOLD)] = "",
    ) -> dict[str, Any]:
        """Take back what was learned in one event: the model becomes the one that never saw it."""
        with _refusing(ToolError):
            return _answered(loop.undo(event, id=id or None))

    @tool(destroys=True)
    def forget(person: Annotated[str, about("whose decisions and answers are erased")]) -> dict[str, Any]:
        """Erase a person: all decisions for them and all that was learned from their answers. This cannot be undone."""
        with _refusing(ToolError):
            gone = loop.forget(person)
            left = {"exports": list(gone.exports), "unreached": list(gone.unreached), "alike": list(gone.alike)}
            return {"person": person, "events": gone.events, **left, "erased": gone.erased}

    @tool()
    def ask(
        person: Annotated[str, about(PERSON_TOLD)] = "",
        candidates: Annotated[list[Any] | None, about("what to ask about, as for choose; without it all items")] = None,
        id: Annotated[str, about(ID_TOLD)] = "",
    ) -> dict[str, Any]:
        """Return the next two to compare: show both, ask which is better, and tell `learn` the choice."""
        with _refusing(ToolError):
            if "choice" not in loop.projection.interaction.forms:
                taken = ", ".join(loop.projection.interaction.forms)
                raise ValueError(f"ask: expected a loop that takes choices, got one that takes {taken}")
            among = loop.items if candidates is None else {str(candidate) for candidate in candidates}
            if len(among) < 2:  # before anything is decided
                raise ValueError(f"candidates: expected two or more to ask about, got {len(among)}")
            decision = loop.decide(candidates, person=person or None, show=2, id=id or None, strict=True)
            return {"decision": decision.id, "pair": list(decision.shown), "answers": list(CHOICES)}

    @server.resource(LIKES, name="likes", mime_type="text/plain", description="What everybody likes, in words.")
    def likes_of_all() -> str:
        with _refusing(ResourceError):
            return likes_in_words(loop, None)

    @server.resource(
        LIKES + "/{person}", name="likes of a person", mime_type="text/plain",
        description="What a person likes, in words: their style in texts, what counts for them, what is best.",
    )  # fmt: skip
    def likes_of_person(person: str) -> str:
        with _refusing(ResourceError):
            return likes_in_words(loop, person)

    return server


def _declare_learn(learn: Callable[..., Any], fields: Sequence[Field]) -> None:
    """Give the tool `learn` an argument for each of the `fields` of a loop's forms of feedback, and its description."""
    arguments: list[tuple[str, Any, Any]] = [
        ("decision", Annotated[str, about("the id that choose or ask returned")], Parameter.empty)
    ]
    ways = []
    for field in fields:
        what = f"{field.hint}: {', '.join(field.options)}" if field.kind == "choice" else field.hint
        told = what if field.own else f"with {', '.join(field.forms)}: {what}"
        of, default = _ARGUMENTS.get(field.kind, (str, ""))
        arguments.append((field.name, Annotated[of, about(told)], default))
        if field.takes_object:
            instead = about(f"in place of {field.name}: the attributes that they changed")
            arguments.append((ATTRIBUTES, Annotated[dict[str, Any] | None, instead], None))
        ways += [f"{field.name} (or {ATTRIBUTES})" if field.takes_object else field.name] if field.own else []
    arguments.append(("id", Annotated[str, about(ID_TOLD)], ""))
    learn.__doc__ = f"Tell what a person did with what was shown, in exactly one way: {', '.join(ways)}."
    learn.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=of) for name, of, default in arguments],
        return_annotation=dict[str, Any],
    )


_ARGUMENTS: Mapping[str, tuple[Any, Any]] = {
    "items": (list[str] | None, None),
    "numbers": (dict[str, float] | None, None),
    "texts": (dict[str, str | list[str]] | None, None),
    "tick": (bool | None, None),
    "number": (float | None, None),
    "json": (Any, None),
}
"""(type, default) of an argument for a field of feedback, by the kind of field; others are texts"""


@contextmanager
def _refusing(kind: type[Exception]) -> Iterator[None]:
    """Raise what a loop refuses in the block as an error of this `kind` with the same text, and a bug as it is."""
    try:
        yield
    except (KeyError, IndexError):
        raise
    except (ValueError, LookupError, TimeoutError, OSError) as error:
        raise kind(str(error)) from None


def _unreadable(error: Exception) -> SessionMessage:
    """Return the answer to a request of which the SDK made only this `error`."""
    from mcp.shared.message import SessionMessage
    from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError
    from pydantic import ValidationError

    reason, line = str(error), ""
    if isinstance(error, ValidationError):
        reason, line = error.errors()[0]["msg"], str(error.errors()[0]["input"])
    reason = f"request: expected a line of JSON, got one that cannot be read: {reason}"
    problem = ErrorData(code=PARSE_ERROR, message=reason)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=problem))


def _id_in(line: str) -> int | str | None:
    """Return the id of a request in JSON that need not be whole, and may be nested without end; None if it has none."""
    level = 0
    for part in _PARTS.finditer(line):
        if part["id"] is not None and level == 1:
            id = json.loads(part["id"])
            return id if isinstance(id, int) or id.isprintable() else None
        level += (part["opens"] is not None) - (part["closes"] is not None)
    return None


_TEXT = r'"(?:[^"\\]|\\.)*(?:"|\\?$)'
_PARTS = re.compile(
    rf'"id"\s*:\s*(?P<id>"[^"\\\0-\x1f]*"|-?\d{{1,18}}(?!\d))|{_TEXT}|(?P<opens>[\[{{])|(?P<closes>[\]}}])', re.DOTALL
)
"""What counts in a line that may be no JSON: an id, texts, of which nothing counts, and where levels open and close."""


def _refused_argument(error: Mapping[str, Any]) -> str:
    """Return an error that pydantic `error` in an argument of a tool in one sentence that names the argument."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{name}: expected a value, got none"
    expected = _EXPECTED.get(error["type"].partition("_")[0])
    if expected is None:
        return f"{name}: {error['msg']}, got {describe(error['input'])}"
    return f"{name}: expected {expected}, got {describe(error['input'])}"


_EXPECTED = {
    "bool": "true or false", "dict": "an object", "float": "a number", "int": "a whole number", "list": "a list",
    "string": "a text",
}  # fmt: skip
"""what an argument should have been, by the first word of pydantic's type of error"""


def _answered(answer: Answer) -> dict[str, Any]:
    """Return the answer to an event as JSON. Raise ValueError with the reason if it was rejected."""
    if answer.status == "rejected":
        raise ValueError(answer.reason or "it was rejected")
    fields: dict[str, Any] = plain(answer)
    return {name: fields[name] for name in ("status", "event", "learned", "version", "reason") if name in fields}


# ---------------------------------------------------------------------------- in words


def _why(loop: Loop, decision: str) -> str:
    """Return why the first of a decision stood first, in words; "" if it showed nothing that can be explained."""
    from heedful.loop.interactions import telling
    from heedful.studies.things import as_seen

    try:
        why = loop.why(decision)
    except (KeyError, IndexError):
        raise
    except (LookupError, ValueError):
        return ""
    return _in_words(telling.why(as_seen(loop, why)))


def _in_words(parts: Sequence[Part]) -> str:
    """Return lines and tables as plain text, of each table the first rows."""
    from heedful.loop.interactions.telling import Line

    texts = []
    for part in parts:
        if isinstance(part, Line):
            texts.append(part.text)
        else:
            rows = "; ".join(
                ", ".join(f"{name} {cell}" if i else cell for i, (name, cell) in enumerate(zip(part.columns, row)))
                for row in part.rows[:MOST]
            )
            more = f"; and {len(part.rows) - MOST:,} more" if len(part.rows) > MOST else ""
            texts.append(f"{part.title}: {rows}{more}")
    return "\n".join(texts)


def likes_in_words(loop: Loop, person: str | None) -> str:
    """Return what a `person` likes (None: everybody) in words, as far as the loop can tell.

    That is their style, where they edit texts, the weights that count most, and what is best for them now; of everybody
    also whether learning helps. Raise ValueError if it is no name of a person."""
    style, texts = loop.style_of(person), list[str]()
    if style.prompt:
        texts.append(style.prompt)
    if style.unsaid and (style.edits or style.unread):
        texts.append(f"Of their style in texts nothing can be told: {style.unsaid}.")
    if style.pooled:
        texts.append(style.pooled)
    learned = loop.weights_of(person) if loop.version else {}
    weights = sorted(learned.items(), key=lambda row: -abs(row[1]))
    if counts := [f"{name} {signed(weight)}" for name, weight in weights[:MOST] if weight]:
        texts.append(f"What counts most, by weight: {', '.join(counts)}.")
    if loop.version and loop.items:
        from heedful.studies.things import labels

        best = loop.rank(person=person)[:MOST]
        texts.append(f"Best of the items on offer: {', '.join(labels(loop, best).values())}.")
    report = loop.report() if person is None else None
    if report is not None and report.decisions:
        verdict = loop.projection.interaction.findings(report).verdict
        texts.append(" ".join(["Does learning help?", verdict.short, *verdict.more]))
    return (
        "\n".join(texts) if texts else f"Nothing was learned so far about {describe(person) if person else 'anybody'}."
    )
