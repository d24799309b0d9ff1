"""What a loop that ranks by weights learned, as a model of the plugins of OpenSearch and Elasticsearch.

The result is one JSON document: the calls that create the feature set and the model, the search that uses the model,
and what could not be exported. Candidates are ordered by w . x there as here, with x the encoded features:

    a number        w (v - mean) / scale    function_score with field_value_factor, and the normalizer "standard"
    a logarithm     the same, of log(1 + v) the same with the modifier "ln1p"
    a category      w_l if the value is l   constant_score on a term
    missing         w_m if there is none    constant_score on documents without the field
    a constant      above what all other features can take away, so that no total is below 0

The plugins' sums are float32, and so is a field's value there: two candidates with nearly equal scores may change
places. docs/opensearch.md says which formats were read in which source. The file is long because every kind of column
needs another query, and every option is checked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.core.wording import percent
from heedful.data.row_report import Report
from heedful.features import FeatureCross
from heedful.features.columns import LIMIT, Category, Column, Logarithm, Number, Tags
from heedful.io.formats import Format, Options
from heedful.loop import Loop
from heedful.loop.packing import unpack

Array: TypeAlias = npt.NDArray[np.float64]

WINDOW = 100
"""How many of the engine's hits the search orders again: the default of the option `window`."""
MARGIN = 10.0
"""How far, at least, a number may lie outside of those on offer, in standard deviations, before the exported model cuts
it off there."""
WIDE = 100.0
"""The same if no item is on offer: how far a number may lie from the mean."""
MOST_FEATURES = 10_000
"""The most features that the plugins take in a set."""
HUGE = 1e30
"""The size from which on numbers are not exported: products of them do not fit into float32."""
LOOKED_AT = 1000
"""How many items on offer are read to see which columns are true or false."""
COARSE = 0.01
"""A note warns of a column whose values float32 rounds by more than this share of their standard deviation."""
CROSSES, PRODUCTS, PRIOR = "crosses", "products", "prior"
"""What the option `without` calls products with the context, those of two features of an item, and the caller's score.
"""
_WITH_CONTEXT = "products with the context of a request; option context=JSON exports the model for one context"
OPTIONS: Mapping[str, str] = {
    "without": "what to leave out, by name, separated by commas: the message that refuses the export names it",
    "context": "the context that the model is for, a JSON object: products with it become plain weights",
    "fields": "fields of the index, COLUMN=FIELD separated by commas, where they are not called as the columns are",
    "name": "the name of the feature set, and the beginning of that of the model; the loop's name if it is not given",
    "window": f"how many hits of the engine the model orders again; {WINDOW} if it is not given",
}
"""The options of both formats, each with what it says."""


class Feature(NamedTuple):
    """A feature of the exported model: a query whose score it is, with its weight and the least it adds.

    `mean` and `scale` are those of its normalizer "standard"; a `scale` of 0 stands for none."""

    name: str
    query: Mapping[str, Any]
    weight: float
    least: float
    """the least number, at most 0, that it can add to a total"""
    mean: float = 0.0
    scale: float = 0.0


class _Omitted(NamedTuple):
    """A part of the model that cannot be exported: its name in the option `without`, its features and weight, why."""

    name: str
    features: int
    size: float
    why: str


