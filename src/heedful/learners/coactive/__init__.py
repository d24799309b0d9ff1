"""Coactive learners: they show an object, such as a ranking, and learn from a better one that a person gives in
return."""
