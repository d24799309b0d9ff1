"""Coactive learners: shown an object, told a better one."""
