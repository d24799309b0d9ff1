"""Collaborative preference learning, [H12] section 3: people share latent functions of the items, each with weights of
their own.
"""
