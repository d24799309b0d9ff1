"""The weights of one person in the collaborative model CP, with the functions that people share fixed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.sparse_cells import Cells
from heedful.inference.collaborative.vb_product import coordinate_ascent
from heedful.inference.gp.ep import likelihood_of, moments
from heedful.inference.gp.sites import matched_sites
from heedful.inference.pairwise import PairRows

Array = npt.NDArray[np.float64]


def user_weights(
    of: Cells, mh: Array, vh: Array, rows: PairRows, width: float, lapse: float, rounds: int
) -> tuple[Array, Array]:
    """Compute the weights of one person with D functions fixed at means `mh` and variances `vh` (P x D) at P pairs of
    items.

    Return means and variances of the weights, (1 x D) each. `of`: the table of the person's answers `rows`. Messages of
    the likelihood of the answers and of the product of weights and functions alternate for `rounds`.
    """
    D = mh.shape[1]
    likelihood = likelihood_of(rows, np.array([width]), np.array([lapse]))
    M, V = mh[of.pair], vh[of.pair]
    S = M * M + V
    w, c = np.zeros((1, D)), np.ones((1, D))
    one, zeros = np.ones((1, D)), np.zeros((1, D))
    t, n, m = np.zeros((3, rows.size))
    v = np.ones(rows.size)
    for _ in range(rounds):
        spread = V @ (w * w)[0] + S @ c[0]
        left = 1.0 - spread * t
        sound = left > 0.0  # elsewhere the message to the answer stays as it was, as in `cp`
        left = np.where(sound, left, 1.0)
        m = np.where(sound, (M @ w[0] - spread * n) / left, m)
        v = np.where(sound, spread / left, v)
        _, slope, bend = moments(likelihood, of.sign * m, v)
        t, n = matched_sites(m, v, of.sign * slope, np.maximum(bend, 0.0))
        T, N = of.times * t, of.times * n
        w, c = coordinate_ascent(((M * T[:, None]).T @ M)[None], (T @ V)[None], (N @ M)[None], w, one, zeros)
    return w, c
