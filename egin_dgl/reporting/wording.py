"""How the protocols are told: what each chose its epoch on."""

from collections.abc import Sequence

CHOSEN = {
    "selected": "per fold, on the validation part",
    "common_epoch": "on the test parts together (optimistic)",
    "best_per_fold": "on each test part (most optimistic)",
    "last": "in advance",
    "last_20": "in advance, mean of the last {averaged}",
}
CHOSEN_ON = {
    "selected": "validation",
    "common_epoch": "test: optimistic",
    "best_per_fold": "own test: optimistic",
    "last": "nothing",
    "last_20": "nothing, mean of {averaged}",
}


def span(values: Sequence[float]) -> str:
    """From the smallest to the largest of the values; nothing for none."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
