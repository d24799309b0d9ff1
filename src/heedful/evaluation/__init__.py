"""What a log says of rankers that were not asked, and which of two rankers people prefer."""
