"""Spaces of proposals, one for each kind of task: rankings, structured objects (paths, subsets), ordinal grades, slates
of items to rate, sets of items to compare."""
