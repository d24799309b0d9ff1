"""What can be shown: orders, structured objects, ranks, slates, sets of items to compare."""
