"""To the chip: plain arrays (`cuba`), the chip's integers (`rounding`, `fixed_point`), exchange formats (`nir`,
`lava`), health and price (`check`, `budget`), and artefacts that verify themselves (`export`).

Nothing is imported here, so that `fixed_point`, `files` and `lava` can be used without torch.
"""
