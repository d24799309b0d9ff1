"""One thing being taught in production: a log, its fold, the doors. `heedful.Loop` is all that most people need.

loop       Loop: create, decide, feedback, undo, forget, evaluate, explain
records       the JSON door: what feedback may look like, what the log keeps of it, what is answered
request    from names and attributes to indices and arrays
settings   what a loop is founded on
log        the database: append-only, group commits, forgetting
catalogue      items and their versions
model      what all models have: a person's own, a decision with its arrays
projection     the fold as the log grows: one writer, immutable states for readers
keeping    snapshots
interactions  what differs from one kind of feedback to another, its model too: one instance a loop, which all ask
explain    why a decision was made: fold again, look, change nothing
evaluate   what the log says about other learners, and how sure that is
lessons    what was said, by name, the newest first
report     what was learned, measured: learned lists against those left alone (comparison), what was predicted against
           what was answered (the interaction says), what feedback was worth
simulation the truth that only a simulation knows: regret and bound
"""

from heedful.loop.loop import Loop

__all__ = ["Loop"]