def ranking_model(loop: Loop, report: Report, options: Mapping[str, str], *, engine: str) -> dict[str, Any]:
    """Return what `loop` learned for all people as a learning-to-rank model: {"calls", "search", "left_out", ...}.

    `calls` are the requests that create the feature set and the model, in order, each {"method", "path", "body"};
    `search` is the body of a search that orders the engine's best hits by the model. `options` are those of OPTIONS;
    `report` counts features. Raise ValueError, naming what to do, if the order of the loop is not linear in features,
    nothing was learned, an option makes no sense, or a part of the model cannot be exported and is not named in the
    option `without`."""
    interaction, manifest = loop.projection.interaction, loop.manifest
    if not interaction.linear:
        kind = "that ranks items by weights of their features, as `heedful init` makes one"
        raise ValueError(f"--as {engine}: expected a loop {kind}, got {interaction.words.loop}")
    without, fields = _names(options.get("without", "")), _fields(options.get("fields", ""))
    _, view = loop.projection.reading(None)
    weights = np.asarray(view.model.effective(view), np.float64)
    if weights.shape != (len(interaction.names),) or not np.isfinite(weights).all():
        raise ValueError(f"learner: expected one finite weight a feature, got those of {manifest.learner}")
    item_weights: Any = weights[:-1]
    score = float(weights[-1])
    largest = float(np.abs(weights).max(initial=0.0))
    if largest and not 1e-12 < largest < 1e12:  # a common factor changes no order, and may not fit into float32
        item_weights, score = item_weights / largest, score / largest
    crossed, last = manifest.crossed(), len(item_weights) - manifest.n_products
    item_weights, of_products = item_weights[:last], item_weights[last:]
    if "context" in options:
        if crossed is None or not manifest.crosses:
            raise ValueError("context: expected none, as the loop has no products with a context, got one")
        alone = msgspec.structs.replace(crossed, products=False)
        item_weights = _for_context(alone, item_weights, options["context"])
    of_items, of_crosses = item_weights[: manifest.candidates.size], item_weights[manifest.candidates.size :]
    omitted: list[_Omitted] = []
    features: list[Feature] = []
    notes: list[str] = []
    columns = [column.name for column in manifest.candidates.columns if column.features()]
    both = [part for part, w in ((CROSSES, of_crosses), (PRODUCTS, of_products)) if w.size]
    _check_names("without", without, [*columns, *both, PRIOR])
    _check_names("fields", fields, columns)
    requested = () if manifest.query is None else {column.name for column in manifest.query.columns}
    values_on_offer, booleans = _on_offer(loop), _booleans(loop)
    total = float(np.abs(item_weights).sum() + np.abs(of_products).sum())
    for column in manifest.candidates.columns:
        place = manifest.candidates.places[column.name]
        w = of_items[place.start : place.stop]
        if not w.any():
            continue
        values = None if values_on_offer is None or column.name in requested else values_on_offer[:, place]
        why = "each request says it, and no document" if column.name in requested else _why_not(column)
        why = why or ("left out as asked" if column.name in without else "")
        column_features = (
            []
            if why
            else _column(column, fields.get(column.name, column.name), w, values, column.name in booleans, notes)
        )
        if any("{{" in json.dumps([feature.query, feature.name], ensure_ascii=False) for feature in column_features):
            why = "a field or a value with {{, which templates read as a parameter"
        if why:
            omitted.append(_Omitted(column.name, int(np.count_nonzero(w)), float(np.abs(w).sum()), why))
        else:
            features += column_features
    multiplied = "products of two features of an item, which no query of an engine computes"
    for name, w, why in ((CROSSES, of_crosses, _WITH_CONTEXT), (PRODUCTS, of_products, multiplied)):
        if w.any():
            omitted.append(_Omitted(name, int(np.count_nonzero(w)), float(np.abs(w).sum()), why))
    decisions = loop.projection.log.events(kinds=("decision",))
    if score != 0.0 and any(unpack(event.payload, event.arrays)[0].prior for event in decisions):
        total += abs(score)
        omitted.append(_Omitted(PRIOR, 1, abs(score), "the caller's score is scaled within each request"))
    if not item_weights.any() and not of_products.any():
        raise ValueError(f"--as {engine}: expected a loop that learned from feedback, got one whose weights are all 0")
    if missing := [part for part in omitted if part.name not in without]:
        raise ValueError(_refusal(missing, omitted, total, engine))
    if not features:
        raise ValueError("without: expected a part of the model to be left, got none")
    report.rows["features"] += sum(part.features for part in omitted) + len(features)
    report.used["features"] += len(features)
    for part in omitted:
        report.drop(part.why, f"{part.name}, {percent(part.size / total)} of the model's absolute weights")
        report.dropped[part.why] += part.features - 1
    return _document(loop, options, engine, features, omitted, total, notes)


