"""The sizes of a run as small as can be."""

TINY = [
    "--hidden", "16", "--time", "8", "--train-examples", "60", "--test-examples", "20", "--batch", "16",
    "--members", "2", "--threads", "1", "--parallel", "1", "--quiet",
]  # fmt: skip
