"""Pairwise coverage: few combinations that have every pair of values of any two parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

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


def _all_pairs(parameters: Mapping[str, Sequence[str]]) -> Iterator[Pair]:
    for one, other in combinations(parameters, 2):
        for left, right in product(parameters[one], parameters[other]):
            yield frozenset(((one, left), (other, right)))


def _pairs(chosen: Mapping[str, str]) -> Iterator[Pair]:
    return (frozenset(pair) for pair in combinations(chosen.items(), 2))


def _gain(chosen: Mapping[str, str], name: str, value: str, missing: Mapping[Pair, None]) -> int:
    return sum(frozenset((item, (name, value))) in missing for item in chosen.items())
