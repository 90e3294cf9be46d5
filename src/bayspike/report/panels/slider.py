"""The slider over time t of a section; the script moves every plot of the section that has steps."""

from bayspike.report.markup import text


def slider(name: str, steps: int) -> str:
    """From 1 to `steps`, at the end to begin with."""
    identity = text(f"slider-{name}")
    return (
        f'<div class="slider"><button type="button" class="play" aria-label="Play">▶</button>'
        f'<label for="{identity}">t</label>'
        f'<input type="range" id="{identity}" min="1" max="{int(steps)}" value="{int(steps)}" step="1">'
        f'<output for="{identity}">{int(steps)}</output><span class="of">of {int(steps)}</span></div>'
    )
