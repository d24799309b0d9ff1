"""Protocols of learners, simulated worlds and spaces of proposals; the fold that runs a learner; input validation;
states in files; checks that every learner must pass."""