# ---------------------------------------------------------------------------- what becomes a feature


def _column(
    column: Column, field: str, weights: Array, values: Array | None, boolean: bool, notes: list[str]
) -> list[Feature]:
    """Return what a column of f features with `weights` (f,) becomes; `values` (n, f) are those of what is on offer."""
    features: list[Feature] = []
    if isinstance(column, Number):
        for j, part in enumerate(_numbers(column)):
            weight, one = float(weights[j]), math.log1p(1.0) if part.logarithm else 1.0
            if boolean:  # a type of the engine without ranges
                true = {"constant_score": {"filter": {"term": {field: True}}, "boost": 1.0}}
                slope = weight / part.scale
                features += [_feature(part.name, true, slope * one), _presence(part.name, field, -slope * part.mean)]
            else:
                features += _number(part, field, weight, None if values is None else values[:, j], notes)
    elif isinstance(column, Category):
        for level, weight in zip(column.levels, weights.tolist()):
            query = {"constant_score": {"filter": {"term": {field: level}}, "boost": 1.0}}
            features.append(_feature(f"{column.name}_{level}", query, weight))
    if column.missing:
        query = {"constant_score": {"filter": {"bool": {"must_not": {"exists": {"field": field}}}}, "boost": 1.0}}
        features.append(_feature(f"{column.name}_missing", query, float(weights[-1])))
    return [feature for feature in features if feature.weight != 0.0]


class _Number(NamedTuple):
    """One feature of a column of numbers: (number - `mean`) / `scale`, of its logarithm if that is said."""

    name: str
    mean: float
    scale: float
    logarithm: bool


def _numbers(column: Number) -> list[_Number]:
    """Return the features of a column of numbers, without that for missing values."""
    plain = _Number(column.name, column.mean, column.scale, False)
    if not isinstance(column, Logarithm):
        return [plain]
    return [plain, _Number(f"{column.name}_log", column.log_mean, column.log_scale, True)]


def _number(column: _Number, field: str, weight: float, values: Array | None, notes: list[str]) -> list[Feature]:
    """Return the features of a column of numbers, three if signs differ: field_value_factor refuses a negative one."""
    mean, scale = column.mean, column.scale
    least, most = (-1.0, 1.0) if values is None or not values.size else (float(values.min()), float(values.max()))
    room = WIDE if values is None or not values.size else max(MARGIN, most - least)
    low, high = max(least - room, -LIMIT), min(most + room, LIMIT)
    bottom, top = mean + scale * low, mean + scale * high  # in units of `mean`
    slack = 1e-5 * scale  # values on offer are known as float32
    size = max(abs(mean + scale * least), abs(mean + scale * most), abs(mean))
    if np.spacing(np.float32(size)) / 2 > COARSE * scale:
        notes.append(
            f"{column.name}: values of about {size:.3g} that differ by about {scale:.3g} are nearly equal in float32, "
            "in which the engine computes; index a smaller number, such as days instead of milliseconds"
        )
    sign = 1.0 if mean + scale * least >= -slack else -1.0 if mean + scale * most <= slack else 0.0
    if values is None:
        sign = float(np.sign(mean)) if abs(mean) > WIDE * scale else 0.0
    if sign and sign * mean >= 0.0:
        beyond = "lt" if sign > 0.0 else "gt"
        end = top if sign > 0.0 else -bottom
        # What is on the other side of 0 does not match, so that the feature is 0 as for the number 0.
        query = _field(column, field, sign, {"bool": {"must_not": {"range": {field: {beyond: 0}}}}}, end, mean)
        reach = (-sign * mean / scale, (end - sign * mean) / scale)
        w = _float32(sign * weight)
        least = min(0.0, *(w * value for value in reach))
        return [Feature(column.name, query, w, least, _float32(sign * mean), _float32(scale))]
    features = []
    slope = weight / scale
    if top > 0.0:
        query = _field(column, field, 1.0, {"range": {field: {"gte": 0}}}, top, 0.0)
        features.append(_feature(f"{column.name}_above_0", query, slope, top))
    if bottom < 0.0:
        query = _field(column, field, -1.0, {"range": {field: {"lt": 0}}}, -bottom, 0.0)
        features.append(_feature(f"{column.name}_below_0", query, -slope, -bottom))
    return [*features, _presence(column.name, field, -slope * mean)]


