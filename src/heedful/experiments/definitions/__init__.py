"""The experiments of the commands `heedful simulate NAME`, one class for each: its options, its data and its learners.

This package is imported to list the commands, so its modules import what they need only when it is needed.
"""
