"""Coactive learners: they show an object, such as a ranking, and learn from a better one that the person gives in
return, or from clicks.

Those with utility weights have one more method, `weights(state)`: the utility weights w (N,) for N features.
`Posterior` learns from other answers, too, and its methods `learn` and `judge` say how; those that swap neighbours at
random have the methods of `Swaps`.
"""
