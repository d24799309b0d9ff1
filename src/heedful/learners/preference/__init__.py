"""Preference learners: two or more items are shown to a person, who says which is better; utilities are Gaussian
processes.

`PreferenceGP` describes the methods that they have besides those of a `Learner`.
"""
