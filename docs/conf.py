"""The site: `make docs` builds it from the pages of the repository, which stay readable without it.

The README is its first page. `NAV` says which pages there are and in which order; what has the form `<!-- generated:
NAME -->` in a page is written by the function NAME of `docs/generated.py`.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

import generated  # noqa: E402

import heedful  # noqa: E402

NAV: dict[str, dict[str, list[str]]] = {
    "README": {
        "Start": [
            "docs/start/search",
            "docs/start/recommender",
            "docs/start/language-models",
            "docs/start/studies",
            "docs/start/research",
        ],
        "How-to": [
            "docs/loops",
            "docs/commands",
            "docs/http",
            "docs/client",
            "docs/feedback",
            "docs/features",
            "docs/pages",
            "docs/browsers",
            "docs/ubi",
            "docs/opensearch",
            "docs/compare",
            "docs/arena",
            "docs/routing",
            "docs/preference-data",
            "docs/langfuse",
            "docs/agents",
            "docs/proof",
            "docs/health",
            "docs/estimators",
            "docs/operations",
            "docs/deploy",
            "docs/engines",
        ],
        "Coming from": [
            "docs/from/personalizer",
            "docs/from/vowpal-wabbit",
            "docs/from/recommenders",
            "docs/from/lambdarank",
            "docs/from/leaderboards",
            "docs/from/growthbook",
        ],
        "Explanation": [
            "docs/coactive",
            "docs/ordinal",
            "docs/ratings",
            "docs/preferences",
            "docs/collaborative",
            "docs/scale",
            "docs/measured",
            "docs/benchmarks",
        ],
        "Reference": [
            "docs/reference/commands",
            "docs/reference/http",
            "docs/reference/settings",
            "docs/reference/api",
            "docs/learners",
            "docs/data",
            "docs/compatibility",
            "docs/glossary",
        ],
        "Papers": [
            "docs/papers",
            "docs/coactive2012",
            "docs/jair2015",
            "docs/pranking2001",
            "docs/alternating2018",
            "docs/nips2012",
        ],
        "Development": [
            "CONTRIBUTING",
            "docs/architecture",
            "docs/decisions/README",
            "examples/README",
            "clients/typescript/README",
            "RELEASING",
            "SECURITY",
            "CODE_OF_CONDUCT",
            "CHANGELOG",
        ],
    },
    "docs/decisions/README": {"": ["docs/decisions/[0-9]*"]},
}
"""the pages below a page, by the heading that they have in the menu"""

project = "heedful"
author = "The heedful developers"
release = heedful.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/*.md", "clients/typescript/*.md"]
myst_heading_anchors = 4
default_role = "literal"  # docstrings write `code` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them in its source; written out they are longer than what they say
suppress_warnings = ["misc.highlighting_failure"]  # requests on pages have … in them, and CSV has no lexer
html_theme = "furo"
html_title = "heedful"
html_copy_source = False
html_show_sphinx = False
html_favicon = "../src/heedful/server/static/icon.svg"


def fill(app: Any, page: str, source: list[str]) -> None:
    """Write what is generated into a page, and the menu below it."""
    text = re.sub(r"^<!-- generated: (\w+) -->$", lambda match: getattr(generated, match[1])(), source[0], flags=re.M)
    for caption, below in NAV.get(page, {}).items():
        options = [":glob:", f":caption: {caption}" if caption else "", ":hidden:" if caption else ""]
        text += "\n".join(["\n```{toctree}", *filter(None, options), "", *(f"/{each}" for each in below), "```\n"])
    source[0] = text


def plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep |x| and x* in docstrings from being markup, outside of `code` and examples."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = line.split("`")
            parts[::2] = [re.sub(r"([|*_\\])", r"\\\1", part) for part in parts[::2]]
            lines[i] = "`".join(parts)


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what classes have from other packages, such as the routing of scikit-learn."""
    return True if not (getattr(obj, "__module__", None) or "heedful").startswith("heedful") else None


def front(app: Any, exception: Exception | None) -> None:
    """The README is what a folder of the site shows."""
    if exception is None:
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-skip-member", skip)
    app.connect("build-finished", front)
