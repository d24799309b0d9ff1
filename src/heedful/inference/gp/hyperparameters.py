"""Infer the hyperparameters of the utilities of several people (spread, share, response noise) from all their answers.

They maximise the marginal likelihood of EP times their prior; the uncertainty about spread and share is then integrated
out by quadrature. The model of the utilities of n items for person u is f_u = m + d_u, with

    m ~ N(0, spread^2 (1 - share) K)     common to all people
    d_u ~ N(0, spread^2 share R)         how this person differs

K (n x n) is the correlation matrix of the common utilities, R (n x n) that of the differences. So spread is the
standard deviation of a utility, and share is the part of its variance in which people differ. With one person only the
spread is left: f ~ N(0, spread^2 K).

A subsample takes all answers about a pair together: a sample of single rows would keep winners and drop losers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.ep import UserPosteriors, infer_users
from heedful.inference.gp.joint_ep import JointPosterior, infer_joint, user_batches
from heedful.inference.gp.per_user_ep import UserBatch
from heedful.inference.gp.response_noise import MOST_LAPSES, NoisePrior, ResponseNoise, noise_slopes, random_log_odds
from heedful.inference.gp.sites import Sites, Table, is_diagonal, make_table
from heedful.inference.gp.subsample import sample_items, sample_people
from heedful.inference.pairwise import PairRows

Array = npt.NDArray[np.float64]

MEDIAN, LOG_SD = 1.0, 1.0
"""The log-normal prior of the spread: its median, and the standard deviation of its logarithm."""

SHARE, LAPSE = (0.2, 0.5), (0.1, 15.0)
"""Parameters (a, b) of two Beta priors: of the share, and of the lapse rate of people who do not always answer at
random. Both favour small values, so that a few answers do not suggest that people differ much or lapse often.
"""

NU0 = 4.0
"""The inverse-Wishart prior of R (correlations of personal differences) counts as much as NU0 people for each item. It
keeps R from becoming far too wide when each person gives few answers.
"""

SETTLED = 1e-4
"""EP has converged when no site changes by more than this fraction."""

MATTERS = 0.2
"""A hyperparameter is integrated out if its uncertainty moves utilities by more than this fraction of their own
standard deviation.
"""

ENOUGH = 5_000
"""The greatest number of rows used to estimate the curvature and R. Of more rows, those of some people are used, drawn
at random; with one person, those about some items.
"""

NATS = 1e-2
"""The search for the mode ends when a step raises the log density by less than this many nats."""

NEAR = 0.05
"""The search for the mode ends where a step of one standard deviation along any hyperparameter changes the log density
by less than this.
"""

BOUNDS = ((-6.0, 6.0), (-8.0, 8.0), (-9.0, 4.0), (-7.0, 4.0))
"""Bounds of the search: of log spread, logit share, logit lapse rate, log tie width."""

RANDOM = 0.5
"""People are taken to always answer at random if the probability of this exceeds RANDOM."""

ALIKE = 20.0
"""The prior of the fraction of people who always answer at random counts as much as this many people."""

APART, LEAST = 0.1, 0.25
"""The step of the finite differences that give the curvature, and the least curvature that is used."""


class Hyperparameters(NamedTuple):
    """The hyperparameters of the utilities of U people.

    `spread`: standard deviation of a utility; 1 is that of the noise of one choice. `share`: the part of its variance
    in which people differ, 0 to 1; 1 with one person. `noise`: lapse rate and tie width of each person (U,).
    """

    spread: float
    share: float
    noise: ResponseNoise


class QuadratureNode(NamedTuple):
    """One node of the quadrature over the hyperparameters; all weights sum to 1."""

    weight: float
    hyper: Hyperparameters
    people: UserPosteriors | JointPosterior
    """with one person, the posterior over their utilities; with several, the joint posterior"""

    @property
    def sites(self) -> Sites:
        """EP sites (Gaussian factors) of all rows of answers, given the hyperparameters of this node."""
        return self.people.sites


class MarginalLikelihood:
    """Log marginal likelihood of some answers plus log prior, as a function of the hyperparameters x (4,).

    x is log spread (standard deviation of utilities), logit share (the part of their variance in which people differ),
    logit lapse rate (probability of a random answer) and log tie width; only the components in `free` are learned, and
    gradients, and the curvature H (4 x 4), minus the Hessian, are valid for these alone. Each evaluation runs EP from
    the sites at which the last one ended.
    """

    def __init__(self, K: Array, users: int, rows: PairRows, prior: NoisePrior) -> None:
        """Prepare the answers `rows` of `users` people about q items.

        `K` (q x q): correlations of the utilities of these items, which are those that occur in answers; `prior`: of
        the response noise.
        """
        self.K, self.R, self.users, self.rows, self.prior = K, K, users, rows, prior
        self.parts: tuple[UserBatch, ...] = user_batches(rows, users) if users > 1 else ()
        self.table: Table | None = make_table(rows, 1, len(K)) if users == 1 else None
        self.inverse = K if users > 1 or is_diagonal(K) else np.linalg.inv(K)  # its diagonal is 1
        self.random = np.zeros(users)
        self.sites: Sites | None = None
        lapsing, tied = bool((rows.group < 0).any()), bool(rows.equal.any())
        self.free = [0, *([1] if users > 1 else []), *([2] if lapsing else []), *([3] if tied else [])]
        """which of log spread, logit share, logit lapse rate, log width are learned"""
        self.start = np.array([np.log(MEDIAN), -1.0, -4.0, np.log(prior.width)])

    def noise_at(self, x: Array) -> ResponseNoise:
        """Return the response noise of U people at x. The lapse rate of people who always answer at random is
        MOST_LAPSES (0.99); without ties the width is 0."""
        lapse = np.where(self.random > RANDOM, MOST_LAPSES, _expit(x[2])) if 2 in self.free else np.zeros(self.users)
        width = np.full(self.users, np.exp(x[3]) if 3 in self.free else 0.0)
        return ResponseNoise(width, lapse, self.random)

    def at(self, x: Array) -> tuple[float, Array, QuadratureNode]:
        """Return (log evidence plus log prior, its gradient (4,), a node of weight 1 with the posterior) at x."""
        c2, share = float(np.exp(2.0 * x[0])), _expit(x[1])
        noise = self.noise_at(x)
        slope = np.zeros(4)
        people: UserPosteriors | JointPosterior
        if self.table is not None:
            people = infer_users(
                c2 * self.K, np.zeros(len(self.K)), 1, self.table, self.sites,
                width=noise.width, lapse=noise.lapse, tolerance=SETTLED, sweeps=9,
            )  # fmt: skip
            mean, cov, share = people.mean[0], people.cov[0], 1.0
            value = float(people.log_evidence[0])
            slope[0] = (mean @ self.inverse @ mean + np.sum(self.inverse * cov)) / c2 - len(mean)
            self.sites = people.sites
        else:
            people = self.joint_at(x)
            value = people.log_evidence
            by_a, by_b = people.gradient
            slope[0], slope[1] = by_a + by_b, 0.5 * ((1.0 - share) * by_b - share * by_a)
        slope[2], slope[3] = noise_slopes(self.rows, people.cavities, noise, self.random[self.rows.user] <= RANDOM)
        node = QuadratureNode(1.0, Hyperparameters(float(np.exp(x[0])), share, noise), people)
        return value + self._log_prior(x, slope), slope, node

    def joint_at(self, x: Array) -> JointPosterior:
        """Return the joint posterior of several people at x, and keep its sites for the next evaluation."""
        c2, share, noise = float(np.exp(2.0 * x[0])), _expit(x[1]), self.noise_at(x)
        joint = infer_joint(
            c2 * (1.0 - share) * self.K, c2 * share * self.R, self.users, self.rows, self.parts, self.sites,
            width=noise.width, lapse=noise.lapse, tolerance=SETTLED,
        )  # fmt: skip
        self.sites = joint.sites
        return joint

    def _log_prior(self, x: Array, slope: Array) -> float:
        """Return the log prior at x, and add its gradient to `slope`."""
        prior, rate, share = self.prior, _expit(x[2]), _expit(x[1])
        off = (x[0] - np.log(MEDIAN)) / LOG_SD
        out = -0.5 * off * off
        slope[0] -= off / LOG_SD
        for k, p, (a, b) in ((1, share, SHARE), (2, rate, LAPSE)):
            if k in self.free:  # Beta densities, of the logit
                out += a * np.log(p) + b * np.log1p(-p)
                slope[k] += a * (1.0 - p) - b * p
        if 3 in self.free:
            off = (x[3] - np.log(prior.width)) / prior.spread
            out -= 0.5 * off * off
            slope[3] -= off / prior.spread
        return float(out)

    def likeliest(self, x: Array, H: Array | None = None) -> Array:
        """Return the x of greatest log evidence plus log prior, searched from x by L-BFGS-B; the curvature H there
        scales the search, the gradient without it."""
        from scipy.optimize import minimize

        free = self.free
        value, slope, _ = self.at(x)
        curved = np.abs(slope) if H is None else H.diagonal()
        scale = 1.0 / np.sqrt(np.maximum(curved[free], 1.0 if H is None else LEAST))  # a first step of about one each

        def worse(z: Array) -> tuple[float, Array]:
            value, slope, _ = self.at(spread_nodes(z))
            return -value, -slope[free] * scale

        def spread_nodes(z: Array) -> Array:
            full = x.copy()
            full[free] += scale * z
            return full

        optimum = minimize(
            worse, np.zeros(len(free)), jac=True, method="L-BFGS-B",
            bounds=(np.array(BOUNDS)[free] - x[free, None]) / scale[:, None],
            options={"ftol": NATS / max(abs(value), 1.0), "gtol": NEAR, "maxiter": 40, "maxls": 6},
        )  # fmt: skip
        return spread_nodes(optimum.x)

    def curvature(self, x: Array) -> Array:
        """Return the curvature H at x, by central differences of the gradient; 0 where nothing is learned."""
        H = np.zeros((4, 4))
        for k in self.free:
            ends = []
            for side in (-APART, APART):
                off = x.copy()
                off[k] += side
                ends.append(self.at(off)[1])
            H[k] = (ends[0] - ends[1]) / (2.0 * APART)
        return 0.5 * (H + H.T)

    def find_random(self, x: Array) -> bool:
        """Estimate at x for each person the probability that they always answer at random; return True if any is above
        0.5 (RANDOM).

        The fraction of random people is estimated by EM along with the probabilities, which are stored: later
        evaluations give almost no weight to the answers of people above 0.5.
        """
        from scipy.special import expit, logit

        more = random_log_odds(self.rows, self.joint_at(x).log_evidences, self.noise_at(x))
        share = self.prior.random
        for _ in range(100):
            self.random = expit(logit(share) + more)
            last, share = share, (self.random.sum() + ALIKE * self.prior.random) / (self.users + ALIKE)
            if abs(share - last) < 1e-3 * last:
                break
        return bool((self.random > RANDOM).any())

    def learn_shape(self, x: Array) -> None:
        """Learn R (q x q) at x by EM; the result is stored.

        The prior is inverse-Wishart around K, with the weight of nu0 = 4 q people. A step sets R = (nu0 K + sum_u
        E[d_u d_u'] / (spread^2 share)) / (nu0 + U) for U people. It stops after 30 steps, or when no element moves by
        .01.
        """
        nu0, U = NU0 * len(self.K), self.users
        for _ in range(30):
            joint = self.joint_at(x)
            scale = float(np.exp(2.0 * x[0])) * _expit(x[1])
            S = joint.person_cov
            new = (nu0 * self.K + (U * S + S @ joint.apart @ S) / scale) / (nu0 + U)
            moved = float(np.abs(new - self.R).max())
            self.R = 0.5 * (new + new.T)
            if moved < 1e-2:
                break


def infer_hyperparameters(
    K: Array, users: int, rows: PairRows, prior: NoisePrior
) -> tuple[MarginalLikelihood, tuple[QuadratureNode, ...]]:
    """Return the marginal likelihood of the answers `rows` of `users` people, with R and the probabilities of random
    answering learned, and the quadrature nodes with their posteriors over the q items, most probable first; `K` (q x q)
    and `prior` are those of `MarginalLikelihood`."""
    problem = MarginalLikelihood(K, users, rows, prior)
    sample, size = sample_people(rows, users, ENOUGH) if users > 1 else (sample_items(rows), 1)
    items, small = len(K), problem
    if sample.size < rows.size:
        compared, positions = (
            np.unique(sample.pairs, return_inverse=True) if users == 1 else (np.arange(items), sample.pairs)
        )
        items = compared.size
        small = MarginalLikelihood(
            K[np.ix_(compared, compared)], size, sample._replace(pairs=positions.reshape(-1, 2)), prior
        )
    x = small.likeliest(small.start)
    if users > 1:
        small.learn_shape(x)
        problem.R = small.R
        x = small.likeliest(x)
    # Curvature of all answers from that of the sample: it grows with answers; of one person's spread, with items.
    answers = float(rows.times.sum() / sample.times.sum())
    more = np.sqrt([len(K) / items if users == 1 else answers, answers, answers, answers])
    H = small.curvature(x) * np.multiply.outer(more, more)
    if small is not problem:
        x = problem.likeliest(x, H)
    if users > 1 and 2 in problem.free and problem.find_random(x):
        x = problem.likeliest(x, H)
    return problem, integrate(problem, x, H)


def integrate(problem: MarginalLikelihood, x: Array, H: Array) -> tuple[QuadratureNode, ...]:
    """Return quadrature nodes around the mode x of the marginal likelihood `problem`, most probable first; H is the
    curvature there.

    Only hyperparameters whose uncertainty matters (MATTERS = 0.2) are integrated over: 5 Gauss-Hermite nodes for one,
    3 in each direction for several, scaled by H and reweighted by the actual density; weights sum to 1. If none
    matters, the only node is the mode.
    """
    value, _, node = problem.at(x)
    values, Q = np.linalg.eigh(H[np.ix_(problem.free, problem.free)])
    of_all = (Q / np.maximum(values, LEAST)) @ Q.T
    sd = np.zeros(4)
    sd[problem.free] = np.sqrt(of_all.diagonal())
    free = [k for k in problem.free if k < 3 and _moves(node, k, float(sd[k])) > MATTERS]
    if not free:
        return (node,)
    positions = [problem.free.index(k) for k in free]
    root = np.linalg.cholesky(of_all[np.ix_(positions, positions)])
    z, w = np.polynomial.hermite_e.hermegauss(5 if len(free) == 1 else 3)
    grid = np.stack([g.ravel() for g in np.meshgrid(*[z] * len(free), indexing="ij")], axis=1)
    weigh = np.prod(np.meshgrid(*[w] * len(free), indexing="ij"), axis=0).ravel()
    nodes, logs = [], []
    for point, weight in zip(grid, weigh):
        off = x.copy()
        off[free] += root @ point
        off = np.clip(off, *np.transpose(BOUNDS))
        height, _, node = problem.at(off)
        nodes.append(node)
        logs.append(height - value + 0.5 * float(point @ point) + np.log(weight))
    share = np.exp(np.array(logs) - max(logs))
    share /= share.sum()
    order = (-share).argsort(kind="stable").tolist()
    return tuple([nodes[i]._replace(weight=float(share[i])) for i in order])


def _moves(node: QuadratureNode, k: int, sd: float) -> float:
    """Return about how far utilities move, by their deviation, if hyperparameter `k` (as in x) changes by `sd`."""
    spread, share, noise = node.hyper
    people = node.people
    posterior = people.average(noise.lapse.size) if isinstance(people, JointPosterior) else people.of(0)
    uncertain = float(np.median(posterior.sd())) / spread
    if k == 0:
        return 2.0 * sd * uncertain
    if k == 1:
        variance = spread * spread * share
        return variance * (1.0 - share) * sd / (1.0 + 2.0 * variance) / uncertain
    rate = float(np.median(noise.lapse))
    return 2.0 * rate * (1.0 - rate) * sd / uncertain


def _expit(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))
