"""Run integer networks on lava-nc's own fixed-point models, and on netx. Does not use bayspike.

A layer is a plain dictionary: weight (neurons, inputs), recurrent or None, threshold, current_decay,
voltage_decay, weight_exponent, in the chip's integers (`current_decay` is the effective one).
"""

import sys
import types

import numpy as np


def run_lava(layers, spikes):
    """Spikes, current and voltage of every layer after each step, for one example `spikes` (time, inputs)."""
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi1SimCfg
    from lava.proc.dense.process import Dense
    from lava.proc.io.source import RingBuffer as Source
    from lava.proc.lif.process import LIF
    from lava.utils.weightutils import SignMode

    def synapses(weight, exponent):
        return Dense(weights=weight, weight_exp=exponent, sign_mode=SignMode.MIXED, num_weight_bits=8)

    time = len(spikes)
    source = Source(data=np.ascontiguousarray(spikes.T.astype(np.int32)))
    below, neurons = source.s_out, []
    for layer in layers:
        weight = np.asarray(layer["weight"], np.int32)
        dense = synapses(weight, layer["weight_exponent"])
        lif = LIF(
            shape=(weight.shape[0],),
            du=layer["current_decay"] - 1,
            dv=layer["voltage_decay"],
            vth=layer["threshold"],
        )
        below.connect(dense.s_in)
        dense.a_out.connect(lif.a_in)
        if layer["recurrent"] is not None:
            lateral = synapses(np.asarray(layer["recurrent"], np.int32), layer["weight_exponent"])
            lif.s_out.connect(lateral.s_in)
            lateral.a_out.connect(lif.a_in)
        neurons.append(lif)
        below = lif.s_out
    sinks = [_sink(lif.s_out, time) for lif in neurons]

    current, voltage = [[] for _ in layers], [[] for _ in layers]
    try:
        for _ in range(time):
            source.run(condition=RunSteps(num_steps=1), run_cfg=Loihi1SimCfg(select_tag="fixed_pt"))
            for index, lif in enumerate(neurons):
                current[index].append(lif.u.get().copy())
                voltage[index].append(lif.v.get().copy())
        out = [sink.data.get().T.astype(np.uint8) for sink in sinks]
    finally:
        source.stop()
    return out, [np.stack(u) for u in current], [np.stack(v) for v in voltage]


def run_netx(path, spikes, layers):
    """Spikes of every layer of a `.net` file, loaded by lava-dl's netx."""
    _stub_what_needs_torch()
    from lava.lib.dl.netx import hdf5
    from lava.lib.dl.netx.blocks.models import AbstractPyBlockModel
    from lava.lib.dl.netx.blocks.process import RecurrentDense
    from lava.magma.core.decorator import implements
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi1SimCfg
    from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol
    from lava.proc.io.source import RingBuffer as Source

    # netx 0.6 builds recurrent blocks but has no CPU model that unfolds them, as it has for the others.
    @implements(proc=RecurrentDense, protocol=LoihiProtocol)
    class PyRecurrentDenseModel(AbstractPyBlockModel):
        pass

    time = len(spikes)
    net = hdf5.Network(net_config=str(path))
    assert len(net) == layers
    source = Source(data=np.ascontiguousarray(spikes.T.astype(np.int32)))
    source.s_out.connect(net.inp)
    sinks = [_sink(layer.out, time) for layer in net.layers[:-1]] + [_sink(net.out, time)]
    config = Loihi1SimCfg(select_tag="fixed_pt", exception_proc_model_map={RecurrentDense: PyRecurrentDenseModel})
    try:
        source.run(condition=RunSteps(num_steps=time), run_cfg=config)
        return [sink.data.get().T.astype(np.uint8) for sink in sinks]
    finally:
        source.stop()


def _sink(port, time):
    from lava.proc.io.sink import RingBuffer as Sink

    sink = Sink(shape=port.shape, buffer=time)
    port.connect(sink.a_in)
    return sink


def _stub_what_needs_torch():
    """netx imports two modules that need torch and that a `.net` of dense CUBA layers never calls."""
    for name, attribute in (
        ("lava.lib.dl.slayer.neuron.rf", "neuron_params"),
        ("lava.lib.dl.netx.sequential_modules", None),
    ):
        if name not in sys.modules:
            module = types.ModuleType(name)
            if attribute:
                setattr(module, attribute, None)
            sys.modules[name] = module
