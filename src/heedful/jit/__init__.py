"""Compilation: marks for functions that can be compiled, and the cache of what was."""
