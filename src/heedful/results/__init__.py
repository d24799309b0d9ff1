"""What is decided and reported, as structs with a description at each field, and nothing else.

Server, client and commands read them; what computes them is in `heedful.loop`."""
