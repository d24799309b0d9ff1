"""Hyperparameters of the utilities of several people, learned from all answers by the marginal likelihood of EP:
spread, share and response noise. Uncertainty about spread and share is integrated out.

The utilities are f_u = m + d_u with variance spread^2 each, of which share is that of d_u:

    m ~ N(0, spread^2 (1 - share) K),   d_u ~ N(0, spread^2 share R)

K (n x n) is the correlation of items, R that of what people differ in. With one person, or where all answers count as
one person's, there is only the spread: f ~ N(0, spread^2 K).

All answers count, with all outcomes of a pair together: a sample of rows would keep winners and drop losers.
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
"""The prior of the spread: its median, and the standard deviation of its logarithm."""

SHARE, LAPSE = (0.2, 0.5), (0.1, 15.0)
"""The Beta priors of the share, and of the lapse rate of people who do not always answer at random: most people are of
one mind, and hardly lapse, so a few answers are not taken for the contrary."""

NU0 = 4.0
"""The number of people for each item that the prior of R counts as: with few answers of each person, R would soon be
far too wide."""

SETTLED = 1e-4
"""Sites that move by less, as a share, have settled."""

MATTERS = 0.2
"""A hyperparameter is integrated out if its uncertainty moves utilities by more than this share of their own
uncertainty."""

ENOUGH = 5_000
"""The greatest number of rows from which curvature and shape are learned: of more rows, those of some people, drawn at
random."""

NATS = 1e-2
"""The search for the mode ends if a step raises the log density by less, in nats."""

NEAR = 0.05
"""The search ends where the next step is shorter than this share of a standard deviation."""

BOUNDS = ((-6.0, 6.0), (-8.0, 8.0), (-9.0, 4.0), (-7.0, 4.0))
"""Bounds of log spread, logit share, logit lapse rate and log width."""

RANDOM = 0.5
"""People are taken to answer always at random if that has at least this probability."""

ALIKE = 20.0
"""The number of people that the prior share of those who always answer at random counts as."""

APART, LEAST = 0.1, 0.25
"""The distance of the points that curvature is computed from to their middle, and the least curvature."""


class Hyperparameters(NamedTuple):
    """The hyperparameters of the utilities of U people: spread, share and response noise.

    `spread`: the standard deviation of a utility, in units of the noise of one choice; `share`: the share of its
    variance in which people differ.
    """

    spread: float
    share: float
    noise: ResponseNoise


class QuadratureNode(NamedTuple):
    """The posterior at some hyperparameters, and their weight."""

    weight: float
    hyper: Hyperparameters
    people: UserPosteriors | JointPosterior
    """the posterior of one person over the items met, or the joint posterior of several people"""

    @property
    def sites(self) -> Sites:
        """Sites of EP at this node."""
        return self.people.sites


class MarginalLikelihood:
    """The marginal likelihood of some answers as a function of the hyperparameters; each evaluation starts from the
    last one's sites.
    """

    def __init__(self, K: Array, users: int, rows: PairRows, prior: NoisePrior) -> None:
        """Prepare for `rows` of `users` people over q items with correlations K (q x q): the items that answers
        mention.
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
        """Return the response noise of everybody at x (4,)."""
        lapse = np.where(self.random > RANDOM, MOST_LAPSES, _expit(x[2])) if 2 in self.free else np.zeros(self.users)
        width = np.full(self.users, np.exp(x[3]) if 3 in self.free else 0.0)
        return ResponseNoise(width, lapse, self.random)

    def at(self, x: Array) -> tuple[float, Array, QuadratureNode]:
        """Return the log evidence plus log prior at x (4,), its gradient (4,), and the posterior there."""
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
        """Return the posterior of several people at x (4,)."""
        c2, share, noise = float(np.exp(2.0 * x[0])), _expit(x[1]), self.noise_at(x)
        joint = infer_joint(
            c2 * (1.0 - share) * self.K, c2 * share * self.R, self.users, self.rows, self.parts, self.sites,
            width=noise.width, lapse=noise.lapse, tolerance=SETTLED,
        )  # fmt: skip
        self.sites = joint.sites
        return joint

    def _log_prior(self, x: Array, slope: Array) -> float:
        """Return the log prior at x (4,), and add its gradient to `slope` (4,)."""
        prior, rate, share = self.prior, _expit(x[2]), _expit(x[1])
        off = (x[0] - np.log(MEDIAN)) / LOG_SD
        out = -0.5 * off * off
        slope[0] -= off / LOG_SD
        for k, p, (a, b) in ((1, share, SHARE), (2, rate, LAPSE)):
            if k in self.free:  # as densities of the logit
                out += a * np.log(p) + b * np.log1p(-p)
                slope[k] += a * (1.0 - p) - b * p
        if 3 in self.free:
            off = (x[3] - np.log(prior.width)) / prior.spread
            out -= 0.5 * off * off
            slope[3] -= off / prior.spread
        return float(out)

    def likeliest(self, x: Array, H: Array | None = None) -> Array:
        """Return the maximum a posteriori hyperparameters (4,), searched from x (4,).

        H (4 x 4): approximate curvature at x, for the length of the first step.
        """
        from scipy.optimize import minimize

        free = self.free
        value, slope, _ = self.at(x)
        curved = np.abs(slope) if H is None else H.diagonal()
        scale = 1.0 / np.sqrt(np.maximum(curved[free], 1.0 if H is None else LEAST))  # a first step of about one each

        def worse(z: Array) -> tuple[float, Array]:
            value, slope, _ = self.at(spread_nodes(z))
            return -value, -slope[free] * scale

        def spread_nodes(z: Array) -> Array:
            whole = x.copy()
            whole[free] += scale * z
            return whole

        got = minimize(
            worse, np.zeros(len(free)), jac=True, method="L-BFGS-B",
            bounds=(np.array(BOUNDS)[free] - x[free, None]) / scale[:, None],
            options={"ftol": NATS / max(abs(value), 1.0), "gtol": NEAR, "maxiter": 40, "maxls": 6},
        )  # fmt: skip
        return spread_nodes(got.x)

    def curvature(self, x: Array) -> Array:
        """Return minus the Hessian at x (4,) of what `at` returns (4 x 4), with 0 for hyperparameters that are not
        learned.
        """
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
        """Find the people who answer entirely at random and the share of such people; return whether there are any.

        After this call their answers have almost no weight.
        """
        from scipy.special import expit, logit

        more = random_log_odds(self.rows, self.joint_at(x).each, self.noise_at(x))
        share = self.prior.random
        for _ in range(100):
            self.random = expit(logit(share) + more)
            last, share = share, (self.random.sum() + ALIKE * self.prior.random) / (self.users + ALIKE)
            if abs(share - last) < 1e-3 * last:
                break
        return bool((self.random > RANDOM).any())

    def learn_shape(self, x: Array, steps: int = 30, tolerance: float = 1e-2) -> None:
        """Learn R, the correlations of what people differ in, by EM from the answers of all people.

        The prior is inverse-Wishart around K and counts as NU0 people for each item: R = (nu0 K + sum E[d_u d_u'] /
        (spread^2 share)) / (nu0 + U).
        """
        nu0, U = NU0 * len(self.K), self.users
        for _ in range(steps):
            joint = self.joint_at(x)
            scale = float(np.exp(2.0 * x[0])) * _expit(x[1])
            S = joint.own
            new = (nu0 * self.K + (U * S + S @ joint.apart @ S) / scale) / (nu0 + U)
            moved = float(np.abs(new - self.R).max())
            self.R = 0.5 * (new + new.T)
            if moved < tolerance:
                break


