"""Files that outlive a process: written whole or not at all, read without running code.

In comes any plain value, array or dataclass; out go JSON and arrays that a kill at any instant cannot tear, and back
come the same values or one sentence that names the file and the place. Knows nothing of networks or runs.
"""
