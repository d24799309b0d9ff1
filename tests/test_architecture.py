"""Imports run one way, and what is heavy is imported where it is used. Read off the syntax trees."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful

SRC = Path(heedful.__file__).parent
FILES = {".".join(("heedful", *p.relative_to(SRC).with_suffix("").parts)): p for p in SRC.rglob("*.py")}

# What each part may import of ours, by prefix. A part not named here fails.
MAY: dict[str, tuple[str, ...]] = {
    "heedful": (
        "heedful.features",
        "heedful.fold",
        "heedful.learners",
        "heedful.loop",
        "heedful.preferences.ranking",
        "heedful.spaces",
    ),
    "heedful.decoding": (),
    "heedful.notebooks": (),
    "heedful.kernel": (),
    "heedful.blas": ("heedful.kernel",),
    "heedful.doors": ("heedful.kernel",),
    "heedful.fold": ("heedful.kernel", "heedful.doors", "heedful.compile"),
    "heedful.compile": ("heedful.kernel", "heedful.lowering", "heedful.fold", "heedful.__version__"),
    "heedful.lowering": ("heedful.kernel",),
    "heedful.spaces": ("heedful.kernel", "heedful.doors"),
    "heedful.spaces_structured": ("heedful.kernel", "heedful.doors"),
    "heedful.spaces_graded": ("heedful.kernel", "heedful.doors"),
    "heedful.spaces_offers": ("heedful.kernel", "heedful.doors"),
    "heedful.spaces_pairs": ("heedful.kernel", "heedful.doors"),
    "heedful.preferences": ("heedful.kernel", "heedful.doors", "heedful.preferences"),
    "heedful.preferences.table": ("heedful.kernel", "heedful.data.orders", "heedful.preferences.answers"),
    "heedful.preferences.remarks": ("heedful.data.orders", "heedful.preferences"),
    "heedful.preferences.ranking": (
        "heedful.data",
        "heedful.doors",
        "heedful.features",
        "heedful.notebooks",
        "heedful.preferences",
    ),
    "heedful.pairs": ("heedful.kernel",),
    "heedful.ridge": ("heedful.kernel", "heedful.pairs"),
    "heedful.gaussians": ("heedful.kernel", "heedful.pairs", "heedful.ridge"),
    "heedful.actions": ("heedful.doors", "heedful.spaces_offers"),
    "heedful.rating_models": (
        "heedful.kernel",
        "heedful.gaussians",
        "heedful.pairs",
        "heedful.ridge",
        "heedful.spaces_offers",
    ),
    "heedful.switching": ("heedful.kernel", "heedful.ridge"),
    "heedful.learners": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.blas",
        "heedful.spaces",
        "heedful.pairs",
        "heedful.ridge",
    ),
    "heedful.learners.bmf": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.gaussians",
        "heedful.rating_models",
        "heedful.spaces",
        "heedful.pairs",
        "heedful.ridge",
        "heedful.learners.simple_ratings",
    ),
    "heedful.learners.alb": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces",
        "heedful.pairs",
        "heedful.ridge",
        "heedful.switching",
    ),
    "heedful.learners.nmf_bandit": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces",
        "heedful.pairs",
        "heedful.ridge",
        "heedful.learners.simple_ratings",
    ),
    "heedful.learners.pts": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces",
        "heedful.pairs",
        "heedful.ridge",
        "heedful.learners.simple_ratings",
    ),
    "heedful.learners.choosing": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces_pairs",
        "heedful.preferences",
    ),
    "heedful.learners.preference_gp": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces_pairs",
        "heedful.preferences",
        "heedful.learners.choosing",
    ),
    "heedful.learners.collaborative_gp": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces_pairs",
        "heedful.preferences",
        "heedful.learners.choosing",
    ),
    "heedful.learners.fair_pairs": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces",
        "heedful.learners.pairwise_logistic",
    ),
    "heedful.learners.perturbed": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.spaces",
        "heedful.learners.fair_pairs",
    ),
    "heedful.worlds": ("heedful.kernel", "heedful.doors", "heedful.spaces", "heedful.worlds"),
    "heedful.data": ("heedful.data",),
    "heedful.features.texts": (),
    "heedful.features.columns": ("heedful.doors", "heedful.data.files", "heedful.features.texts"),
    "heedful.features.encoding": ("heedful.features.columns",),
    "heedful.features.declaring": ("heedful.doors", "heedful.features.columns", "heedful.features.encoding"),
    "heedful.features.inference": (
        "heedful.doors",
        "heedful.data",
        "heedful.features.texts",
        "heedful.features.columns",
        "heedful.features.encoding",
    ),
    "heedful.features": (
        "heedful.doors",
        "heedful.features.columns",
        "heedful.features.declaring",
        "heedful.features.encoding",
        "heedful.features.inference",
    ),
    "heedful.snapshot": ("heedful.fold",),
    "heedful.checks": ("heedful.kernel", "heedful.fold", "heedful.snapshot"),
    "heedful.estimators.folding": ("heedful.kernel", "heedful.fold", "heedful.compile", "heedful.worlds.instances"),
    "heedful.estimators.labels": ("heedful.kernel", "heedful.doors"),
    "heedful.estimators.graded": ("heedful.kernel", "heedful.doors", "heedful.fold", "heedful.estimators"),
    "heedful.estimators.ordinal": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.estimators",
        "heedful.learners.ordinal",
        "heedful.spaces_graded",
    ),
    "heedful.estimators.ranking": (
        "heedful.doors",
        "heedful.estimators.labels",
        "heedful.fold",
        "heedful.kernel",
        "heedful.naming",
        "heedful.spaces",
    ),
    "heedful.estimators.scoring": ("heedful.estimators.labels",),
    "heedful.estimators.preferences": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.estimators.labels",
        "heedful.preferences",
    ),
    "heedful.estimators": ("heedful.estimators",),
    "heedful.naming": (
        "heedful.learners",
        "heedful.worlds.users",
        "heedful.worlds.clicks",
        "heedful.spaces",
        "heedful.fold",
    ),
    "heedful.diagnostics": ("heedful.diagnostics", "heedful.kernel", "heedful.learners", "heedful.spaces"),
    "heedful.movies": (
        "heedful.data",
        "heedful.doors",
        "heedful.experiment",
        "heedful.spaces",
        "heedful.worlds",
    ),
    "heedful.experiment": (
        "heedful.kernel",
        "heedful.doors",
        "heedful.fold",
        "heedful.spaces",
        "heedful.naming",
        "heedful.worlds",
        "heedful.data",
    ),
    "heedful.grades": (
        "heedful.data",
        "heedful.experiment",
        "heedful.learners.ordinal",
        "heedful.spaces_graded",
        "heedful.worlds.instances",
    ),
    "heedful.ratings": (
        "heedful.data",
        "heedful.doors",
        "heedful.experiment",
        "heedful.naming",
        "heedful.spaces_offers",
        "heedful.worlds",
    ),
    "heedful.figures.figure": ("heedful.experiment", "heedful.notebooks"),
    "heedful.figures.statistics": ("heedful.experiment", "heedful.figures.figure"),
    "heedful.figures.claims": ("heedful.experiment", "heedful.figures.figure", "heedful.figures.statistics"),
    "heedful.figures.growth": (
        "heedful.experiment",
        "heedful.figures.claims",
        "heedful.figures.figure",
        "heedful.figures.statistics",
    ),
    "heedful.figures.comparisons": (
        "heedful.experiment",
        "heedful.figures.figure",
        "heedful.figures.statistics",
    ),
    "heedful.figures.ranked": ("heedful.kernel", "heedful.spaces", "heedful.worlds.ratings"),
    "heedful.figures.sweeps": ("heedful.figures.figure", "heedful.figures.statistics"),
    "heedful.figures.series": ("heedful.experiment", "heedful.figures.figure"),
    "heedful.figures.drawing": (
        "heedful.experiment",
        "heedful.figures.choice_drawing",
        "heedful.figures.figure",
        "heedful.figures.series",
    ),
    "heedful.figures.choice_drawing": ("heedful.experiment", "heedful.figures.figure"),
    "heedful.figures.choice_models": ("heedful.preferences",),
    "heedful.figures.choosing": (
        "heedful.data",
        "heedful.figures",
        "heedful.kernel",
        "heedful.preferences.answers",
        "heedful.preferences.questions",
    ),
    "heedful.figures.toy": ("heedful.figures.figure", "heedful.preferences"),
    "heedful.figures.page": ("heedful.data.frames", "heedful.figures.figure", "heedful.notebooks"),
    "heedful.figures.theory": (
        "heedful.diagnostics",
        "heedful.experiment",
        "heedful.figures.figure",
        "heedful.fold",
        "heedful.worlds.users",
    ),
    "heedful.figures": (
        "heedful.data",
        "heedful.diagnostics",
        "heedful.experiment",
        "heedful.figures",
        "heedful.fold",
        "heedful.movies",
        "heedful.naming",
        "heedful.spaces",
        "heedful.worlds",
    ),
    "heedful.loop.log": (),
    "heedful.loop.group": (),
    "heedful.loop.wire": ("heedful.data.frames", "heedful.doors", "heedful.notebooks"),
    "heedful.loop.packing": ("heedful.kernel", "heedful.loop.wire"),
    "heedful.loop.graders": ("heedful.naming", "heedful.spaces"),
    "heedful.loop.grading": (
        "heedful.fold",
        "heedful.kernel",
        "heedful.learners.ordinal",
        "heedful.loop.model",
        "heedful.loop.wire",
    ),
    "heedful.loop.raters": (
        "heedful.actions",
        "heedful.doors",
        "heedful.loop.graders",
        "heedful.loop.wire",
        "heedful.naming",
        "heedful.spaces_offers",
    ),
    "heedful.loop.rating": (
        "heedful.actions",
        "heedful.fold",
        "heedful.kernel",
        "heedful.loop.model",
        "heedful.loop.wire",
        "heedful.pairs",
        "heedful.spaces_offers",
    ),
    "heedful.loop.choosers": (
        "heedful.doors",
        "heedful.loop.graders",
        "heedful.naming",
        "heedful.preferences",
        "heedful.spaces_pairs",
    ),
    "heedful.loop.choosing": (
        "heedful.fold",
        "heedful.kernel",
        "heedful.loop.model",
        "heedful.loop.wire",
        "heedful.preferences",
        "heedful.spaces_pairs",
    ),
    "heedful.loop.standing": (
        "heedful.data.frames",
        "heedful.notebooks",
        "heedful.kernel",
        "heedful.loop.choosing",
        "heedful.loop.ledger",
        "heedful.loop.model",
        "heedful.preferences",
    ),
    "heedful.loop.movement": ("heedful.loop.interactions.protocol", "heedful.loop.ledger", "heedful.loop.wire"),
    "heedful.loop.ranking": ("heedful.loop.ledger", "heedful.loop.model", "heedful.loop.request"),
    "heedful.loop.explain": (
        "heedful.data.frames",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.wire",
        "heedful.notebooks",
    ),
    "heedful.loop.counterfactual": ("heedful.loop.ledger",),
    "heedful.loop.interactions.protocol": (
        "heedful.loop.interactions.card",
        "heedful.loop.interactions.forms",
        "heedful.fold",
        "heedful.kernel",
        "heedful.loop.counterfactual",
        "heedful.loop.explain",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.request",
        "heedful.loop.shelf",
        "heedful.loop.wire",
        "heedful.loop.report",
    ),
    "heedful.loop.interactions.forms": ("heedful.doors", "heedful.loop.wire"),
    "heedful.loop.interactions.card": ("heedful.loop.interactions.forms",),
    "heedful.loop.interactions": (
        "heedful.doors",
        "heedful.fold",
        "heedful.kernel",
        "heedful.learners.fair_pairs",
        "heedful.learners.simple_ratings",
        "heedful.loop.accuracy",
        "heedful.loop.choosers",
        "heedful.loop.choosing",
        "heedful.loop.counterfactual",
        "heedful.loop.explain",
        "heedful.loop.foretelling",
        "heedful.loop.graders",
        "heedful.loop.grading",
        "heedful.loop.guessing",
        "heedful.loop.interactions",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.raters",
        "heedful.loop.rating",
        "heedful.loop.report",
        "heedful.loop.request",
        "heedful.loop.settings",
        "heedful.loop.shelf",
        "heedful.loop.standing",
        "heedful.loop.strangers",
        "heedful.loop.wire",
        "heedful.naming",
        "heedful.pairs",
        "heedful.preferences",
        "heedful.snapshot",
        "heedful.spaces",
        "heedful.spaces_offers",
        "heedful.spaces_pairs",
    ),
    "heedful.loop.strangers": ("heedful.doors", "heedful.loop.wire"),
    "heedful.loop.approval": ("heedful.loop.comparison", "heedful.loop.log", "heedful.loop.wire"),
    "heedful.loop.guessing": (
        "heedful.loop.accuracy",
        "heedful.loop.comparison",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.packing",
        "heedful.loop.wire",
    ),
    "heedful.loop.versions": ("heedful.loop.old_versions",),
    "heedful.loop.old_versions": (),
    "heedful.loop.interaction": (
        "heedful.loop.choosers",
        "heedful.loop.graders",
        "heedful.loop.model",
        "heedful.loop.raters",
        "heedful.loop.interactions",
        "heedful.loop.versions",
    ),
    "heedful.loop.settings": (
        "heedful.doors",
        "heedful.features",
        "heedful.loop.choosers",
        "heedful.loop.graders",
        "heedful.loop.raters",
        "heedful.loop.wire",
        "heedful.naming",
        "heedful.spaces",
    ),
    "heedful.loop.shelf": ("heedful.loop.log",),
    "heedful.loop.model": ("heedful.fold", "heedful.kernel", "heedful.spaces", "heedful.loop.wire"),
    "heedful.loop.request": (
        "heedful.loop.strangers",
        "heedful.data.frames",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.settings",
        "heedful.loop.shelf",
        "heedful.loop.wire",
        "heedful.doors",
        "heedful.features",
        "heedful.kernel",
    ),
    "heedful.loop.keeping": (
        "heedful.fold",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.settings",
        "heedful.snapshot",
        "heedful.loop.versions",
        "heedful.loop.interactions.protocol",
    ),
    "heedful.loop.ledger": (
        "heedful.loop.movement",
        "heedful.loop.strangers",
        "heedful.fold",
        "heedful.kernel",
        "heedful.loop.group",
        "heedful.loop.interaction",
        "heedful.loop.keeping",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.request",
        "heedful.loop.settings",
        "heedful.loop.shelf",
        "heedful.loop.wire",
        "heedful.loop.versions",
        "heedful.loop.interactions",
    ),
    "heedful.loop.lessons": (
        "heedful.loop.interactions.forms",
        "heedful.kernel",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.wire",
        "heedful.loop.interactions.protocol",
    ),
    "heedful.loop.comparison": (),
    "heedful.loop.simulation": (
        "heedful.kernel",
        "heedful.loop.keeping",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.packing",
        "heedful.loop.wire",
        "heedful.spaces",
        "heedful.worlds",
        "heedful.loop.interactions.coactive",
    ),
    "heedful.loop.accuracy": (
        "heedful.kernel",
        "heedful.learners.ordinal",
        "heedful.loop.comparison",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.packing",
        "heedful.loop.wire",
    ),
    "heedful.loop.foretelling": (
        "heedful.loop.accuracy",
        "heedful.loop.comparison",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.packing",
        "heedful.loop.wire",
    ),
    "heedful.loop.report": (
        "heedful.loop.approval",
        "heedful.data.frames",
        "heedful.notebooks",
        "heedful.loop.accuracy",
        "heedful.loop.comparison",
        "heedful.loop.foretelling",
        "heedful.loop.guessing",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.simulation",
        "heedful.loop.wire",
    ),
    "heedful.loop.deciding": (
        "heedful.loop.strangers",
        "heedful.doors",
        "heedful.loop.interactions.protocol",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.packing",
        "heedful.loop.request",
        "heedful.loop.wire",
    ),
    "heedful.loop.answering": (
        "heedful.loop.interactions.forms",
        "heedful.loop.strangers",
        "heedful.doors",
        "heedful.loop.ledger",
        "heedful.loop.log",
        "heedful.loop.packing",
        "heedful.loop.wire",
    ),
    "heedful.loop": (
        "heedful.loop.movement",
        "heedful.loop.answering",
        "heedful.loop.choosers",
        "heedful.loop.choosing",
        "heedful.loop.interactions",
        "heedful.loop.standing",
        "heedful.loop.deciding",
        "heedful.loop.grading",
        "heedful.loop.interaction",
        "heedful.loop.loop",
        "heedful.loop.keeping",
        "heedful.loop.wire",
        "heedful.data.frames",
        "heedful.notebooks",
        "heedful.doors",
        "heedful.features.encoding",
        "heedful.kernel",
        "heedful.loop.explain",
        "heedful.loop.ledger",
        "heedful.loop.lessons",
        "heedful.loop.log",
        "heedful.loop.model",
        "heedful.loop.raters",
        "heedful.loop.ranking",
        "heedful.loop.rating",
        "heedful.loop.report",
        "heedful.loop.request",
        "heedful.loop.counterfactual",
        "heedful.loop.settings",
    ),
    "heedful.exchange.lineform": (
        "heedful.loop.wire",
        "heedful.doors",
        "heedful.loop.interactions.forms",
        "heedful.loop.log",
        "heedful.spaces_graded",
    ),
    "heedful.exchange.importing": (
        "heedful.loop.wire",
        "heedful.doors",
        "heedful.loop.ledger",
        "heedful.exchange.lineform",
        "heedful.loop.interactions.forms",
        "heedful.loop.log",
        "heedful.loop",
        "heedful.loop.request",
    ),
    "heedful.exchange.exporting": (
        "heedful.loop.wire",
        "heedful.loop.ledger",
        "heedful.exchange.lineform",
        "heedful.loop.interactions.forms",
        "heedful.loop.log",
        "heedful.loop",
    ),
    "heedful.exchange.rehearsal": (
        "heedful.loop.wire",
        "heedful.loop.ledger",
        "heedful.loop.interactions.forms",
        "heedful.loop.log",
        "heedful.loop",
    ),
    "heedful.exchange": (
        "heedful.data.lines",
        "heedful.exchange.exporting",
        "heedful.exchange.importing",
        "heedful.exchange.lineform",
        "heedful.loop",
        "heedful.exchange.rehearsal",
    ),
    "heedful.studies": (
        "heedful.data",
        "heedful.doors",
        "heedful.features",
        "heedful.loop",
        "heedful.preferences.remarks",
        "heedful.studies",
    ),
    "heedful.server.problems": (),
    "heedful.server.database": (),
    "heedful.server.keys": ("heedful.doors", "heedful.loop.wire", "heedful.server.database"),
    "heedful.server.gate": (
        "heedful.server.bucket",
        "heedful.doors",
        "heedful.server.database",
        "heedful.server.keys",
        "heedful.server.problems",
    ),
    "heedful.server.sessions": ("heedful.server.database",),
    "heedful.server.links": ("heedful.doors", "heedful.server.database"),
    "heedful.server.migrations": ("heedful.server.database",),
    "heedful.server.meters": (),
    "heedful.server.schema": (),
    "heedful.server.bodies": ("heedful.doors", "heedful.server.problems"),
    "heedful.server.desk": ("heedful.loop",),
    "heedful.server.loops": ("heedful.loop", "heedful.server.desk", "heedful.server.problems"),
    "heedful.server.service": (
        "heedful.loop.log",
        "heedful.server.bodies",
        "heedful.server.database",
        "heedful.server.gate",
        "heedful.server.keys",
        "heedful.server.links",
        "heedful.server.loops",
        "heedful.server.meters",
        "heedful.server.problems",
        "heedful.server.sessions",
    ),
    "heedful.server.founding": ("heedful.doors", "heedful.features", "heedful.loop", "heedful.server.problems"),
    "heedful.server": (
        "heedful.__version__",
        "heedful.data.choices",
        "heedful.data.preflib",
        "heedful.data.spreadsheet",
        "heedful.doors",
        "heedful.exchange.exporting",
        "heedful.features.columns",
        "heedful.features.encoding",
        "heedful.loop",
        "heedful.naming",
        "heedful.server",
        "heedful.spaces",
        "heedful.studies",
    ),
    "heedful.client": (
        "heedful.__version__",
        "heedful.client",
        "heedful.data.frames",
        "heedful.doors",
        "heedful.loop",
    ),
    "heedful.cli": ("heedful",),
}
# Imported at the top of a module only where named; elsewhere inside the function that needs it.
HEAVY = {
    "numba": {"heedful.compile", "heedful.lowering"},
    "llvmlite": set(),
    "scipy": set(),
    "matplotlib": set(),
    "vega_datasets": set(),
    "pyarrow": set(),
    "pandas": set(),
    "polars": set(),
    "sklearn": {
        f"heedful.estimators.{name}" for name in ("labels", "graded", "preferences", "ranking")
    },  # which the package imports when asked
}
HEAVY |= {"typer": {"heedful.cli"}, "rich": {"heedful.cli"}, "safetensors": set()}
HEAVY |= {"starlette": {"heedful.server"}, "uvicorn": {"heedful.server"}}
HEAVY |= {"sqlalchemy": {f"heedful.server.{name}" for name in ("database", "keys", "links", "sessions", "migrations")}}
HEAVY |= {
    "alembic": {"heedful.server.migrations"},
    "prometheus_client": set(),
    "uvloop": set(),
    "httpx": set(),
    "jinja2": set(),
    "PIL": set(),
    "segno": set(),
}


def part(module: str) -> str:
    """The longest prefix of a module's name that the table knows."""
    words = module.split(".")
    for n in range(len(words), 0, -1):
        if ".".join(words[:n]) in MAY and (n > 1 or len(words) == 1 or words[1:] == ["__init__"]):
            return ".".join(words[:n])
    return ""


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """(what is imported, whether at the top of the module)."""
    tree = ast.parse(FILES[module].read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if node.module == "heedful" or name in FILES else node.module or ""), id(node) in top


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_run_one_way(module: str) -> None:
    allowed = ("heedful.decoding", *MAY[part(module)])
    for name, _ in imports(module):
        if name.split(".")[0] == "heedful":
            assert name.startswith(allowed), f"{module} imports {name}; it may import {allowed}"