def infer_hyperparameters(
    K: Array, users: int, rows: PairRows, prior: NoisePrior
) -> tuple[MarginalLikelihood, tuple[QuadratureNode, ...]]:
    """Infer the hyperparameters from `rows` of `users` people over q items with correlations K (q x q).

    Return the marginal likelihood, and posteriors over these items on quadrature nodes, most probable first.
    """
    problem = MarginalLikelihood(K, users, rows, prior)
    some, size = sample_people(rows, users, ENOUGH) if users > 1 else (sample_items(rows), 1)
    items, small = len(K), problem
    if some.size < rows.size:
        met, at = np.unique(some.pairs, return_inverse=True) if users == 1 else (np.arange(items), some.pairs)
        items = met.size
        small = MarginalLikelihood(K[np.ix_(met, met)], size, some._replace(pairs=at.reshape(-1, 2)), prior)
    x = small.likeliest(small.start)
    if users > 1:
        small.learn_shape(x)
        problem.R = small.R
        x = small.likeliest(x)
    # The spread is learned from items or people, the rest from answers: so much more is known of each from all.
    answers = float(rows.times.sum() / some.times.sum())
    more = np.sqrt([len(K) / items if users == 1 else answers, answers, answers, answers])
    H = small.curvature(x) * np.multiply.outer(more, more)
    if small is not problem:
        x = problem.likeliest(x, H)
    if users > 1 and 2 in problem.free and problem.find_random(x):
        x = problem.likeliest(x, H)
    return problem, integrate(problem, x, H)


