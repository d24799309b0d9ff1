"""Evaluation from logs: the value of rankers that were not shown (off-policy), and which of two rankers
people prefer.
"""
