"""Simulated people and streams: what only an experiment knows."""
