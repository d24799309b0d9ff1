"""One class for each experiment: its options as a command (`heedful simulate NAME`), and its part of a grid.

A grid is the TOML file of `heedful sweep`. This package is imported to list the commands, so its modules import what
they need only when it is needed.
"""
