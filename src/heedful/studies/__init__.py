"""Studies: people compare items (rows of a table, pictures or texts) two at a time, and their answers are collected."""
