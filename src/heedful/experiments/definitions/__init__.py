"""Experiments as commands run them, one class each: the options of `heedful simulate NAME`, and what a grid says of it.

This package is read to list the commands, so its modules import what they need when they need it.
"""