def _presence(name: str, field: str, weight: float) -> Feature:
    """Return the feature that is 1 where a column has a value at all."""
    query = {"constant_score": {"filter": {"exists": {"field": field}}, "boost": 1.0}}
    return _feature(f"{name}_there", query, weight)


def _field(
    column: _Number, field: str, sign: float, query: Mapping[str, Any], most: float, missing: float
) -> dict[str, Any]:
    """Return the query that scores `sign` times a field, or the logarithm of that, at most `most`, where `query`
    matches; a missing value counts as `missing`."""
    modifier = "none"
    if column.logarithm:  # the engine takes the logarithm of what stands for a missing value, too
        modifier, missing = "ln1p", math.copysign(math.expm1(abs(missing)), missing)
    factor = {"field": field, "factor": sign, "modifier": modifier, "missing": missing}
    function = {"query": query, "field_value_factor": factor, "boost_mode": "replace", "max_boost": _float32(most)}
    return {"function_score": function}


def _feature(name: str, query: Mapping[str, Any], weight: float, most: float = 1.0) -> Feature:
    """Return a feature whose query scores from 0 to `most`."""
    weight = _float32(weight)
    return Feature(name, query, weight, min(0.0, weight * most))


def _why_not(column: Column) -> str:
    """Return why a column with a weight cannot become features of an engine; "" if it can."""
    for part in _numbers(column) if isinstance(column, Number) else ():
        most = math.log(HUGE) if part.logarithm else HUGE
        if not (abs(part.mean) < most and 1.0 / HUGE < part.scale < most):
            return "numbers that do not fit into float32"
    if isinstance(column, Number | Category) and not isinstance(column, Tags):
        return ""
    reasons = {
        "tags": "several tags in one text, which no term of an engine matches one by one",
        "text": "a text by its hashed words, which no query of an engine computes",
        "prose": "a text by its style, which no query of an engine computes",
        "vector": "a vector, of whose single numbers an engine makes no feature",
    }
    return reasons[column.kind]


def _for_context(crossed: FeatureCross, weights: Array, text: str) -> Array:
    """Return the weights (N,) of an item's N features in the context `text`, those of products with it added."""
    try:
        context = json.loads(text)
    except (ValueError, RecursionError):
        context = None
    if not isinstance(context, dict):
        raise ValueError(f"context: expected a JSON object, got {describe(text)}")
    try:
        x = crossed.context.encode(context)
    except ValueError as error:
        raise ValueError(f"context: {error}") from None
    # Each row is an item with one feature of 1, so that its score is the weight of that feature with its products.
    return np.asarray(crossed.apply(x, np.eye(crossed.item.size, dtype=np.float32)), np.float64) @ weights


def _on_offer(loop: Loop) -> Array | None:
    """Return the features (n, N) of the n items on offer, N of each; None if there are none."""
    catalogue = loop.projection.catalogue
    on_offer = catalogue.on_offer()
    if not on_offer or not loop.manifest.encoding.size:
        return None
    return np.asarray(catalogue.at(catalogue.rows([version for _, version in on_offer])), np.float64)


def _booleans(loop: Loop) -> set[str]:
    """Return the columns that are true or false in one of the first items on offer; an encoding has them as numbers."""
    versions = [version for _, version in loop.projection.catalogue.on_offer()[:LOOKED_AT]]
    rows = [json.loads(event.payload) for event in loop.projection.log.many(versions)]
    return {name for row in rows for name, value in row.items() if isinstance(value, bool)}


