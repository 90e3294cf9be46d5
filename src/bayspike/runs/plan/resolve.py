"""From an experiment, a preset and what the user wants otherwise, to the complete configuration of a run."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_type_hints

from bayspike.continual.methods import METHODS, build_rule, describe_rule, method, rule_options
from bayspike.errors import UserError, hint, require
from bayspike.runs.plan.config import (
    MOST_SEEDS,
    DataOptions,
    JudgingOptions,
    MethodConfig,
    NetworkOptions,
    RunConfig,
    TrainingOptions,
    parse_setting,
)
from bayspike.runs.plan.experiment import Experiment, Preset, Table
from bayspike.runs.plan.reduced import reductions
from bayspike.storage.named import short_name
from bayspike.storage.plain import coerce


@dataclass(frozen=True)
class Changes:
    """What the user wants otherwise than the preset; every mapping holds only what was said."""

    methods: Sequence[str] = ()
    seeds: int | None = None
    network: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    judging: Mapping[str, Any] = field(default_factory=dict)
    settings: Sequence[str] = ()
    simulated: bool = False
    tuned: Table = field(default_factory=dict)  # in place of the experiment's own table, as far as it goes
    run: Mapping[str, Any] = field(default_factory=dict)  # threads, device, log_every, tasks, …


def resolve(experiment: Experiment, preset: str, changes: Changes) -> RunConfig:
    """The complete configuration of a run."""
    if preset not in experiment.presets:
        raise UserError(f"{experiment.name} has no preset {preset!r}: choose from {', '.join(experiment.presets)}.")
    config = _resolve(experiment, preset, changes)
    if not experiment.of_paper:
        return config
    paper = _resolve(experiment, "paper", Changes(methods=list(dict.fromkeys(m.method for m in config.methods))))
    return replace(config, reduced=tuple(reductions(config, paper, experiment.paper_data)))


def require_repetitions(seeds: int) -> None:
    if not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds is the number of repetitions and must lie in [1, {MOST_SEEDS}], but is {seeds}.")


def _resolve(experiment: Experiment, preset: str, changes: Changes) -> RunConfig:
    own = changes.simulated and preset in experiment.stand_in_presets  # tuned on the stand-in, not on recordings
    chosen = experiment.stand_in_presets[preset] if own else experiment.presets[preset]
    tuned = experiment.stand_in_tuned if own else experiment.tuned
    names = list(changes.methods or chosen.methods)
    for name in names:
        require(names.count(name) == 1, f"--method names {name} twice: name every learner once.")
    seeds = chosen.seeds if changes.seeds is None else changes.seeds
    require_repetitions(seeds)
    settings = _settings_by_method(changes.settings, names)
    methods: list[MethodConfig] = []
    for name in names:
        table = {**_inherited(tuned, name), **_inherited(chosen.tuned, name), **changes.tuned.get(name, {})}
        said = {**_prefixed("network", changes.network), **_prefixed("training", changes.training), **settings[name]}
        methods += variants(name, chosen, {**table, **said})
    data = _data(experiment, chosen, changes)
    if changes.simulated:
        data = _stand_in(experiment, chosen, data, changes.data.get("options", {}))
    return RunConfig(
        experiment=experiment.name,
        preset=preset,
        methods=tuple(methods),
        seeds=tuple(range(seeds)),
        data=data,
        judging=_options(JudgingOptions, {**chosen.judging, **changes.judging}, "judging"),
        simulated=changes.simulated,
        **changes.run,
    )


def _data(experiment: Experiment, preset: Preset, changes: Changes) -> DataOptions:
    """The preset's options of a loader hold for its own data set only; what the user says wins one by one."""
    named = {"name": experiment.dataset, **preset.data, **changes.data}
    own = named["name"] == preset.data.get("name", experiment.dataset)
    named["options"] = {**(preset.data.get("options", {}) if own else {}), **changes.data.get("options", {})}
    options: DataOptions = _options(DataOptions, named, "data")
    return options


