def demo() -> None:
    """todo"""
