"""Packaging of dbt-qbeast: the dbt adapter and the library that it is built on."""

import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).parent

# What the site and the checks of its prose need.
DOCS = [
    "mermaidx>=0.10",
    "mkdocs>=1.6,<2",
    "mkdocs-material>=9.7",
    "mkdocstrings[python]>=1",
    "proselint>=0.16",
    "pymdown-extensions>=12",
]


def version() -> str:
    """The one place that names the version is the adapter's ``__version__.py``, as dbt expects."""
    source = (HERE / "dbt/adapters/qbeast/__version__.py").read_text(encoding="utf-8")
    found = re.search(r'^version\s*=\s*"([^"]+)"', source, re.MULTILINE)
    if found is None:
        raise RuntimeError('dbt/adapters/qbeast/__version__.py has no line: version = "..."')
    return found.group(1)


setup(
    name="dbt-qbeast",
    version=version(),
    description="dbt models on Delta Lake that are indexed for range filters and for sampling",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="dbt-qbeast contributors",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    # Naming the root makes editable installs put it on sys.path, as namespace packages need.
    package_dir={"": "."},
    packages=find_namespace_packages(include=["dbt", "dbt.*", "qbeast_core", "qbeast_core.*"]),
    package_data={
        "dbt.adapters.qbeast": ["py.typed", "*/__init__.pyi"],
        "dbt.include.qbeast": ["*.yml", "macros/**/*.sql", "macros/**/*.yml"],
        "qbeast_core": ["py.typed", "__init__.pyi"],
        "qbeast_core.read": ["page/*"],
    },
    install_requires=[
        "dbt-core>=1.10,<2",
        "dbt-adapters>=1.24.1,<2",
        "dbt-common>=1.36,<2",
        "dbt-spark>=1.10,<1.12",
        "pyspark>=4.0.1,<4.3",
        # Nothing here imports it. It has Delta's Python API (`from delta import …`), and keeps its
        # version and Spark's together. 4.4.1 has no jars in Maven Central.
        "delta-spark>=4.4,<4.4.1",
        "agate>=1.7,<2",
        "filelock>=3.14",
        "lazy-loader>=0.4",
        "mmh3>=4",
        "numpy>=1.26",
        "pyarrow>=18",
        "tenacity>=8.2",
        "typing-extensions>=4.4",
    ],
    extras_require={
        "docs": DOCS,
        "dev": [
            *DOCS,
            "build>=1.2",
            "dbt-tests-adapter>=1.17,<2",
            "deltalake>=1.2",
            "duckdb>=1.5",
            "hypothesis>=6.100",
            "ipykernel>=6.29",
            "matplotlib>=3.9",
            "mypy>=1.15",
            "nbclient>=0.10",
            "playwright>=1.60",
            "pre-commit>=4",
            "pytest>=8",
            "pytest-testmon>=2.1",
            "pytest-xdist>=3.6",
            "rich>=13",
            "ruff>=0.9",
            "setuptools>=77",
            "sqlglot>=26",
            "tpchgen-cli>=4",
        ],
        "python-models": ["pandas>=2.2,<3"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database",
        "Typing :: Typed",
    ],
)
