"""Loaders of data sets and file formats: each takes a path and returns arrays or tables. Nothing is downloaded."""
