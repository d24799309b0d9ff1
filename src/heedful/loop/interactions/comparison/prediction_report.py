"""How well choices were predicted: the share of answers that chose the likeliest item, compared with guessing.

The questions that the acquisition rule selects are those with uncertain answers, so they are predicted less often than
random questions; only the latter tell how well choices between arbitrary items are predicted."""

from __future__ import annotations

from heedful.loop.prediction_report import Wording

WORDING = Wording(
    "share of answers that were predicted",
    False,
    "a guess",
    "nothing was chosen so far of what had been predicted",
    "too few people have chosen: it takes two at least",
    "it was as often right as a guess in every answer: chance cannot be told",
)