@pytest.mark.parametrize("module", sorted(FILES))
def test_what_is_heavy_is_imported_where_it_is_used(module: str) -> None:
    for name, at_top in imports(module):
        package = name.split(".")[0]
        if at_top and package in HEAVY:
            assert part(module) in HEAVY[package], f"{module} imports {name} at its top"


def test_who_names_the_network_only_log_the_database_and_nothing_unpickles() -> None:
    for module in FILES:
        for name, _ in imports(module):
            assert name.split(".")[0] not in {"pickle", "shelve", "marshal", "dill", "joblib"}, module
            if part(module) != "heedful.loop.log":
                assert name.split(".")[0] != "sqlite3", f"{module}: only log.py touches the database"
            if part(module) not in ("heedful.data", "heedful.server", "heedful.client"):
                assert name.split(".")[0] not in {"socket", "urllib", "http", "requests", "httpx"}, module


def test_importing_heedful_is_light() -> None:
    """Neither numba nor scipy, nor anything of the command line, comes with `import heedful` or a session."""
    program = (
        "import sys, heedful\n"
        "s = heedful.Session(heedful.PreferencePerceptron(2, heedful.Ranking(2)))\n"
        "s.propose([[1., 0.], [0., 1.]]); s.learn([1, 0])\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "heedful" in out
    assert not {"numba", "llvmlite", "scipy", "typer", "rich", "matplotlib", "safetensors"} & set(out)


def test_the_first_example_of_the_package_runs() -> None:
    results = doctest.testmod(heedful)
    assert results.attempted == 5
    assert results.failed == 0


def test_learners_by_name_and_nothing_else() -> None:
    from heedful.learners.second_order import SecondOrderPerceptron

    assert heedful.SecondOrderPerceptron is SecondOrderPerceptron
    assert heedful.team_draft.__name__ == "team_draft"
    for wrong in ("Perceptrom", "np", "_private"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(heedful, wrong)
