"""Many people's choices told from one another's, [H12] section 3: shared functions of the items, weighed by each."""
