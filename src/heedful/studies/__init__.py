"""Studies: what people are asked to compare, out of tables, pictures and texts; and what they answered."""
