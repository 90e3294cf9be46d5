"""Tables of what a kept byte is worth (studies/memory_split_mnist.py): every size, controls, paired differences."""

from collections.abc import Mapping, Sequence
from typing import Any

from cells import CONTROLS, difference, of_seeds, without_empty_columns

from bayspike.rules import carry
from bayspike.runs.outcome.paired import compare

FOREIGN = ("auroc_discord", "auroc_mutual_information", "auroc_entropy")
NOTES = {"default": "as it comes", "neighbour": "beside the chosen one"}


def setting(rule: Mapping[str, Any]) -> str:
    """What was chosen of a rule, in a word."""
    if "strength" in rule:
        return f"strength {rule['strength']:g}"
    if rule["kind"] == "SGD":
        return f"rate {rule['lr']:g}"
    if "carry" in rule:
        return f"κ {rule['carry']:g}"
    law = [carry.MOST_CARRY, carry.LARGE_TASK, carry.ENOUGH, carry.ENOUGH_SHARE]
    return "κ by default" if rule.get("carry_law", law) == law else "κ by an earlier default"


def memory(lines: Sequence[dict[str, Any]]) -> str:
    """Every learner at every memory size: a row for each setting that was judged, seeds together."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines:
        note = NOTES.get(line.get("also", ""), "chosen")
        groups.setdefault((line["stored"], line["learner"], setting(line["rule"]), note), []).append(line)
    head = ["stored a class", "learner", "setting", "", "seeds", "kB kept", "accuracy %", "ECE", "NLL"]
    head += [f"foreign images by {how}" for how in ("discord", "mutual information", "entropy")]
    table = []
    for (stored, learner, chosen, note), each in sorted(groups.items(), key=lambda group: group[0][0]):
        own = [next(line["found"][name] for name in ("learnt", "point") if name in line["found"]) for line in each]
        kept = f"{sum(each[0]['bytes'].values()) / 1000:,.0f}"
        row = [str(stored), learner, chosen, note, str(len(each)), kept, of_seeds(own, "accuracy", 1, 100)]
        row += [of_seeds(own, "ece", 3), of_seeds(own, "nll", 3)]
        table.append(row + [of_seeds(own, name, 3) for name in FOREIGN])
    return without_empty_columns(head, table)


def memory_controls(lines: Sequence[dict[str, Any]]) -> str:
    """The learners with three seeds or more beside their controls."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines:
        if line.get("also") != "neighbour":
            groups.setdefault((line["stored"], line["learner"], setting(line["rule"])), []).append(line["found"])
    head = ["stored a class", "learner", "setting", "spread", "accuracy %", "ECE", "NLL"]
    head += [f"foreign images by {how}" for how in ("discord", "mutual information", "entropy")]
    table = []
    for (stored, learner, chosen), found in sorted(groups.items(), key=lambda group: group[0][0]):
        for name, shown in CONTROLS.items() if len(found) > 2 else ():
            each = [one[name] for one in found if name in one]
            if each:
                row = [str(stored), learner, chosen, shown, of_seeds(each, "accuracy", 1, 100)]
                row += [of_seeds(each, "ece", 3), of_seeds(each, "nll", 3)]
                table.append(row + [of_seeds(each, measure, 3) for measure in FOREIGN])
    return without_empty_columns(head, table)


def memory_paired(lines: Sequence[dict[str, Any]]) -> str:
    """The carried posterior as it comes minus every other learner, and minus its own controls, by seed; of three or
    more seeds."""
    measures = ("accuracy", "ece", "nll", *FOREIGN)
    head = ["stored a class", "as it comes minus", "seeds", "accuracy, points", "ECE", "NLL"]
    head += [f"foreign images by {how}" for how in ("discord", "mutual information", "entropy")]
    table = []
    for stored in sorted({line["stored"] for line in lines}):
        own: dict[int, Mapping[str, Any]] = {}
        rivals: dict[str, dict[int, Any]] = {}
        for line in (line for line in lines if line["stored"] == stored):
            if line["learner"] == "bayes" and "carry_law" in line["rule"]:
                own[line["seed"]] = line["found"]
            elif line["learner"] != "bayes":
                found = next(line["found"][name] for name in ("learnt", "point") if name in line["found"])
                rivals.setdefault(f"{line['learner']}, {setting(line['rule'])}", {})[line["seed"]] = found
        for name in ("constant", "permuted", "matched", "zero"):
            rivals[f"its own, {name}"] = {seed: found[name] for seed, found in own.items() if name in found}
        ours = {seed: found["learnt"] for seed, found in own.items()}
        for name, theirs in rivals.items():
            shared = sorted(ours.keys() & theirs.keys())
            if len(shared) > 2:
                cells = [difference(measure, by_measure(ours, theirs, shared, measure)) for measure in measures]
                table.append([str(stored), name, str(len(shared)), *cells])
    return without_empty_columns(head, table)


def by_measure(
    first: Mapping[int, Mapping[str, Any]], second: Mapping[int, Mapping[str, Any]], seeds: Sequence[int], measure: str
) -> dict[str, Any] | None:
    """The difference of two learners by one measure; None where either was not asked for it."""
    known = [seed for seed in seeds if None not in (first[seed].get(measure), second[seed].get(measure))]
    return compare({seed: first[seed][measure] for seed in known}, {seed: second[seed][measure] for seed in known})
