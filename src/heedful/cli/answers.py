"""Print what became of events, and end a command with the right exit code."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from heedful.cli.console import note, print_json, say

if TYPE_CHECKING:
    from heedful.results.answers import Answer

REJECTED = 3
"""The exit code if an event was rejected."""


def print_answers(answers: Sequence[Answer], json: bool, named: Sequence[str] = ()) -> None:
    """Print the loop's answers to events, as sentences or as JSON; exit with `REJECTED` if the last one is a rejection.

    `named` are the items that the user named: one with a comma is pointed out after a rejection.
    """
    last = answers[-1]
    if json:
        activated = {"activated": answers[0].status} if len(answers) > 1 else {}
        print_json(last._asdict() | activated)
    else:
        for answer in answers:
            say(_in_words(answer))
    if last.status == "rejected":
        if commas := [name for name in named if "," in name]:
            note(f"{commas[0]!r} was taken for one name: name each item with an option of its own")
        raise typer.Exit(REJECTED)


def say_way_back(name: str, answer: Answer) -> None:
    """Print the command that takes a promotion or a rollback in the loop `name` back; `answer` is the loop's to it."""
    say(f"To go back on this: {shlex.join(['heedful', 'rollback', name, str((answer.seq or 1) - 1)])}")


def _in_words(answer: Answer) -> str:
    if answer.status == "rejected":
        return f"rejected {answer.event}: {answer.reason}"
    if answer.status == "duplicate":
        return f"duplicate {answer.event}: it came before, as event {answer.seq}; nothing was changed"
    notes = [f"event {answer.seq}", f"model version {answer.version}", *(["late"] if answer.late else [])]
    if not answer.learned:  # without a reason it was no feedback, which is nothing to learn from
        notes += [f"nothing in it to learn: {answer.reason}"] if answer.reason else []
        return f"applied {answer.event}: {', '.join(notes)}"
    return f"applied {answer.event}: {', '.join(notes)}, learned from it" + (
        f" ({answer.reason})" if answer.reason else ""
    )
