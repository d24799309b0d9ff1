"""The kinds of feedback, one package each: all that a loop does otherwise for one kind than for another.

protocol     what a loop asks of an interaction
registry     which interaction a loop has
settings     the fields of settings that make a loop of a kind
old_names    under which records of before have what was predicted
forms        of feedback: how each is read, written and described
card         how an interaction speaks of itself
named        learners by name, as loops take them
lists        of what has features: made by score, or left to the caller's order
telling      lines and tables that commands and pages print
coactive     a better object than the one shown: clicks, an order, an edit, a thumb
ordinal      grades from 1 to k
rating       numbers for items
comparison   which of two, or of several, is better

In the package of a kind stands its interaction; `model` is what a loop of that kind folds, `learners` how its learners
are named, `prediction_report` how well it predicted, `texts` how that is told.

A learner names its interaction, in its docstring (`Interaction: ordinal.`) by the `name` of a class in this folder, or
as a class attribute `interaction`, which is the class itself: so a kind of one's own changes no file of heedful's.
"""
