"""Studies: people compare items from tables, pictures or texts, and their answers are collected."""
