"""Loaders: a path in, arrays out. Nothing is fetched."""
