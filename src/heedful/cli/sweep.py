def sweep() -> None:
    """todo"""
