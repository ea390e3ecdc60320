"""Pairwise coverage: few combinations that have every pair of values of any two parameters.

`pairwise` makes the combinations, and `shares` spreads further items over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import ceil

Pair = frozenset[tuple[str, str]]


def pairwise(parameters: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Combinations of one value per parameter, so that each pair of values occurs in one of them.

    Greedy: each combination starts from a missing pair and takes for every other parameter the
    value that adds the most missing pairs, or, of several such values, the one that occurred least
    so far. The result is always the same.

    >>> found = pairwise({"a": "12", "b": "12", "c": "12"})
    >>> len(found), len(found) < 2**3
    (4, True)
    """
    missing = dict.fromkeys(_all_pairs(parameters))
    used: Counter[tuple[str, str]] = Counter()
    found = []
    while missing:
        chosen = dict(sorted(next(iter(missing))))
        for name, values in parameters.items():
            if name not in chosen:
                gains = [(_gain(chosen, name, value, missing), value) for value in values]
                most = max(gain for gain, _ in gains)
                best = [value for gain, value in gains if gain == most]
                chosen[name] = min(best, key=lambda value: used[name, value])
        for pair in _pairs(chosen):
            missing.pop(pair, None)
        used.update(chosen.items())
        found.append({name: chosen[name] for name in parameters})
    return found


def shares(
    found: Sequence[Mapping[str, str]], items: Sequence[str], needed: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """A share of the items for each combination, so that each value meets each item somewhere.

    A combination takes its part of what the rarest of its values still lacks, first the items that
    most of its values lack. The result is always the same.

    Args:
        found: the combinations, as `pairwise` makes them.
        items: what is shared out. Each share has them in this order.
        needed: items that all combinations take.

    >>> shares([{"a": "1"}, {"a": "1"}, {"a": "2"}], "xyz", needed="z")
    [('x', 'z'), ('y', 'z'), ('x', 'y', 'z')]
    """
    left = Counter(value for combination in found for value in combination.items())
    missing = {value: [item for item in items if item not in needed] for value in left}
    chosen = []
    for combination in found:
        values = list(combination.items())
        share = {item for value in values if left[value] == 1 for item in missing[value]}
        count = max(ceil(len(missing[value]) / left[value]) for value in values)
        gains = {
            item: sum(1 / left[value] for value in values if item in missing[value])
            for item in items
            if item not in share
        }
        best = sorted(gains, key=lambda item: -gains[item])
        share.update(best[: max(0, count - len(share))])
        for value in values:
            left[value] -= 1
            missing[value] = [item for item in missing[value] if item not in share]
        chosen.append(tuple(item for item in items if item in share or item in needed))
    return chosen


def _all_pairs(parameters: Mapping[str, Sequence[str]]) -> Iterator[Pair]:
    for one, other in combinations(parameters, 2):
        for left, right in product(parameters[one], parameters[other]):
            yield frozenset(((one, left), (other, right)))


def _pairs(chosen: Mapping[str, str]) -> Iterator[Pair]:
    return (frozenset(pair) for pair in combinations(chosen.items(), 2))


def _gain(chosen: Mapping[str, str], name: str, value: str, missing: Mapping[Pair, None]) -> int:
    return sum(frozenset((item, (name, value))) in missing for item in chosen.items())
