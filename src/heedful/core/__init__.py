"""What everything stands on: the fold, its checks, names of learners, states in files."""
