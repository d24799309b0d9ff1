"""What heedful made of fixed streams and of fixed logs on the day that they were written: `make` writes it, and nobody
else does."""
