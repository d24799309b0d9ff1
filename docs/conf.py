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
        "Coming from": [
            "Azure Personalizer <docs/from/personalizer>",
            "Vowpal Wabbit <docs/from/vowpal-wabbit>",
            "Surprise, LightFM <docs/from/recommenders>",
            "LambdaRank <docs/from/lambdarank>",
            "arena-rank, evalica <docs/from/leaderboards>",
            "GrowthBook <docs/from/growthbook>",
        ],
        "How-to": [
            "Loops in Python <docs/loops>",
            "The command line <docs/commands>",
            "HTTP, by example <docs/http>",
            "The Python client <docs/client>",
            "Forms of feedback <docs/feedback>",
            "Features of your columns <docs/features>",
            "The pages <docs/pages>",
            "Clicks of your pages <docs/browsers>",
            "Click logs (UBI) <docs/ubi>",
            "OpenSearch, Elasticsearch <docs/opensearch>",
            "Studies <docs/compare>",
            "Arenas <docs/arena>",
            "Routing of prompts <docs/routing>",
            "Preference data <docs/preference-data>",
            "Langfuse <docs/langfuse>",
            "Agents <docs/agents>",
            "Is another learner better? <docs/proof>",
            "Is feedback sound? <docs/health>",
            "scikit-learn <docs/estimators>",
            "Run a server <docs/operations>",
            "Containers <docs/deploy>",
            "Engines <docs/engines>",
            "Notebook: search clicks <docs/notebooks/search>",
            "Notebook: a leaderboard <docs/notebooks/arena>",
            "Notebook: a paper's figure <docs/notebooks/figure>",
        ],
        "Explanation": [
            "Corrections <docs/coactive>",
            "Grades <docs/ordinal>",
            "Ratings <docs/ratings>",
            "Choices <docs/preferences>",
            "Choices of many people <docs/collaborative>",
            "Scale <docs/scale>",
            "What was measured <docs/measured>",
            "Benchmarks <docs/benchmarks>",
        ],
        "Reference": [
            "Commands <docs/reference/commands>",
            "Routes <docs/reference/http>",
            "Settings <docs/reference/settings>",
            "Python API <docs/reference/api>",
            "Learners <docs/learners>",
            "Data sets <docs/data>",
            "Compatibility <docs/compatibility>",
            "Glossary <docs/glossary>",
        ],
        "Papers": [
            "Gallery <docs/papers>",
            "Coactive Learning, 2012 <docs/coactive2012>",
            "Coactive Learning, 2015 <docs/jair2015>",
            "Pranking, 2001 <docs/pranking2001>",
            "Alternating Bandits, 2018 <docs/alternating2018>",
            "Collaborative GPs, 2012 <docs/nips2012>",
        ],
        "Development": [
            "CONTRIBUTING",
            "docs/architecture",
            "docs/decisions/README",
            "examples/README",
            "TypeScript client <clients/typescript/README>",
            "RELEASING",
            "SECURITY",
            "CODE_OF_CONDUCT",
            "CHANGELOG",
        ],
    },
    "docs/decisions/README": {"": ["[0-9]*"]},
}
"""the pages below a page, by the heading that they have in the menu; NAME <PAGE> where the title is too long for it"""

project = "heedful"
author = "The heedful developers"
release = heedful.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # `fill` makes one of the other
include_patterns = ["*.md", "docs/**.md", "docs/notebooks/*.ipynb", "examples/*.md", "clients/typescript/*.md"]
myst_heading_anchors = 4
highlight_language = "sh"  # what blocks without a language are: commands
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
    if Path(app.env.doc2path(page)).suffix == ".ipynb":
        source[0] = generated.notebook(source[0])
    source[0] = source[0].replace("```http\n", "```text\n")  # requests without HTTP/1.1 are errors to what colours them
    text = re.sub(r"^<!-- generated: (\w+) -->$", lambda match: getattr(generated, match[1])(), source[0], flags=re.M)
    for caption, below in NAV.get(page, {}).items():
        options = [":glob:", f":caption: {caption}" if caption else "", ":hidden:" if caption else ""]
        text += "\n".join(["\n```{toctree}", *filter(None, options), "", *below, "```\n"])
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


def reachable(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Add what keyboards and screen readers need: a focus on what scrolls, the level of the menu's headings."""
    for part in ("body", "furo_navigation_tree"):
        text = (context.get(part) or "").replace(' role="heading"', ' role="heading" aria-level="2"')
        scrolls = r'<pre(?=>)|<div(?= class="table-wrapper| style="[^"]*overflow)'
        context[part] = re.sub(scrolls, r'\g<0> tabindex="0"', text)


def front(app: Any, exception: Exception | None) -> None:
    """The README is what a folder of the site shows."""
    if exception is None:
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-skip-member", skip)
    app.connect("html-page-context", reachable, priority=900)  # after the theme
    app.connect("build-finished", front)
