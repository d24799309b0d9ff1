"""The foundation: protocols of learners, worlds and spaces, the fold, input validation, states in files,
conformance."""
