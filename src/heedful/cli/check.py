def check() -> None:
    """todo"""