# ---------------------------------------------------------------------------- the document


def _document(
    loop: Loop,
    options: Mapping[str, str],
    engine: str,
    features: Sequence[Feature],
    omitted: Sequence[_Omitted],
    total: float,
    notes: list[str],
) -> dict[str, Any]:
    """Return the document that is written: the calls, the search, what was left out, and what to know of it."""
    name = options.get("name", loop.path.name.removesuffix(".heedful"))
    if not re.fullmatch(r"[^\s/\\?#*\"<>|,{}\x00-\x1f]{1,200}", name):
        expected = '1 to 200 characters without blanks and without any of / \\ ? # * " < > | , { }'
        raise ValueError(f"name: expected {expected}, got {describe(name)}")
    window = options.get("window", str(WINDOW))
    if not re.fullmatch(r"[1-9][0-9]{0,4}", window) or int(window) > 10_000:
        raise ValueError(f"window: expected a whole number from 1 to 10000, got {describe(window)}")
    named = _distinct(features)
    loss = -sum(feature.least for feature in named)
    if len(named) >= MOST_FEATURES:
        raise ValueError(f"--as {engine}: expected fewer than {MOST_FEATURES} features, got {len(named)}")
    # 1 % more than the largest loss, which is more than float32 sums of so many numbers are off.
    floor = Feature("constant", {"match_all": {}}, _float32(1.01 * loss + 1e-6 * total), 0.0)
    named = [*named, floor]
    model = f"{name}-{loop.version}"
    scaled = {
        feature.name: {"standard": {"mean": feature.mean, "standard_deviation": feature.scale}}
        for feature in named
        if feature.scale
    }
    definition = json.dumps({feature.name: feature.weight for feature in named}, ensure_ascii=False)
    set_body = [
        {"name": feature.name, "params": [], "template_language": "mustache", "template": feature.query}
        for feature in named
    ]
    inner = {"type": "model/linear", "definition": definition}
    path = f"/_ltr/_featureset/{_in_path(name)}"
    rescore = {
        "score_mode": "total",
        "query_weight": 0.0,
        "rescore_query_weight": 1.0,
        "rescore_query": {"sltr": {"model": model, "params": {}}},
    }
    calls = [
        # POST makes a set or replaces it, while PUT fails where it is there; a model has a copy of its features.
        {"method": "POST", "path": path, "body": {"featureset": {"name": name, "features": set_body}}},
        {
            "method": "POST",
            "path": f"{path}/_createmodel",
            "body": {
                "model": {"name": model, "model": {**({"feature_normalizers": scaled} if scaled else {}), **inner}}
            },
        },
    ]
    terms = [feature.query.get("constant_score", {}).get("filter", {}).get("term", {}) for feature in named]
    if any(isinstance(level, str) for term in terms for level in term.values()):
        notes.append("categories are compared as a whole: their fields have to be of type keyword, see option fields")
    if loop.projection.model.people:
        notes.append(f"weights of their own, which {len(loop.projection.model.people)} people have, are not in it")
    return {
        "engine": engine,
        "loop": loop.path.name.removesuffix(".heedful"),
        "version": loop.version,
        "first": {
            "method": "PUT",
            "path": "/_ltr",
            "about": "once: it makes the plugin's store, and fails if it is there",
        },
        "calls": calls,
        "search": {"query": {"match_all": {}}, "rescore": {"window_size": int(window), "query": rescore}},
        "left_out": [
            {
                "name": part.name,
                "features": part.features,
                "share_of_weights": round(part.size / total, 4),
                "why": part.why,
            }
            for part in omitted
        ],
        "notes": notes,
    }


def _distinct(features: Sequence[Feature]) -> list[Feature]:
    """Return the features with names that are all different, of letters, digits and underscores."""
    named: list[Feature] = []
    names = {"constant"}
    for feature in features:
        stem = re.sub(r"\W+", "_", feature.name).strip("_")[:80] or "feature"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names.add(name)
        named.append(feature._replace(name=name))
    return named


