"""`heedful style`: what people's edits say about the style of texts that they want, and corrections of that by hand."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from heedful.cli.answers import print_answers
from heedful.cli.common import Json, Name, Own, open_loop
from heedful.cli.console import BadInput, note, say
from heedful.cli.parts import print_result
from heedful.core.validation import ALPHA


def style(
    name: Name,
    person: Annotated[
        str | None, typer.Option("--person", metavar="PERSON", help="Whose edits count; without it everybody's.")
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the sentence for a prompt, and nothing else, on stdout.")
    ] = False,
    deny: Annotated[
        str | None, typer.Option("--deny", metavar="FEATURE", help="Correct by hand: say nothing of this feature.")
    ] = None,
    always: Annotated[
        str | None, typer.Option("--always", metavar="TEXT", help="Correct by hand: add this sentence.")
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(min=ALPHA[0], max=ALPHA[1], help="The probability with which any statement may ever be false."),
    ] = 0.05,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Drafts are compared with what the person made of them: length, exclamation marks, emoji, lists, greetings, warm,
    formal and hedging words, and so on. Nothing is said of a feature for which the evidence does not suffice. You may
    look as often as you like: the probability that any statement about a person is ever false is --alpha at most. Words
    are counted in English texts only.

    With --deny or --always you correct what is said; that is an event of the log. `heedful undo` takes it back, and
    `heedful forget` erases it with the person.

    Exit codes: 0 said, or corrected; 1 the loop cannot be read; 2 bad input.
    """
    with open_loop(name, own_learners, read_only=deny is None and always is None) as loop:
        if deny is not None or always is not None:
            if prompt:
                raise BadInput("--prompt: expected without --deny and --always")
            answer = loop.correct_style(person, deny=deny, always=always)
            if json:
                print_answers([answer], json)
                return
            say(f"corrected the style of {person or 'everybody'}")
            back = shlex.join(["heedful", "undo", name, answer.event])
            say(f"To go back on this: {back}")
            return
        result = loop.style_of(person, alpha=alpha)
        if prompt:
            if result.prompt:
                typer.echo(result.prompt)
                if result.pooled:
                    note(result.pooled)
            else:
                note(f"nothing can be told: {result.unsaid}")
        else:
            from heedful.loop.interactions import telling

            beyond = "for which the evidence is weaker: --json has all"
            print_result(result, json, telling.style(result), beyond)