def integrate(problem: MarginalLikelihood, x: Array, H: Array) -> tuple[QuadratureNode, ...]:
    """Return quadrature nodes around the mode x (4,), most probable first.

    They are Gauss-Hermite nodes of the curvature H (4 x 4), weighted by the actual density, along the directions that
    matter.
    """
    value, _, node = problem.at(x)
    values, Q = np.linalg.eigh(H[np.ix_(problem.free, problem.free)])
    of_all = (Q / np.maximum(values, LEAST)) @ Q.T
    sd = np.zeros(4)
    sd[problem.free] = np.sqrt(of_all.diagonal())
    free = [k for k in problem.free if k < 3 and _moves(node, k, float(sd[k])) > MATTERS]
    if not free:
        return (node,)
    at = [problem.free.index(k) for k in free]
    root = np.linalg.cholesky(of_all[np.ix_(at, at)])
    z, w = np.polynomial.hermite_e.hermegauss(5 if len(free) == 1 else 3)
    grid = np.stack([g.ravel() for g in np.meshgrid(*[z] * len(free), indexing="ij")], axis=1)
    weigh = np.prod(np.meshgrid(*[w] * len(free), indexing="ij"), axis=0).ravel()
    nodes, logs = [], []
    for point, weight in zip(grid, weigh):
        off = x.copy()
        off[free] += root @ point
        off = np.clip(off, *np.transpose(BOUNDS))
        there, _, node = problem.at(off)
        nodes.append(node)
        logs.append(there - value + 0.5 * float(point @ point) + np.log(weight))
    share = np.exp(np.array(logs) - max(logs))
    share /= share.sum()
    order = (-share).argsort(kind="stable").tolist()
    return tuple([nodes[i]._replace(weight=float(share[i])) for i in order])


def _moves(node: QuadratureNode, k: int, sd: float) -> float:
    """Return roughly how far utilities move, relative to their uncertainty, with one standard deviation of
    hyperparameter k.

    The spread shrinks utilities; share and lapse rate scale them.
    """
    spread, share, noise = node.hyper
    people = node.people
    posterior = people.average(noise.lapse.size) if isinstance(people, JointPosterior) else people.of(0)
    uncertain = float(np.median(posterior.sd())) / spread
    if k == 0:
        return 2.0 * sd * uncertain
    if k == 1:
        own = spread * spread * share
        return own * (1.0 - share) * sd / (1.0 + 2.0 * own) / uncertain
    rate = float(np.median(noise.lapse))
    return 2.0 * rate * (1.0 - rate) * sd / uncertain


def _expit(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))
