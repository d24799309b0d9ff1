"""What the compiled fold is measured against: the preference perceptron as one would write it in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_the_paper_writes_it(X: Any, U: Any, labels: Any, order: Any) -> Any:
    """Algorithm 1 with a user who re-sorts the top 10 by label: X (Q x m x N), U and labels (Q x m)."""
    discounts = 1 / np.log2(np.arange(2, 7))
    best = -np.sort(-U, axis=1)[:, :5] @ discounts

    def phi(x: Any, y: Any) -> Any:
        return discounts @ x[y[:5]]

    w = np.zeros(X.shape[2])
    regret = np.empty(len(order))
    for t, q in enumerate(order):
        x = X[q]
        y = np.argsort(-(x @ w), kind="stable")
        seen = y[:10]
        top = seen[np.argsort(-labels[q][seen], kind="stable")[:5]]
        ybar = np.concatenate([top, y[~np.isin(y, top)]])
        w += phi(x, ybar) - phi(x, y)
        regret[t] = best[q] - discounts @ U[q][y[:5]]
    return regret


def lean(X: Any, U: Any, labels: Any, order: Any) -> Any:
    """The same without ever building the corrected ranking: what it takes to see that only its top five count."""
    discounts = 1 / np.log2(np.arange(2, 7))
    best = -np.sort(-U, axis=1)[:, :5] @ discounts
    w = np.zeros(X.shape[2])
    regret = np.empty(len(order))
    for t, q in enumerate(order):
        x = X[q]
        y = np.argsort(-(x @ w), kind="stable")
        seen = y[:10]
        top = seen[np.argsort(-labels[q][seen], kind="stable")[:5]]
        w += discounts @ x[top] - discounts @ x[y[:5]]
        regret[t] = best[q] - discounts @ U[q][y[:5]]
    return regret
