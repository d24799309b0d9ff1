"""docs/scale.md: what it says was measured is what was recorded, and its arithmetic is right."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "scale.md").read_text()
FACTORS = {"kB": 1e3, "MB": 1e6}


def recorded(path: str) -> float:
    """A figure of bench/results, "costs.folder.decision.cpu_ms_per_request"."""
    name, *keys = path.split(".")
    found: Any = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())
    for key in keys:
        found = found[key]
    return float(found)


def value(node: ast.expr) -> float:
    """What an expression of numbers, + - * / and brackets comes to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    assert isinstance(node, ast.BinOp), ast.dump(node)
    left, right = value(node.left), value(node.right)
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
    raise AssertionError(ast.dump(node))


def test_what_the_page_says_was_measured_was() -> None:
    rows = re.findall(r"^\| .* \| ([\d.,]+)(?: (kB|MB|\w+))? \| `([\w. -]+)` \|$", PAGE, re.M)
    assert len(rows) >= 15
    for said, unit, path in rows:
        number, found = float(said.replace(",", "")) * FACTORS.get(unit, 1.0), recorded(path)
        assert abs(number - found) <= max(0.02 * found, 0.5 if found > 10 else 0.006), (said, path, found)


def test_the_arithmetic_of_the_page_is_right() -> None:
    sums = re.findall(r"`([^`=]+) = ([\d.,]+)`", PAGE)
    assert len(sums) >= 20
    for left, right in sums:
        tree = ast.parse(left.replace(",", "").replace("×", "*").strip(), mode="eval")
        found = value(tree.body)
        assert abs(found - float(right.replace(",", ""))) <= 0.02 * abs(found), (left, right, found)


def test_what_it_takes_from_the_measurements_stands_in_the_table() -> None:
    """A number with a decimal point in a sum is one of the table, the result of another, or a share."""
    table = {float(each.replace(",", "")) for each in re.findall(r"\| ([\d.,]+)(?: \w+)? \| `", PAGE)}
    results = {float(right.replace(",", "")) for _, right in re.findall(r"`([^`=]+) = ([\d.,]+)`", PAGE)}
    for left, _ in re.findall(r"`([^`=]+) = ([\d.,]+)`", PAGE):
        for number in re.findall(r"\d+\.\d+", left.replace(",", "")):
            assert float(number) in table | results | {0.5, 0.6}, (left, number)
