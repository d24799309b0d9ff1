def learners() -> None:
    """todo"""
