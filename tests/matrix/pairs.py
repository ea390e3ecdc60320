"""Pairwise coverage: few combinations that hold every pair of values of any two parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

Pair = frozenset[tuple[str, str]]


def pairwise(parameters: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Combinations of one value per parameter, in which each pair of values occurs.

    Greedy: each combination starts from a pair that is missing and takes for every other
    parameter the value that brings most of the missing pairs. The result is always the same.

    >>> found = pairwise({"a": "12", "b": "12", "c": "12"})
    >>> len(found), len(found) < 2**3
    (4, True)
    """
    missing = dict.fromkeys(_all_pairs(parameters))
    found = []
    while missing:
        chosen = dict(sorted(next(iter(missing))))
        for name, values in parameters.items():
            if name not in chosen:
                chosen[name] = max(values, key=lambda value: _gain(chosen, name, value, missing))
        for pair in _pairs(chosen):
            missing.pop(pair, None)
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
