"""The learners, one file per family. Nothing is listed by hand: `heedful.catalogue` walks this folder."""
