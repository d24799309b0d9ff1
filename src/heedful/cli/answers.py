"""How commands print what became of events, and with which exit code they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from heedful.cli.console import console, note, print_json

if TYPE_CHECKING:
    from heedful.loop.records import Answer

REJECTED = 3
"""The exit code if an event was rejected."""


def print_answers(answers: Sequence[Answer], json: bool, named: Sequence[str] = (), why: str = "") -> None:
    """Print what became of events; the last counts."""
    last = answers[-1]
    if json:
        activated = {"activated": answers[0].status} if len(answers) > 1 else {}
        print_json(last._asdict() | activated)
    else:
        for answer in answers:
            console().print(_in_words(answer, why), markup=False, soft_wrap=True)
    if last.status == "rejected":
        if commas := [each for each in named if "," in each]:
            note(f"{commas[0]!r} was taken for one name: name each item with an option of its own")
        raise typer.Exit(REJECTED)


def _in_words(answer: Answer, why: str = "") -> str:
    if answer.status == "rejected":
        return f"rejected {answer.event}: {answer.reason}"
    if answer.status == "duplicate":
        return f"duplicate {answer.event}: it came before, as event {answer.seq}; nothing was changed"
    told = [f"event {answer.seq}", f"model version {answer.version}", *(["late"] if answer.late else [])]
    told += ["learned from it" if answer.learned else f"nothing in it to learn{why}"]
    return f"applied {answer.event}: {', '.join(told)}" + (f" ({answer.reason})" if answer.reason else "")
