"""The data: TPC-H from tpchgen-cli, and generated taxi trips with realistic skew.

Both are Parquet files in `benchmarks/data/`, generated on first use and always the same.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
TRIPS = 3_000_000
"""The number of trips at scale 1."""
SEED = 20_260_101
_CHUNK = 500_000
_DAYS = 365
_START = np.datetime64("2025-01-01T00:00:00", "us")
_INSTANT = pa.timestamp("us", tz="UTC")
_PLACES = (
    # share, longitude, latitude, spread in degrees: a centre, a station, two airports, suburbs
    (0.55, -73.98, 40.75, 0.02),
    (0.15, -73.99, 40.73, 0.004),
    (0.10, -73.78, 40.64, 0.002),
    (0.05, -73.87, 40.77, 0.002),
    (0.15, -73.93, 40.72, 0.12),
)


def tpch(table: str, scale: float) -> str:
    """The Parquet file of a TPC-H table."""
    directory = DATA / f"tpch-{scale:g}"
    file = directory / f"{table}.parquet"
    if not file.exists():
        generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        subprocess.run(
            [
                *(generator, "parquet"),
                *("--scale-factor", str(scale)),
                *("--tables", table),
                *("--output-dir", directory),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return str(file)


def trips(scale: float) -> str:
    """The Parquet file of the taxi trips."""
    file = DATA / f"trips-{scale:g}.parquet"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        chunks = trip_chunks(int(TRIPS * scale))
        first = next(chunks)
        with pq.ParquetWriter(unfinished, first.schema) as writer:
            writer.write_table(first)
            for chunk in chunks:
                writer.write_table(chunk)
        unfinished.rename(file)
    return str(file)


def trip_chunks(rows: int) -> Iterator[pa.Table]:
    """The trips, in tables of at most 500,000 rows."""
    for first in range(0, rows, _CHUNK):
        yield _trips(first, min(_CHUNK, rows - first))


def known_values(path: str, columns: tuple[str, ...]) -> dict[str, NDArray[np.generic]]:
    """The sorted non-null values of columns, from about a million rows of a file."""
    file = pq.ParquetFile(path)
    groups = file.num_row_groups
    wanted = max(1, min(groups, round(groups * 1_000_000 / max(1, file.metadata.num_rows))))
    chosen = sorted({int(i) for i in np.linspace(0, groups - 1, wanted)})
    table = file.read_row_groups(chosen, columns=list(columns))
    return {
        name: np.sort(table[name].drop_null().to_numpy(zero_copy_only=False)) for name in columns
    }


def _trips(first: int, rows: int) -> pa.Table:
    """Trips with clusters in space, busy days, long tails, a few absurd values, and nulls."""
    random = np.random.default_rng([SEED, first])
    shares = np.array([place[0] for place in _PLACES])
    place = random.choice(len(_PLACES), rows, p=shares / shares.sum())
    _, longitudes, latitudes, spreads = np.array(_PLACES).T
    longitude = random.normal(longitudes[place], spreads[place])
    latitude = random.normal(latitudes[place], spreads[place])
    lost = random.random(rows) < 0.002
    longitude[lost], latitude[lost] = 0.0, 0.0
    wild = random.random(rows) < 0.0001
    longitude[wild] = random.uniform(-180, 180, wild.sum())
    picked_up = _moments(random, rows)
    kilometres = random.lognormal(0.9, 0.9, rows)
    seconds = np.maximum(60.0, kilometres * random.normal(170, 40, rows))
    taken = (seconds * 1e6).astype("timedelta64[us]")
    fare = np.round(3 + 2.2 * kilometres + seconds / 120, 2)
    fare[random.random(rows) < 0.00005] = 99_999.99
    payment = random.choice(["card", "cash", "app", "voucher"], rows, p=[0.6, 0.25, 0.14, 0.01])
    tip = np.round(fare * random.beta(2, 9, rows), 2)
    zones = np.minimum(random.zipf(1.3, rows), 265)
    return pa.table(
        {
            "trip_id": pa.array(np.arange(first, first + rows)),
            "picked_up_at": pa.array(picked_up, _INSTANT),
            "dropped_off_at": pa.array(picked_up + taken, _INSTANT),
            "longitude": pa.array(longitude, mask=random.random(rows) < 0.01),
            "latitude": pa.array(latitude),
            "zone": pa.array(zones.astype(np.int32)),
            "passengers": pa.array(
                random.integers(1, 6, rows).astype(np.int32), mask=random.random(rows) < 0.03
            ),
            "kilometres": pa.array(np.round(kilometres, 2)),
            "fare": pa.array(fare),
            "tip": pa.array(tip, mask=payment == "cash"),
            "payment": pa.array(payment),
            "vendor": pa.array(random.choice(["north", "south"], rows)),
        }
    )


def _moments(random: np.random.Generator, rows: int) -> NDArray[np.datetime64]:
    """Times of pick-up: some days are busier than others, and so are evenings."""
    busy = np.random.default_rng(SEED).permutation(np.linspace(0.3, 1.7, _DAYS))
    day = random.choice(_DAYS, rows, p=busy / busy.sum())
    evening = random.random(rows) < 0.4
    hour = np.where(evening, random.normal(19, 1.5, rows), random.uniform(0, 24, rows)) % 24
    moments: NDArray[np.datetime64] = _START + ((day * 24 + hour) * 3.6e9).astype("timedelta64[us]")
    return moments
