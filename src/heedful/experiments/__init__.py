"""Experiments: learners run in the same simulated worlds on the same random seeds, and their regrets compared."""
