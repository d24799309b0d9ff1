"""Random streams full of ties, and `follow`, which plays a learner along its pseudo-code."""

import numpy as np
import pytest

import naive

EXACT = (-2.0, -1.0, 0.0, 1.0, 2.0)


def candidates(rng, shape, exact=False):
    """Candidates that tie: small integers, or floats; some rows twice; at times in single precision."""
    x = rng.choice(EXACT, shape) if exact or rng.random() < 0.6 else rng.standard_normal(shape)
    copies = rng.integers(0, len(x), len(x))
    twice = rng.random(len(x)) < 0.3
    x[twice] = x[copies[twice]]
    return x.astype(np.float32) if rng.random() < 0.2 else x


def context(rng, space, N, exact=False):
    """Documents, from one to eight, so lists shorter than k too; or people for slots, at least one a slot."""
    if hasattr(space, "slots"):
        return candidates(rng, (int(rng.integers(space.slots, space.slots + 3)), space.slots, N), exact)
    return candidates(rng, (int(rng.integers(1, 9)), N), exact)


def reaction(rng, space, x, y):
    """Anybody's answer: y itself, or any object at all; an order may be longer or, on a short list, shorter than k."""
    m = len(x)
    if rng.random() < 0.2:
        return np.array(y)
    if hasattr(space, "slots"):
        return rng.permutation(m)[: space.slots]
    return rng.permutation(m)[: int(rng.integers(min(space.k, m), m + 1))]


def follow(learner, oracle, seed, *, rounds=60, exact=False):
    """Play `learner` along its pseudo-code on one stream; the last state.

    The weights agree in every round. So do the proposals where the arithmetic is exact, and in round 1, where all
    ties. Elsewhere rounding may decide a mathematical tie either way: there what is proposed is an argmax under the
    weights of the pseudo-code, which goes on with it.
    """
    rng = np.random.default_rng(seed)
    space, N = oracle.space, oracle.w.size
    state = learner.init(rng)
    for t in range(1, rounds + 1):
        x = context(rng, space, N, exact)
        y = learner.propose(state, x, rng)
        wanted = oracle.propose(x)
        if exact or (t == 1 and not hasattr(space, "slots")):
            assert y.tolist() == wanted, t
        assert len(y) == len(set(y.tolist())) == len(wanted), t
        assert oracle.w @ space.phi(x, y) >= oracle.w @ space.phi(x, wanted) - 1e-9, t
        ybar = reaction(rng, space, x, y)
        state = learner.update(state, x, y, ybar)
        oracle.update(x, y.tolist(), ybar.tolist())
        np.testing.assert_allclose(learner.weights(state), oracle.w, rtol=1e-9, atol=1e-11, err_msg=f"round {t}")
    return state


def plain(space):
    return naive.Assignments(space.slots) if hasattr(space, "slots") else naive.Rankings(space.k)


def by_hand(learner, x, rounds):
    """Each round: what is shown, what comes back, the weights after it."""
    state = learner.init(np.random.default_rng(0))
    for t, (wanted, ybar, w) in enumerate(rounds, 1):
        y = learner.propose(state, x, np.random.default_rng(0))
        assert y.tolist() == wanted, t
        state = learner.update(state, x, y, np.array(ybar))
        assert learner.weights(state) == pytest.approx(w, abs=1e-12), t
