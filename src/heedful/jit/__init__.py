"""Compilation with numba: decorators for functions that can be compiled, and a cache of compiled code on disk."""
