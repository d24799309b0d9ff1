"""Learners of ratings: they show items to a user, and learn from the ratings that the user gives.

Each has two more methods, the last of which may overwrite `state`:

- `ratings(state, x)`: the predicted rating of each of the c items of the context x by its user, (c,).
- `without_item(state, item)`: the state without the ratings of an item. Counts and sums are then exact; what else
  depends on the ratings only a replay of the log without them removes completely.
"""
