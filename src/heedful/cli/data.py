def data() -> None:
    """todo"""