def _stand_in(experiment: Experiment, preset: Preset, data: DataOptions, said: Mapping[str, Any]) -> DataOptions:
    if experiment.stand_in is None:
        raise UserError(f"{experiment.name} has no simulated stand-in: its data are real; leave out --simulated.")
    require(data.name == experiment.dataset, "--simulated and --dataset name two data sets: leave out one of them.")
    return replace(data, name=experiment.stand_in, options={**preset.simulated, **said})


def variants(name: str, preset: Preset, values: Mapping[str, Any]) -> list[MethodConfig]:
    """The learners of one method: several where a hyper-parameter is given as a list of values."""
    for key, value in values.items():
        if isinstance(value, list | tuple) and not key.startswith(("network.", "training.")):
            found = []
            for each in value:
                if not isinstance(each, int | float) or isinstance(each, bool):
                    raise UserError(f"{name}.{key} must be a number, or a list of numbers, but has {each!r}.")
                one = variants(name, preset, {**values, key: each})  # refuses a number that none can be
                label = f"{short_name(name)} {'ρ' if key == 'temperature' else key}={each:g}"
                if len(one) > 1:
                    raise UserError(f"only one hyper-parameter of {name!r} can be a list of values.")
                found.append(replace(one[0], label=label))
            return found
    parts: dict[str, dict[str, Any]] = {"rule": {}, "network": {}, "training": {}}
    for key, value in values.items():
        group, _, rest = key.rpartition(".")
        if group not in ("", "network", "training"):
            raise UserError(f"there is no option {key!r}: say lr, network.slope or training.epochs, for example.")
        parts[group or "rule"][rest] = value
    rule = build_rule(name, parts["rule"])
    training = {**preset.training, **method(name).suits, **parts["training"], **method(name).training}
    return [
        MethodConfig(
            label=short_name(name),
            method=name,
            rule=describe_rule(rule),
            network=_options(NetworkOptions, {**preset.network, **parts["network"]}, "network"),
            training=_options(TrainingOptions, training, "training"),
        )
    ]


def _inherited(table: Table, name: str) -> dict[str, Any]:
    """The entries of a method, over those of the method it is like (as far as its rule knows them)."""
    like = method(name).like
    entries: dict[str, Any] = {}
    if like is not None:
        known = rule_options(method(name).rule)
        entries = {key: value for key, value in _inherited(table, like).items() if "." in key or key in known}
    return {**entries, **table.get(name, {})}


def _settings_by_method(settings: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`--set` for each method; a name without a method is for all that know it."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    full = {short_name(name): name for name in names}
    keys = [parse_setting(text)[0] for text in settings]
    for text in settings:
        key, value = parse_setting(text)
        require(keys.count(key) == 1, f"--set gives {key} twice: give it once.")
        first, _, rest = key.partition(".")
        first = full.get(first, first)
        if first in METHODS or first in found:
            if first not in found:
                raise UserError(f"--set {text}: the method {first!r} is not part of this run ({', '.join(names)}).")
            found[first][rest] = value
            continue
        knowing = [name for name in names if "." in key or key in rule_options(method(name).rule)]
        if not knowing:
            known = sorted({option for name in names for option in rule_options(method(name).rule)})
            raise UserError(
                f"--set {text}: no method of this run has {key!r}; they have {', '.join(known)}.{hint(key, known)}"
            )
        for name in knowing:
            found[name][key] = value
    return found


def _prefixed(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{group}.{key}": value for key, value in values.items()}


def _options(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    names = [each.name for each in dataclasses.fields(kind)]
    for key in values:
        if key not in names:
            raise UserError(f"there is no option {where}.{key}: there are {', '.join(names)}.{hint(key, names)}")
    return kind(**{key: coerce(value, hints[key], f"{where}.{key}") for key, value in values.items()})
