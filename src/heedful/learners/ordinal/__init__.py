"""Ordinal learners: they predict the rank (grade) that a person gives an instance, and learn from the true rank."""
