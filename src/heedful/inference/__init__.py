"""What people prefer, learned from choices: Gaussian processes over the utilities of items, and what to ask next."""
