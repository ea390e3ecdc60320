"""Run examples/notebook/sampling.ipynb, and store its outputs and the picture of docs/notebook.md.

python -m scripts.notebook
"""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples/notebook/sampling.ipynb"
PICTURE = ROOT / "docs/images/notebook.png"
SHOWN = "items shipped per quarter"
"""What the cell with the picture of the page draws."""


def executed(notebook: Path = NOTEBOOK) -> NotebookNode:
    """The notebook with the outputs of a run of now; an error in a cell is raised."""
    found = nbformat.read(notebook, as_version=4)
    client = NotebookClient(found, timeout=600, resources={"metadata": {"path": notebook.parent}})
    client.execute()
    for cell in found.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if not _is_log(each)]
    return found


def texts(notebook: NotebookNode) -> list[str]:
    """What each code cell prints."""
    return [
        "".join(each.text for each in cell.outputs if each.output_type == "stream")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def picture(notebook: NotebookNode) -> bytes:
    """The PNG that the page shows."""
    (cell,) = [cell for cell in notebook.cells if SHOWN in cell.source and cell.get("outputs")]
    (plot,) = [each.data["image/png"] for each in cell.outputs if "data" in each]
    return base64.b64decode(plot)


def _is_log(output: NotebookNode) -> bool:
    """Whether it is what Spark and its package manager write when they start."""
    return output.output_type == "stream" and output.name == "stderr"


if __name__ == "__main__":
    notebook = executed()
    nbformat.write(notebook, NOTEBOOK)
    PICTURE.write_bytes(picture(notebook))
