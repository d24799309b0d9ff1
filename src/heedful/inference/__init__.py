"""Inference of utilities of items from comparisons by Gaussian processes, and the choice of the next question."""
