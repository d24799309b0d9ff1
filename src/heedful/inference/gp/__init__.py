"""Gaussian processes over the utilities of items, by expectation propagation."""
