"""Data sets from their own files, one module each, with a `load` that gives a `Dataset`."""
