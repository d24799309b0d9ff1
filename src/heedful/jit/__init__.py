"""Compilation with numba: marks for functions that can be compiled, and a cache of compiled code."""
