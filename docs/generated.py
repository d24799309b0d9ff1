"""Pages of the site that are written from the code: commands, HTTP, settings. Each function returns Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from inspect import cleandoc
from typing import Any

import msgspec
from sphinx.pycode import ModuleAnalyzer

from heedful.cli import COMMANDS, command
from heedful.loop.interactions.settings import KindSettings
from heedful.loop.settings import Settings
from heedful.server.problems import TITLES
from heedful.server.routes import description


def _cell(text: str) -> str:
    return re.sub(r"([|<*])", r"\\\1", " ".join(text.split()))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; none without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines, ""] if lines else []


# ---------------------------------------------------------------------------- commands


def commands() -> str:
    """Every command with its text, arguments, options and examples."""
    return "\n".join(line for path in COMMANDS for line in _command(path))


def _command(path: str) -> list[str]:
    found = command(path)
    lines = ["", f"{'#' * path.count(' ')}## {path}", "", re.sub(r"([*<_])", r"\\\1", cleandoc(found.help or "")), ""]
    if not COMMANDS[path].where:  # a group
        return lines
    shown = [each for each in found.params if each.name != "help" and not getattr(each, "hidden", False)]
    for kind in ("argument", "option"):
        rows = [[f"`{_names(each)}`", _said(each)] for each in shown if each.param_type_name == kind]
        lines += _table([kind, ""], rows)
    examples = COMMANDS[path].example.splitlines()
    return [*lines, *(["```", *examples, "```"] if examples else [])]


def _names(option: Any) -> str:
    if option.param_type_name == "argument":
        return str(option.metavar or option.name.upper())
    value = "" if option.is_flag else f" {option.metavar or option.display_type(None).strip('<>')}"
    return ", ".join([*option.opts, *option.secondary_opts]) + value


def _said(option: Any) -> str:
    default = option.show_default if isinstance(option.show_default, str) else option.default
    told = (
        None
        if getattr(option, "is_flag", False) or default in (None, "", [], ()) or callable(default)
        else f"default: {default}"
    )
    return _cell(" ".join(filter(None, [option.help, f"({told})" if told else None])))


# ---------------------------------------------------------------------------- HTTP


def http() -> str:
    """Every route of the OpenAPI document: who may, what it takes and gives; then all bodies; then what goes wrong."""
    document = json.loads(description())
    lines: list[str] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += [
                "",
                f"## {method.upper()} {path}",
                "",
                f"{operation['summary']}. {operation.get('description', '')}",
            ]
            lines += _table(
                ["parameter", "in", ""],
                [
                    [f"`{each['name']}`", each["in"], _value(each.get("schema", {}), each.get("description", ""))]
                    for each in operation["parameters"]
                ],
            )
            for title, body in (("Takes", operation.get("requestBody")), ("Gives", _done(operation))):
                lines += ["", *(f"{title} {each}  " for each in _bodies((body or {}).get("content", {}))), ""]
    lines += ["", "## Bodies", ""]
    for name, schema in document["components"]["schemas"].items():
        lines += ["", f"### {name}", "", re.sub(r"([*<_])", r"\\\1", cleandoc(schema.get("description", ""))), ""]
        required = schema.get("required", [])
        lines += _table(
            ["field", ""],
            [
                [f"`{field}`" + (" (required)" if field in required else ""), _value(of, of.get("description", ""))]
                for field, of in schema.get("properties", {}).items()
            ],
        )
    lines += ["", "## Kinds of problems", ""]
    lines += _table(
        ["kind", "status", ""], [[f"`{kind}`", str(code), _cell(title)] for kind, (code, title) in TITLES.items()]
    )
    return "\n".join(lines)


def _done(operation: dict[str, Any]) -> dict[str, Any]:
    """The answer of an operation that goes well."""
    return next(answer for status, answer in operation["responses"].items() if status.startswith("2"))


def _bodies(content: dict[str, Any]) -> list[str]:
    """What a request takes, or an answer gives: each body once, with its media types."""
    found: dict[str, list[str]] = {}
    for media, of in content.items():
        text = f"{_kind(of['schema'])}. {_cell(of['schema'].get('description', ''))}"
        found.setdefault(text, []).append(f"`{media}`")
    return [f"{' or '.join(media)}: {text}" for text, media in found.items()]


def _kind(schema: dict[str, Any]) -> str:
    """What a value is, in a word or a few, with links to bodies."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower().replace('.', '')})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items') or {})}" if schema.get("items") else "list"
    kind = schema.get("type", "any value")
    return "or ".join(kind) if isinstance(kind, list) else str(kind)


def _value(schema: dict[str, Any], text: str) -> str:
    """A cell: what a value is, its bounds, what it means."""
    names = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    bounds = [f"{words} {schema[name]:g}" for name, words in names.items() if abs(schema.get(name, 1e100)) < 1e15]
    default = [f"default `{json.dumps(schema['default'])}`"] if schema.get("default") is not None else []
    text = text or schema.get("description", "")
    return ", ".join([_kind(schema), *bounds, *default]) + (f": {_cell(text)}" if text else "")


# ---------------------------------------------------------------------------- notebooks


def notebook(text: str) -> str:
    """A notebook as Markdown: its texts, its code, and the outputs that it keeps."""
    lines = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        lines += [source, ""] if cell["cell_type"] == "markdown" else ["```python", source, "```", ""]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if html := "".join(data.get("text/html", [])):
                lines += ["<div>", *filter(str.strip, html.splitlines()), "</div>", ""]  # HTML ends with an empty line
            else:
                lines += ["```text", "".join(output.get("text", data.get("text/plain", []))).rstrip(), "```", ""]
    return "\n".join(lines)


# ---------------------------------------------------------------------------- settings


def settings() -> str:
    """Every setting of a loop, with its default; the texts stand below the fields in the source."""
    texts = {
        name: " ".join(lines)
        for owner in (KindSettings, Settings)
        for (cls, name), lines in ModuleAnalyzer.for_module(owner.__module__).find_attr_docs().items()
        if cls == owner.__name__
    }
    rows = []
    for field in msgspec.structs.fields(Settings):
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        rows.append([f"`{field.name}`", f"`{json.dumps(default)}`", _cell(texts[field.name])])
    return "\n".join(_table(["setting", "default", ""], rows))
