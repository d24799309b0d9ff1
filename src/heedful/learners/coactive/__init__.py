"""Coactive learners: they show an object, such as a ranking, and learn from a better one that the person gives in
return, or from clicks.

Those with utility weights have two more methods:

- `weights(state)`: the utility weights w (N,) for N features.
- `step(state, D)`: the state after an update in direction D (N,), the N joint features of the feedback object less
  those of the object shown. It may overwrite the arrays of `state`.

Those that swap neighbours at random (`FairPairs`, `PerturbedPerceptron`) have more, which `FairPairs` describes.
"""
