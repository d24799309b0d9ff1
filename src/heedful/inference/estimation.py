"""Estimate utilities from a comparison table: of one person, or of several people, jointly and each.

The command `heedful rank`, the results of a loop and its pages all use this inference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import finite_array, numbers
from heedful.data.comparisons import ComparisonTable
from heedful.inference.comparison_table import pairwise_rows
from heedful.inference.gp.ep import infer_users
from heedful.inference.gp.hyperparameters import QuadratureNode, infer_hyperparameters
from heedful.inference.gp.joint_ep import JointPosterior, message_of, person_prior
from heedful.inference.gp.marginal_likelihood import Kernel, choose_kernel, covariance
from heedful.inference.gp.mixture import Mixture, mixture
from heedful.inference.gp.per_user_ep import batches_of_users
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.response_noise import PRIOR, ResponseNoise, random_probabilities
from heedful.inference.gp.sites import Sites
from heedful.inference.pairwise import PairRows, merge_equal, take_rows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST_ITEMS = 3_000
MOST_ITEMS_OF_MANY = 1_000
"""MOST_ITEMS is the greatest number of items in a table of one person, MOST_ITEMS_OF_MANY in one of several people."""


class Belief(NamedTuple):
    """Posterior over the utilities of n items for one or several people, with hyperparameters integrated out.

    It is a mixture over `nodes`, hyperparameters with a weight, most probable first; each has Gaussians over the q
    items that occur in answers. Given these, the other items are distributed as under the prior.
    """

    users: int
    """number of people, U"""
    rows: PairRows
    """comparisons by all people, over the q items; identical ones merged"""
    K: Array
    """(n x n) correlations of the utilities of items, from their features"""
    kernel: Kernel
    """the kernel chosen for the items' features"""
    met: Ints
    """(q,) numbers of the items that occur in answers, rising"""
    R: Array
    """(q x q) correlations of the personal differences in utility"""
    nodes: tuple[QuadratureNode, ...]
    noise: ResponseNoise
    """lapse rate and tie width of each person"""
    log_evidence: Array
    """(U,) log P(answers of a person | answers of all others)"""

    @property
    def spread(self) -> float:
        """Most probable standard deviation of a person's utilities; 1 is that of the noise of one choice."""
        return self.nodes[0].hyper.spread

    @property
    def share(self) -> float:
        """Most probable share of the variance of utilities that is due to differences between people, 0 to 1; 1 with
        one person."""
        return self.nodes[0].hyper.share

    @property
    def sites(self) -> Sites:
        """Sites of expectation propagation for the p comparisons in `rows`, at the most probable hyperparameters."""
        return self.nodes[0].sites

    def average(self, people: Ints | None = None) -> Posterior | Mixture:
        """Return the posterior over the utilities (n,) of n items, averaged over the people with these numbers,
        distinct.

        With None, it is averaged over all people.
        """
        few = None if people is None or people.size == self.users else np.sort(people)
        count = self.users if few is None else few.size
        return self._mixture([self._average(node, few) for node in self.nodes], 1.0 / count)

    def of(self, person: int) -> Posterior | Mixture:
        """Return the posterior over the utilities (n,) of n items for the person with this number.

        For a person without answers it is that of a new person.
        """
        if self.users > 1 and not (self.rows.user == person).any():
            return self.new()
        return self._mixture([self._person(node, person) for node in self.nodes], 1.0)

    def new(self) -> Posterior | Mixture:
        """Return the posterior over the utilities (n,) of n items for a person who has not answered.

        With only one person in the table, people cannot be told apart, and it is that of this person.
        """
        joints = [node.people for node in self.nodes if isinstance(node.people, JointPosterior)]
        parts = [Posterior(joint.mean, joint.cov + joint.person_cov) for joint in joints]
        return self._mixture(parts, 1.0) if parts else self.average()

    def _average(self, node: QuadratureNode, few: Ints | None) -> Posterior:
        people = node.people
        if not isinstance(people, JointPosterior):
            return people.of(0)
        if few is None:
            return people.average(self.users)
        rows = np.flatnonzero(np.isin(self.rows.user, few))
        of = take_rows(self.rows, rows)
        of = of._replace(user=np.searchsorted(few, of.user))
        tau, nu = node.sites.tau[rows], node.sites.nu[rows]
        return people.average(few.size, message_of(people.person_cov, batches_of_users(of, few.size), tau, nu))

    def _person(self, node: QuadratureNode, person: int) -> Posterior:
        people = node.people
        if not isinstance(people, JointPosterior):
            return people.of(0)
        at = np.flatnonzero(self.rows.user == person)
        rows = take_rows(self.rows, at)._replace(user=np.zeros(at.size, np.int64))
        [few] = batches_of_users(rows, 1)
        tau, nu = node.sites.tau[at], node.sites.nu[at]
        before = person_prior(people, few, tau, nu)
        noise = node.hyper.noise
        width, lapse = noise.width[person], noise.lapse[person]
        many = infer_users(before.cov, before.mean, 1, rows, Sites(tau, nu), width=width, lapse=lapse, sweeps=0)
        return many.of(0)

    def _mixture(self, parts: list[Posterior], apart: float) -> Posterior | Mixture:
        """Extend posteriors over the q items in answers, one for each node, to all n items, and mix them by the nodes'
        weights.

        `apart`: the fraction of the personal variance that utilities of one item have beyond the common mean: 1 for a
        person, 1 / U for the mean of U people.
        """
        whole = [self._of_all(node, part, apart) for node, part in zip(self.nodes, parts)]
        return mixture([node.weight for node in self.nodes], whole)

    def _of_all(self, node: QuadratureNode, part: Posterior, apart: float) -> Posterior:
        """Extend a posterior over the q items in answers to all n items; given these, the others are distributed as
        under the prior."""
        n, met = len(self.K), self.met
        if met.size == n:
            return part
        spread, share, _ = node.hyper
        left = spread * spread * (1.0 - share + share * apart)
        rest = np.delete(np.arange(n), met)
        across = self.K[np.ix_(rest, met)]
        B = np.linalg.solve(self.K[np.ix_(met, met)], across.T).T if across.any() else across
        mean, cov = np.empty(n), np.empty((n, n))
        mean[met], mean[rest] = part.mean, B @ part.mean
        cov[np.ix_(met, met)] = part.cov
        cov[np.ix_(rest, met)] = B @ part.cov
        cov[np.ix_(met, rest)] = cov[np.ix_(rest, met)].T
        cov[np.ix_(rest, rest)] = B @ part.cov @ B.T + left * (self.K[np.ix_(rest, rest)] - B @ across.T)
        return Posterior(mean, 0.5 * (cov + cov.T))


