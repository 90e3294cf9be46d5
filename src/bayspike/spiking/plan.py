"""From the words of a stack to the sizes of its layers."""

from collections.abc import Sequence
from typing import NamedTuple

from bayspike.errors import require
from bayspike.spiking.convolution import maps_after
from bayspike.spiking.maps import Inlet, Maps, maps_of
from bayspike.spiking.stack import Conv, Dense, Pool, Word


class LayerPlan(NamedTuple):
    """The sizes of a layer that is to be built."""

    inputs: int
    word: Dense | Conv
    inlet: Inlet | None = None
    window: int = 1

    @property
    def maps(self) -> Maps:
        assert isinstance(self.word, Conv)
        assert self.inlet is not None
        return maps_after(self.inlet.leaving, self.word)

    @property
    def neurons(self) -> int:
        return self.word.neurons if isinstance(self.word, Dense) else self.maps.size

    @property
    def seen(self) -> int:
        """By the read-out."""
        return self.neurons if isinstance(self.word, Dense) else self.maps.pooled(self.window).size

    def read_by(self, grid: int) -> "LayerPlan":
        """The same layer with a read-out that tells `grid` places a side of its maps apart, or fewer.

        Places share their kernel but not a random read-out's entries: where each has its own, a kernel is asked for one
        thing here and for another there. Over a window it is asked for one.
        """
        if isinstance(self.word, Dense):
            return self
        return self._replace(window=max(self.window, min(self.maps.height, self.maps.width) // grid))

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weight matrix."""
        if isinstance(self.word, Conv):
            assert self.inlet is not None
            return (self.word.maps, self.word.kernel**2 * self.inlet.leaving.channels)
        forward = self.inputs if self.inlet is None else self.inlet.leaving.size
        return (self.word.neurons, forward + (self.word.neurons if self.word.recurrent else 0))


def plan_stack(words: Sequence[Word], inputs: int, shape: tuple[int, ...], text: str) -> list[LayerPlan]:
    """Poolings go with the layer above them, and their windows to the read-out of the one below."""
    plans: list[LayerPlan] = []
    maps: Maps | None = None
    if any(not isinstance(word, Dense) for word in words):
        maps = maps_of(shape, f"network {text!r}")
        fits = f"network {text!r}: a sample of the shape {shape} has {maps.size} inputs, but there are {inputs}."
        require(maps.size == inputs, fits)
    arriving, first = maps, True
    pools: tuple[Pool, ...] = ()
    for place, word in enumerate(words, start=1):
        where = f"network {text!r}, word {place} ({word})"
        if isinstance(word, Pool):
            assert maps is not None
            maps, pools = maps.pooled(word.size), (*pools, word)
            require(min(maps) > 0, f"{where}: nothing is left of the maps below; pool less.")
            if plans:
                plans[-1] = plans[-1]._replace(window=plans[-1].window * word.size)
            continue
        needed = isinstance(word, Conv) or pools
        inlet = Inlet(arriving, first, pools) if needed and arriving is not None else None
        plan = LayerPlan(plans[-1].neurons if plans else inputs, word, inlet)
        if isinstance(word, Conv):
            assert maps is not None
            too_large = f"{where}: the kernel is larger than the maps below, {maps.height} × {maps.width}."
            require(min(plan.maps) > 0, too_large)
            maps = arriving = plan.maps
        else:
            maps = arriving = None
        plans.append(plan)
        first, pools = False, ()
    return plans
