"""Learners of ratings: an item is shown to a user, its rating is told."""