class Estimate(NamedTuple):
    """The result of `estimate`: the comparison table, the joint inference, and the posterior over the utilities of the
    only person or, with several, over the mean of all people.
    """

    choices: ComparisonTable
    belief: Belief
    posterior: Posterior | Mixture


def infer_utilities(X: Array, users: int, rows: PairRows) -> Belief:
    """Infer the posterior over the utilities of n items from the comparisons `rows` of `users` people, at least one.

    `X` (n x d): d features of the items, d = 0 without. Spread and share are integrated out; lapse rates, the tie width
    and the kernel are maximum a posteriori.
    """
    rows = merge_equal(rows)
    met, at = np.unique(rows.pairs, return_inverse=True)
    rows = rows._replace(pairs=at.reshape(-1, 2))
    kernel = choose_kernel(X, met, users, rows)
    K = covariance(X, kernel)
    problem, nodes = infer_hyperparameters(K[np.ix_(met, met)], users, rows, PRIOR)
    first = nodes[0]
    people = first.people
    each = people.log_evidences if isinstance(people, JointPosterior) else people.log_evidence
    noise = first.hyper.noise
    if users == 1:
        noise = noise._replace(random=random_probabilities(rows, each, noise, PRIOR))
    return Belief(users, rows, K, kernel, met, problem.R, nodes, noise, each)


def estimate(choices: ComparisonTable, X: npt.ArrayLike | None = None) -> Estimate:
    """Estimate the utilities of the n items of a comparison table `choices`, for its person or people.

    `X` (n x d): d features of the items; None: items are independent. Raise ValueError with fewer than two items, with
    too many (over 3000 of one person, 1000 of several), without a judged answer, or if X has another shape.
    """
    n, U = len(choices.items), len(choices.people)
    if not 2 <= n <= MOST_ITEMS:
        fewer = "" if n < 2 else ": keep the answers about fewer of them, such as those with most votes"
        raise ValueError(f"items: expected 2 to {MOST_ITEMS:,}{' with --pool' if U > 1 else ''}, got {n:,}{fewer}")
    if U > 1 and n > MOST_ITEMS_OF_MANY:
        pooled = f"--pool takes all answers for one person's, about {MOST_ITEMS:,} items at most"
        raise ValueError(
            f"items: expected 2 to {MOST_ITEMS_OF_MANY:,} where people are told apart, got {n:,}: {pooled}"
        )
    features = np.empty((n, 0)) if X is None else numbers("X", X, "2-dimensional numbers").astype(np.float64)
    finite_array("X", features, 2, features.shape[1] if features.ndim == 2 else 0)
    if len(features) != n:
        raise ValueError(f"X: expected {n} rows, one for each item, got {len(features)}")
    rows = pairwise_rows(choices)
    if not rows.size:
        raise ValueError("answers: expected at least one that judges, got none")
    belief = infer_utilities(features, U, rows)
    return Estimate(choices, belief, belief.average())
