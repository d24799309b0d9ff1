"""Run the notebooks of `docs/notebooks`, and write what comes out into them: `python docs/run_notebooks.py`.

Cells run one after the other in the folder of the notebook, as in Jupyter. What is printed is kept, and the last value
of a cell, as HTML where it has any. So no package of Jupyter is needed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"


def run(path: Path) -> list[list[dict[str, Any]]]:
    """Return the outputs of each code cell of a notebook, as notebooks keep them."""
    space: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(path.parent):
        return [_run("".join(each["source"]), space) for each in _code(json.loads(path.read_text()))]


def _code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _run(source: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)}
        )
    if value is not None:
        data = {"text/html": [value._repr_html_()]} if hasattr(value, "_repr_html_") else {"text/plain": [repr(value)]}
        outputs.append({"output_type": "execute_result", "metadata": {}, "execution_count": None, "data": data})
    return outputs


def write(path: Path) -> None:
    """Run a notebook, and keep its outputs in it."""
    notebook = json.loads(path.read_text())
    for cell, outputs in zip(_code(notebook), run(path)):
        cell["outputs"] = outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    for each in sorted(FOLDER.glob("*.ipynb")):
        print(each.name)
        write(each)
