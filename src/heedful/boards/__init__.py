"""Leaderboards and rankings: how items stand by votes or choices, how sure that is, and what is odd in the answers."""
