"""Inference of utilities from comparisons: Gaussian processes over items, and which question to ask next."""
