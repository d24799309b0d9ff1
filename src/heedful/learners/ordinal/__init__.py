"""Ordinal learners: a rank is predicted, the true rank is told."""
