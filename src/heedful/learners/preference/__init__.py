"""Preference learners: two or more items are shown, and the person says which is better."""
