"""The links of the site to files that docs/ doesn't hold."""

from pathlib import PurePosixPath

import pytest

from scripts.site_pages import linked_paths, path_of, uri_of, with_links_of_the_site


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("docs/sampling.md", "sampling.md"),
        ("docs/adr", "adr/README.md"),
        ("docs/flow", "repository/docs/flow/index.md"),
        ("README.md", "repository/README.md"),
        ("LICENSE", "repository/LICENSE.md"),
        ("examples/tpch", "repository/examples/tpch/README.md"),
        ("examples/tpch/profiles.yml", "repository/examples/tpch/profiles.yml.md"),
        ("examples/tpch/models", "repository/examples/tpch/models/index.md"),
        ("benchmarks/results", "repository/benchmarks/results/index.md"),
    ],
)
def test_each_file_has_its_place(path: str, uri: str) -> None:
    assert uri_of(PurePosixPath(path)) == uri


@pytest.mark.parametrize("uri", ["sampling.md", "flow/view.md", "repository/README.md"])
def test_a_place_leads_back_to_its_file(uri: str) -> None:
    assert uri_of(path_of(uri)) == uri


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("sampling.md", "[here](optimize.md#by-hand)", "[here](optimize.md#by-hand)"),
        ("sampling.md", "[start](../README.md#install)", "[start](repository/README.md#install)"),
        ("flow/view.md", "[it](../../LICENSE)", "[it](../repository/LICENSE.md)"),
        ("flow/view.md", "[all](../adr)", "[all](../adr/README.md)"),
        ("index.md", '<a href="../README.md">', '<a href="repository/index.html">'),
        ("index.md", '<a href="../LICENSE">', '<a href="repository/LICENSE.html">'),
        ("index.md", "[by][it]\n\n[it]: ../LICENSE", "[by][it]\n\n[it]: repository/LICENSE.md"),
        ("index.md", "`[code](../LICENSE)`", "`[code](../LICENSE)`"),
        ("index.md", "```\n[code](../LICENSE)\n```", "```\n[code](../LICENSE)\n```"),
        ("index.md", "[gone](../gone.md)", "[gone](../gone.md)"),
        ("index.md", "[web](https://example.org/a.md)", "[web](https://example.org/a.md)"),
        ("repository/README.md", "[docs](docs/sampling.md)", "[docs](../sampling.md)"),
        ("repository/README.md", "![cost](docs/assets/site.css)", "![cost](../assets/site.css)"),
        ("repository/README.md", "[more](CONTRIBUTING.md)", "[more](CONTRIBUTING.md)"),
    ],
)
def test_links_are_those_of_the_site(page: str, text: str, expected: str) -> None:
    assert with_links_of_the_site(text, page) == expected


def test_links_out_of_the_repository_are_left_alone() -> None:
    assert linked_paths("[up](../../etc) [root](/etc) [ok](../LICENSE)", PurePosixPath("docs")) == [
        PurePosixPath("LICENSE")
    ]
