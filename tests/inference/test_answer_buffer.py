"""Answers as they came: rows of each form of answer, and what is left where some are taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.inference.gp.answer_buffer import (
    append_answer,
    drop_rows,
    empty_buffer,
    item_posterior,
    low_rank_posterior,
    order_comparisons,
    rows_about,
    tie_comparisons,
)
from heedful.inference.pairwise import concatenate, order_rows
from one_person import infer

SHOWN = np.array([4, 7, 2, 9])


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ([2], [[2, 4], [2, 7], [2, 9]]),  # the best of four
        ([2, 0], [[2, 4], [4, 7], [4, 9]]),
        ([3, 1, 0], [[9, 7], [7, 4], [4, 2]]),
        ([3, 1, 0, 2], [[9, 7], [7, 4], [4, 2]]),
    ],
)
def test_rows_of_an_order(order: list[int], wanted: list[list[int]]) -> None:
    assert order_comparisons(SHOWN, np.array(order)).tolist() == wanted


def test_rows_of_all_equally_good() -> None:
    assert tie_comparisons(SHOWN[:3]).tolist() == [[4, 7], [4, 2], [7, 2]]


def filled() -> Any:
    """Three people's answers, one after the other: a choice, the best of three, an order, a tie."""
    said = empty_buffer()
    for user, order in ((0, [1]), (1, [0]), (2, [2, 0, 1]), (1, [2])):
        shown = SHOWN[:2] if user == 0 else SHOWN[:3]
        said = append_answer(said, user, order_comparisons(shown, np.array(order)), False, 0.25, 0.0)
    return append_answer(said, 0, tie_comparisons(SHOWN[:2]), True, 0.25, 0.0)


def test_the_rows_of_one_answer_are_together() -> None:
    said = filled()
    assert said.n == 8
    assert said.group[:8].tolist() == [-1, 1, 1, 3, 3, 5, 5, -1]
    assert said.of(1).tolist() == [1, 2, 5, 6]
    assert said.equal[:8].tolist() == [False] * 7 + [True]
    for _ in range(20):
        said = append_answer(said, 3, order_comparisons(SHOWN, np.array([0])), False, 0.25, 0.0)
    assert (said.n, said.of(3).size, said.of(1).tolist()) == (68, 60, [1, 2, 5, 6])


def test_taken_out_it_is_as_if_they_had_never_come() -> None:
    left = drop_rows(filled(), filled().of(1))
    never = empty_buffer()
    never = append_answer(never, 0, order_comparisons(SHOWN[:2], np.array([1])), False, 0.25, 0.0)
    never = append_answer(never, 2, order_comparisons(SHOWN[:3], np.array([2, 0, 1])), False, 0.25, 0.0)
    never = append_answer(never, 0, tie_comparisons(SHOWN[:2]), True, 0.25, 0.0)
    assert left.n == never.n == 4
    for a, b in zip(left[:-1], never[:-1]):
        np.testing.assert_array_equal(a[:4], b[:4])


def test_all_that_was_said_with_an_item() -> None:
    """The whole answers: of the best of three, also the row that is not about it."""
    assert rows_about(filled(), 2).tolist() == [1, 2, 3, 4, 5, 6]
    assert rows_about(filled(), 4).tolist() == list(range(8))
    assert rows_about(filled(), 9).tolist() == []


def test_what_is_believed_is_inference() -> None:
    """From the sites of EP: rows alone and rows that share their noise; items never met, too."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(10, 10))
    K, mean = B @ B.T / 10, 0.3 * rng.normal(size=10)
    said = filled()
    rows = concatenate([order_rows([4, [7, 2]]), order_rows([2, [4, 7]])])
    got = infer(K, mean, rows, tolerance=1e-12)
    said.tau[said.of(1)], said.nu[said.of(1)] = got.sites.tau, got.sites.nu
    posterior = item_posterior(K, mean, said, 1, np.arange(10))
    np.testing.assert_allclose(posterior.mean, got.posterior.mean, atol=1e-10)
    np.testing.assert_allclose(posterior.cov, got.posterior.cov, atol=1e-10)
    part = item_posterior(K, mean, said, 1, np.array([0, 9]))
    np.testing.assert_allclose(part.cov, got.posterior.cov[np.ix_([0, 9], [0, 9])], atol=1e-10)
    assert order_rows([4, 7, 2]).pairs.tolist() == order_comparisons(SHOWN[:3], np.array([0, 1, 2])).tolist()


@pytest.mark.parametrize("items", [np.arange(10), np.array([0, 2, 4, 9])])
def test_without_a_matrix_for_each_it_is_the_same(items: Any) -> None:
    """What is narrowed, against each person's posterior."""
    rng = np.random.default_rng(1)
    B = rng.normal(size=(10, 10))
    K, mean = B @ B.T / 10, 0.3 * rng.normal(size=10)
    said = filled()
    said.tau[: said.n], said.nu[: said.n] = rng.uniform(0.1, 2.0, said.n), rng.normal(size=said.n)
    each = [item_posterior(K, mean, said, user, items) for user in (0, 2, 5)]  # 5 said nothing
    for user, whole in zip((0, 2, 5), each):
        part = low_rank_posterior(K, mean, said, user, items)
        np.testing.assert_allclose(part.mean, whole.mean, atol=1e-12)
        np.testing.assert_allclose(part.whole().cov, whole.cov, atol=1e-12)


def test_a_copy_of_ones_own() -> None:
    said = filled()
    own = said.own()
    own.tau[:3] = 7.0
    assert own.n == said.n
    assert (said.tau == 0.0).all()
    assert not any(np.shares_memory(a, b) for a, b in zip(said[:-1], own[:-1]))
