"""The experiments, one file each: data, tasks, presets and tuned settings. Definitions only.

To add one, write its file and list it in `registry`. How they are carried out is the business of `bayspike.runs`.
"""
