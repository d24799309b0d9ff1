"""A learner taught in production: a log of events, the model made from it, and what can be asked of both.

`heedful.Loop` is all that most people need.

loop          Loop: create, decide, feedback, undo, forget, evaluate, why: the doors
founding      a loop is created; offer puts items on offer; retraction undoes, rolls back and forgets
copying       which loops a folder or a database has, and how one is copied to another place
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
history       all of that to be read, with the learner that serves and the model as published: what reports are made of
decisions     the decisions of the log by id, the newest in memory
fold          a model, what it was made of, and what the learner failed on; replay makes one again from the log
publication   the state of the model that readers decide from
writer        what is to be written to the log, and what a writer does; projection is the one that writes and learns
keeper        states of models that are kept, in memory and in snapshots, to begin from
interactions  what differs from one kind of feedback to another, its model too: one instance a loop
ranking       what the model says now, without a decision
why           why any candidate had its score: its features, and the feedback that moved it
evaluate      how well other learners would have predicted the answers in the log, and how sure that is
serving       which learner serves, and which candidate learner is tried next to it; following lets that one learn
trials        experiments are begun and stopped, and candidates promoted
experiment    what people prefer, the learner that serves or the candidate, and what spoke for promotions
recent_feedback  the feedback in words and by name, the newest first
style         what a person's edits of texts say about the style that they want, and corrections of that by hand
movement      how much feedback changed what the model predicts
health        whether the feedback is sound, with alarms (signals)
report        how well the loop does: learned lists against the caller's order (cluster_robust), predictions against
              answers (prediction_report), and the quality of the feedback
simulation    the utility that only a simulation knows: regret and its bound
"""

from heedful.loop.loop import Loop

__all__ = ["Loop"]
