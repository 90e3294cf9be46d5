"""The forms that stored JSON must have before anyone looks into it: results, progress, lines of metrics.

A form is a type (`int`: whole and not negative), a list `[form]`, an object `{"name": form, …, str: form}` that has at
least these entries and others of the form of `str` (any, without it), or a tuple of forms of which one fits. An object
that may be null may be left out.
"""

from typing import Any

from bayspike.errors import UserError

LARGEST = 2**53  # whole numbers beyond are none that a run counts
NUMBER = (float, None)  # NaN is stored as null

SCORES = {"accuracy": NUMBER, "ece": NUMBER, "nll": NUMBER, "brier": NUMBER, "confidence": NUMBER, "examples": int}
EVALUATION = {"task": int, "batch": int, "predictor": str, "tasks": [(SCORES, None)], "overall": SCORES}
PROGRESS = {
    "task": int, "batch": int, "presentations": int, "replayed": int, "coresets": int, "evaluations": [EVALUATION],
}  # fmt: skip
MODEL = {
    "experiment": str, "network": dict, "method": str, "label": str, "rule": dict, "seed": int, "members": int,
    "data": dict, "name": str, "classes": [str], "sample_shape": [int], "inputs": int, "time": int,
}  # fmt: skip
DRAWN = {  # what figures need of a result
    "job": str, "method": str, "label": str, "seed": int, "predictors": [str], "headline_predictor": str,
    "task_names": [str], "classes": [str], "evaluations": [EVALUATION],
    "final": {str: {"overall": SCORES, "per_task": [SCORES]}}, "accuracy_matrix": {str: [[NUMBER]]},
    "ood": ({str: {"auroc": {"confidence": NUMBER, str: NUMBER}}}, None),
}  # fmt: skip
BY_SPREAD = {str: {"about": str, str: NUMBER}}
CONTROLLED = {"scores": BY_SPREAD, "gathered": ({"gather": str, "scores": BY_SPREAD}, None)}
PRUNED = {"examples": int, "rows": [{"pruned": float, "by": str, **SCORES}]}
ASKED = {"controls": (CONTROLLED, None), "pruning": (PRUNED, None)}
RESULT = {
    **DRAWN, "continual": {str: {str: NUMBER}},
    "presentations": int, "replayed": int, "coreset_examples": int, "memory_bytes": {"total": int},
    "bytes_per_synapse": float, "parameters": int, "seconds": float, "rates": [NUMBER], "energy": dict,
    "fixed_point": ({"weights": str, "accuracy": NUMBER, "ece": NUMBER, "nll": NUMBER, "brier": NUMBER}, None),
    "controls": (CONTROLLED, None), "gathered": ({"predictor": str}, None), "identity": ({}, None),
    "chip": ({"refused": str}, {"examples": int, str: NUMBER}),
}  # fmt: skip


def check_shape(value: Any, form: Any, where: str) -> None:
    """Refuse a value that has not this form, and name the first place that is otherwise."""
    fault = _fault(value, form, "")
    if fault is not None:
        place, expected = fault
        raise UserError(f"{where}{place} must be {expected}, but is {_shown(value, place)}: the file is damaged.")


def fits(value: Any, form: Any) -> bool:
    return _fault(value, form, "") is None


def _fault(value: Any, form: Any, place: str) -> tuple[str, str] | None:
    if isinstance(form, tuple):
        faults = [_fault(value, each, place) for each in form]
        return None if None in faults else faults[0]
    if isinstance(form, list):
        if not isinstance(value, list):
            return place, "a list"
        return next((f for i, each in enumerate(value) if (f := _fault(each, form[0], f"{place}[{i}]"))), None)
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return place, "an object with named entries"
        pairs = [(key, each) for key, each in form.items() if key is not str]
        pairs += [(key, form[str]) for key in value if str in form and key not in form]
        missing = next((key for key, each in pairs if key not in value and not _optional(each)), None)
        if missing is not None:
            return f"{place}.{missing}", "there"
        return next((f for key, each in pairs if (f := _fault(value.get(key), each, f"{place}.{key}"))), None)
    return None if _is(value, form) else (place, NAMES[form])


def _optional(form: Any) -> bool:
    """Objects that may be null may be left out."""
    return isinstance(form, tuple) and isinstance(form[0], dict) and None in form


def _is(value: Any, form: Any) -> bool:
    if form is None:
        return value is None
    if form is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST
    if form is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return isinstance(value, form)


NAMES = {
    None: "null", int: "a whole number of at least 0", float: "a number", str: "a word",
    dict: "an object with named entries",
}  # fmt: skip


def _shown(value: Any, place: str) -> str:
    """The value at a place, shortened; its name where it is missing."""
    for step in place.replace("[", ".").replace("]", "").split(".")[1:]:
        if isinstance(value, list) and step.isdigit():
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return "missing"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "…"
