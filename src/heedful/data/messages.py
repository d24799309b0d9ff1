"""Messages of conversations, {"role", "content"}: which lists are some, also where they stand in a cell of a table, and
which of them hold something other than text."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

BESIDE_CONTENT = (
    *("tool_calls", "function_call", "audio", "image", "images", "refusal"),
    *("reasoning_content", "reasoning", "thinking"),
)
"""Fields in which a message says something that is not in its content, if they are not empty."""
PARTS = ("tool_use", "tool_call", "function_call", "tool_result", "image", "image_url", "input_image", "input_audio")
"""Types of parts of a content that have no text."""

_MESSAGES = re.compile(r"\s*\[\s*\{\s*(?:'(?:role|content)'|\"(?:role|content)\")\s*:")
"""How a text begins that was a list of messages."""


def is_message(value: object) -> bool:
    """Return whether `value` is an object with a role and a content."""
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value


def says_more(message: Mapping[str, Any]) -> bool:
    """Return whether a message says something that is not the text of its content, such as a call of a tool."""
    return any(message.get(field) for field in BESIDE_CONTENT) or has_other_parts(message.get("content"))


def has_other_parts(content: object) -> bool:
    """Return whether a content is a list with parts that have no text, such as an image."""
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, Mapping) and part.get("type") in PARTS for part in parts)


def conversation(messages: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> str:
    """Return messages, with the text of each, as one text: each after its role, but a single one of a user as it is."""
    if len(messages) == 1 and messages[0]["role"] == "user":
        return texts[0]
    return "\n\n".join(f"{message['role']}: {text}" for message, text in zip(messages, texts))


def messages_in(cell: str) -> list[Any] | None:
    """Return the messages that a text is a list of, as JSON or as Python prints it; None if it is something else.

    A data frame writes lists into a CSV in this way, and arrays without commas between their lines. Raise ValueError if
    the text begins as messages do and cannot be read."""
    if not cell.lstrip().startswith("["):
        return None
    for read in (json.loads, _printed):
        try:
            messages = read(cell)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return messages if isinstance(messages, list) and messages and all(map(is_message, messages)) else None
    if _MESSAGES.match(cell):
        raise ValueError("expected messages as JSON, got some that are cut off or printed in another way")
    return None


def _printed(cell: str) -> object:
    """Return the value that Python printed as `cell`; in what it prints, a line ends between elements only."""
    return ast.literal_eval(cell.strip().replace("}\n {", "}, {"))
