"""`heedful explain`: say why a decision showed what it showed."""

from __future__ import annotations

from heedful.cli.common import DecisionId, Json, Name, Own, open_loop
from heedful.cli.parts import print_result


def explain(
    name: Name,
    decision: DecisionId,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Exit codes: 0 explained; 1 the loop cannot be read; 2 bad input, such as a decision that is not in the log."""
    with open_loop(name, own_learners, read_only=True) as loop:
        from heedful.studies.things import as_seen

        explanation, tell = loop.explain(decision), loop.projection.interaction.tell_explanation
        print_result(explanation, json, tell(as_seen(loop, explanation)), "which count less: --json has all")
