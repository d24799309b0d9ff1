"""Simulated people and streams of contexts: worlds, which know the true utilities that a learner does not see."""
