"""Learners of ratings: they show items to a user, and learn from the ratings that the user gives.

Each has three more methods, the last two of which may overwrite `state`:

- `ratings(state, x)`: the predicted rating of each of the c items of the context x by its user, (c,).
- `without_rating(state, user, item, rating, weight)`: the state without one rating, which was learned with this weight.
  Counts and sums are then exact; what else depends on the rating only a replay of the log without it removes
  completely. Raise LookupError if the user never rated the item.
- `without_item(state, item)`: the state without the ratings of an item.
"""
