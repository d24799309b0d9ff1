"""Learners of comparisons: two items or more are shown, the better one is told."""
