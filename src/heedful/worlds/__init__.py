"""Simulated environments for learners ("worlds"): each makes the contexts, answers what a learner shows like a person
would, and knows the true utilities, which the learner does not see.
"""
