"""The kinds of feedback, one package each: all that a loop does differently for one kind than for another.

protocol     the interface of an interaction, and the types that it exchanges with a loop
registry     finds the interaction of a loop
settings     the fields of a loop's settings that make it one of a kind
forms        the forms of feedback: how each is read, written and described
fields       the fields of forms as pages, commands and tools of agents ask for them
words        what a kind calls things: the texts of pages and commands
named        learners by name, as loops take them
lists        lists of candidates with features: ordered by score, or in the caller's order
telling      lines and tables that commands and pages print
coactive     feedback that names something better than what was shown: clicks, an order, an edit, a thumb
ordinal      feedback with grades from 1 to k
rating       feedback with numbers for items
comparison   feedback that says which of two or more items is better

The package of a kind holds its interaction; in it `model` is what a loop of that kind folds its log into, `learners`
the names of its learners, `prediction_report` a measure of how well answers were predicted, and `texts` its words.

A learner says in its docstring which interaction it belongs to (`Interaction: ordinal.`), by the `name` of a class in
this folder, or has the class itself as its class attribute `interaction`: a new kind changes no file of heedful."""