def _refusal(missing: Sequence[_Omitted], omitted: Sequence[_Omitted], total: float, engine: str) -> str:
    parts = "; ".join(
        f"{part.name}, {percent(part.size / total)} of its absolute weights: {part.why}" for part in missing
    )
    names = ",".join(part.name for part in omitted)
    if any("," in part.name for part in omitted):
        names = json.dumps([part.name for part in omitted], ensure_ascii=False)
    expected = "expected a model of numbers and categories, got one with parts that cannot be exported"
    parts += "; a share of weights is no measure of importance, as features may say the same"
    return f"--as {engine}: {expected} ({parts}). To export it without them: --option 'without={names}'"


def _names(text: str) -> tuple[str, ...]:
    """Return the names in an option: separated by commas or, for names with commas, a JSON list."""
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"without: expected names separated by commas, or a JSON list, got {describe(text)}")
        return tuple(names)
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _fields(text: str) -> dict[str, str]:
    """Return {column: field of the index} of an option COLUMN=FIELD,COLUMN=FIELD."""
    fields: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        column, equals, field = part.rpartition("=")
        if not equals or not column.strip() or not field.strip() or column.strip() in fields:
            raise ValueError(f"fields: expected COLUMN=FIELD, each column once, got {describe(part)}")
        fields[column.strip()] = field.strip()
    return fields


def _check_names(option: str, names: Sequence[str] | Mapping[str, str], possible: Sequence[str]) -> None:
    for name in names:
        if name not in possible:
            raise ValueError(f"{option}: expected one of {', '.join(possible)}, got {describe(name)}")


def _in_path(name: str) -> str:
    """Return a name as a part of a URL's path: bytes of UTF-8 other than letters, digits and . _ - ~ as %XX."""
    return "".join(chr(b) if re.match(rb"[A-Za-z0-9._~-]", bytes([b])) else f"%{b:02X}" for b in name.encode())


def _float32(value: float) -> float:
    """Return the float32 that is nearest to `value`, as the number with the fewest digits that reads as it."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near):
        raise ValueError(f"weights: expected numbers that fit into float32, got {value:g}")
    return float(str(near))


def shell_script(document: Mapping[str, Any]) -> str:
    """Return the calls of a document of `ranking_model` as a script for sh and curl, with the search in its last lines.

    The script takes the engine's URL as its first argument; the others are passed to curl."""
    model = document["search"]["rescore"]["query"]["rescore_query"]["sltr"]["model"]
    lines = [
        "#!/bin/sh",
        f"# Learning-to-rank model {model} for {document['engine']}: sh FILE [URL [CURL OPTION...]]",
        "set -eu",
        'url="${1:-http://localhost:9200}"',
        "[ $# -eq 0 ] || shift",
        "# The plugin's store; the engine refuses to make it again, which is fine.",
        f'curl -sS -o /dev/null "$@" -X {document["first"]["method"]} "$url{document["first"]["path"]}"',
    ]
    for call in document["calls"]:
        lines += [
            f'curl -sS --fail-with-body "$@" -X {call["method"]} "$url{call["path"]}" \\',
            "  -H 'Content-Type: application/json' --data-binary @- <<'HEEDFUL'",
            json.dumps(call["body"]),
            "HEEDFUL",
            "echo",
        ]
    search = json.dumps({"rescore": document["search"]["rescore"]})
    return "\n".join(
        [*lines, "# Add to the body of a search, which orders its best hits by the model:", f"# {search}", ""]
    )


def _of_engine(engine: str, plugin: str) -> Format:
    def write(loop: Loop, report: Report, options: Options) -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield "model", ranking_model(loop, report, options, engine=engine)

    about = f"a learning-to-rank model of {plugin}"
    return Format(engine, about, write, options=OPTIONS, document=True, script=shell_script)


OPENSEARCH = _of_engine("opensearch", "OpenSearch's plugin")
ELASTICSEARCH = _of_engine("elasticsearch", "the plugin for Elasticsearch")
