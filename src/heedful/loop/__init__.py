"""A learner taught in production: a log of events, the model made from it, and what can be asked of both.

`heedful.Loop` is all that most people need.

loop          Loop: create, decide, feedback, undo, forget, evaluate, explain
records       what the log keeps, what callers get back, and the checks of what comes from outside
request       from names and attributes to indices and arrays
strangers     candidates that are not on offer
settings      what a loop is created with
log           the database: append-only, with forgetting
group         group commits: events of many callers in one transaction
catalogue     items and their versions
model         what all models have: the state of one person, a decision with its arrays
decide        from a request to the event of its decision
feedback      from feedback to its event
projection    the model as the log grows: one writer, immutable states for readers
snapshots     files that hold a model
interactions  what differs from one kind of feedback to another, its model too: one instance a loop
ranking       the order in which the model ranks candidates now, without a decision
explain       why a decision was made: its first item against its second
why           why any candidate had its score: its features, and the feedback that moved it
evaluate      how well other learners would have predicted the answers in the log, and how sure that is
serving       which learner serves, and which candidate learner is tried next to it
experiment    what people prefer, the learner that serves or the candidate, and promotions of candidates
history       the feedback in words and by name, the newest first
style         what a person's edits of texts say about the style that they want, and corrections of that by hand
movement      how much feedback changed what the model predicts
health        whether the feedback is sound, with alarms (signals)
report        how well the loop does: learned lists against the caller's order (cluster_robust), predictions against
              answers (prediction_report), and the quality of the feedback
simulation    the utility that only a simulation knows: regret and its bound
"""

from heedful.loop.loop import Loop

__all__ = ["Loop"]
