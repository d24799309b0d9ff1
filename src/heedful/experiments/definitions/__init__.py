"""The experiments of the commands `heedful simulate NAME` and `heedful sweep`, one class for each: its options, its
data and its learners.

`heedful sweep` reads a grid, a TOML file, and runs every combination of its learners, simulated users and seeds. This
package is imported to list the commands, so its modules import what they need only when it is needed.
"""
