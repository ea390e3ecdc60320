"""Which paths of a log are inside the table's directory."""

import pytest

from qbeast_core.locate.compatibility import is_inside

ROOT = "file:/data/t/"


@pytest.mark.parametrize(
    "path",
    [
        "part-0.parquet",
        "a/b/part-0.parquet",
        "a%20b/p..parquet",
        "T10%3A00.parquet",
        "file:/data/t/p.parquet",
    ],
)
def test_files_below_the_directory_are_inside(path: str) -> None:
    assert is_inside(path, ROOT)


@pytest.mark.parametrize(
    "path",
    [
        "../other/part-0.parquet",
        "a/../../other/p.parquet",
        "%2E%2E/other/p.parquet",
        "..%2Fother/p.parquet",
        "a%2f%2e%2e%2f%2e%2e%2fp.parquet",
        "/etc/passwd",
        "%2Fetc/passwd",
        "file:/data/t2/p.parquet",
        "file:/data/t/../t2/p.parquet",
        "file:/data/t/%2e%2e/t2/p.parquet",
        "s3a://bucket/t/p.parquet",
        "s3a:%2F%2Fbucket/p.parquet",
        "//host/p.parquet",
    ],
)
def test_files_elsewhere_are_not(path: str) -> None:
    assert not is_inside(path, ROOT)
