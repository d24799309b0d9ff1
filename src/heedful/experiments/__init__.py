"""Experiments: learners in the same worlds on the same seeds."""
