"""Learners of ratings: they show items to a user, and learn from the ratings that the user gives."""
