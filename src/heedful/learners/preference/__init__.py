"""Preference learners: two or more items are shown to a person, who says which is better; utilities are Gaussian
processes."""
