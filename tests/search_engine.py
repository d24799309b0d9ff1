"""A stand-in for a search engine with the learning-to-rank plugin, which follows the plugin's arithmetic.

Written after the sources of the plugin for Elasticsearch (LinearRanker, LinearRankerParser, StoredLtrModel,
StandardFeatureNormalizer, FeatureNormalizingRanker, DenseFeatureVector, StoredFeatureSet, RestFeatureManager,
RestCreateModelFromSet, RestStoreManager), the same files of OpenSearch's plugin, and OpenSearch's
FieldValueFactorFunction, FunctionScoreQuery and QueryRescorer. It knows only the queries that an exported model is made
of, and refuses every field that it does not know, as the parsers there do. Scores of
features, weights, normalizers and sums are float32.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

f32 = np.float32


class Refused(ValueError):
    """A request that the engine answers with status 400."""


class Model(NamedTuple):
    """A stored model: its queries in order, their weights (n,), and (mean, standard deviation) of those normalized."""

    queries: list[Any]
    weights: np.ndarray[Any, Any]
    normalizers: dict[int, tuple[np.float32, np.float32]]


class Engine:
    """An index of documents, and the plugin's feature sets and models. `scores` are those of the first pass, by id; a
    document that is not named there has the score 1."""

    def __init__(self, documents: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.documents = dict(documents or {})
        self.scores: dict[str, float] = {}
        self.sets: dict[str, list[Any]] = {}
        self.models: dict[str, Model] = {}
        self.store = False

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Answer a request. Raise Refused where the engine would refuse it."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "_ltr":
            return self._plugin(method, parts[1:], body)
        if method == "POST" and parts[-1] == "_search":
            return self._search(body)
        raise Refused(f"no handler for {method} {path}")

    # ---------------------------------------------------------------------------- the plugin

    def _plugin(self, method: str, parts: list[str], body: Any) -> dict[str, Any]:
        if not parts:
            if method != "PUT" or self.store:
                raise Refused("resource_already_exists_exception")
            self.store = True
            return {"acknowledged": True}
        if not self.store:
            raise Refused("index_not_found_exception: .ltrstore")
        if parts[0] == "_featureset" and len(parts) == 2 and method in ("PUT", "POST"):
            if method == "PUT" and parts[1] in self.sets:  # RestFeatureManager: PUT creates, POST updates or creates
                raise Refused(f"version conflict, document already exists: {parts[1]}")
            self.sets[parts[1]] = self._feature_set(parts[1], _only(body, "featureset")["featureset"])
            return {"result": "created"}
        if parts[0] == "_featureset" and len(parts) == 3 and parts[2] == "_createmodel" and method == "POST":
            given = _only(_only(body, "model")["model"], "name", "model")
            if given["name"] in self.models:
                raise Refused(f"version conflict, document already exists: {given['name']}")
            self.models[given["name"]] = self._model(self.sets[parts[1]], given["model"])
            return {"result": "created"}
        raise Refused(f"no handler for {method} {parts}")

    def _feature_set(self, name: str, given: Any) -> list[Any]:
        _only(given, "name", "features")
        if given["name"] != name:
            raise Refused(f"Invalid [name], expected [{name}] but got [{given['name']}]")
        names = set()
        for each in given["features"]:
            _only(each, "name", "params", "template_language", "template")
            if each["name"] in names:
                raise Refused(f"Feature [{each['name']}] defined twice in this set")
            names.add(each["name"])
            if each["params"] or each["template_language"] != "mustache":
                raise Refused(f"not of this stand-in: {each}")
            if "{{" in json.dumps(each["template"]):
                raise Refused(f"a parameter in a template: {each}")
        return list(given["features"])

    def _model(self, features: list[Any], given: Any) -> Model:
        # feature_normalizers stand beside the type: LtrModelDefinition.PARSER has all three.
        _only(given, "type", "definition", "feature_normalizers")
        if given["type"] != "model/linear":
            raise Refused(f"unknown ranker {given['type']}")
        place = {each["name"]: at for at, each in enumerate(features)}
        weights = np.zeros(len(features), f32)
        for name, weight in json.loads(given["definition"]).items():
            if name not in place:
                raise Refused(f"Feature [{name}] is unknown.")
            if isinstance(weight, bool) or not isinstance(weight, int | float):
                raise Refused(f"Expected a float but found [{weight}]")
            weights[place[name]] = f32(weight)
        normalizers = {}
        for name, told in given.get("feature_normalizers", {}).items():
            standard = _only(_only(told, "standard")["standard"], "mean", "standard_deviation")
            if name not in place:
                raise Refused(f"Feature {name} not found in feature set")
            mean, deviation = f32(standard["mean"]), f32(standard["standard_deviation"])
            if not deviation > 0:
                raise Refused("Standard Deviation Must Be Positive.")
            normalizers[place[name]] = mean, deviation
        return Model([each["template"] for each in features], weights, normalizers)

    # ---------------------------------------------------------------------------- scores

    def total(self, model: Model, document: Mapping[str, Any]) -> np.float32:
        """Return the score that the model gives a document: FeatureNormalizingRanker around LinearRanker."""
        vector = np.zeros(len(model.queries), f32)  # DenseFeatureVector: 0 where a query does not match
        for at, query in enumerate(model.queries):
            score = self._score(query, document)
            if score is not None:
                vector[at] = score
        for at, (mean, deviation) in model.normalizers.items():
            vector[at] = f32(f32(vector[at] - mean) / deviation)
        sum = f32(0)
        for weight, value in zip(model.weights, vector):
            sum = f32(sum + f32(weight * value))
        return sum

    def _score(self, query: Any, document: Mapping[str, Any]) -> np.float32 | None:
        """Return the score of a document in a query; None if it does not match."""
        (kind,) = query
        if kind == "function_score":
            return self._function_score(query[kind], document)
        if kind == "constant_score":
            told = _only(query[kind], "filter", "boost")
            return f32(told["boost"]) if self._matches(told["filter"], document) else None
        return f32(1) if self._matches(query, document) else None

    def _function_score(self, told: Any, document: Mapping[str, Any]) -> np.float32 | None:
        _only(told, "query", "field_value_factor", "boost_mode", "max_boost")
        if told["boost_mode"] != "replace":
            raise Refused(f"not of this stand-in: {told}")
        if not self._matches(told["query"], document):
            return None
        factor = _only(told["field_value_factor"], "field", "factor", "modifier", "missing")
        values = _values(document, factor["field"])
        if not values and factor["missing"] is None:
            raise Refused(f"Missing value for field [{factor['field']}]")
        value = float(min(map(float, values)) if values else factor["missing"])  # sorted doc values: the first one
        result = value * float(f32(factor["factor"]))
        if factor["modifier"] not in ("none", "ln1p"):
            raise Refused(f"not of this stand-in: {factor}")
        if factor["modifier"] == "ln1p":
            result = math.log1p(result) if result > -1.0 else math.nan  # Java's Math.log1p
        if result < 0.0:
            raise Refused(f"field value function must not produce negative scores, but got: [{result}]")
        score = f32(min(result, float(f32(told["max_boost"]))))
        if score < 0 or np.isnan(score):
            raise Refused(f"function score query returned an invalid score: {score}")
        return score

    def _matches(self, query: Any, document: Mapping[str, Any]) -> bool:
        (kind,) = query
        told = query[kind]
        if kind == "match_all":
            return True
        if kind == "bool":
            return not self._matches(_only(told, "must_not")["must_not"], document)
        if kind == "exists":
            return bool(_values(document, _only(told, "field")["field"]))
        if kind == "ids":
            return document["_id"] in _only(told, "values")["values"]
        (at,) = told
        values = _values(document, at)
        if kind == "term":  # a keyword: the whole value, written out; a boolean
            if isinstance(told[at], bool) and any(not isinstance(value, bool) for value in values):
                return False
            return _written(told[at]) in [_written(value) for value in values]
        if kind == "range":
            if any(isinstance(value, bool) for value in values):
                raise Refused(f"Can't parse boolean value {list(told[at].values())}, expected [true] or [false]")
            limits = _only(told[at], "lt", "gt", "gte")
            checks = {"lt": float.__lt__, "gt": float.__gt__, "gte": float.__ge__}
            return any(all(checks[name](float(v), float(end)) for name, end in limits.items()) for v in values)
        if kind == "match":  # any word of the query is a word of the text
            words = {word for value in values for word in str(value).lower().split()}
            return not words.isdisjoint(str(told[at]).lower().split())
        raise Refused(f"unknown query [{kind}]")

    def _search(self, body: Any) -> dict[str, Any]:
        """Answer a search: first the query, then the rescore over the first `window_size` hits (QueryRescorer)."""
        _only(body, "query", "rescore", "size")
        found = [
            (f32(self.scores.get(id, 1.0)), id)
            for id, document in self.documents.items()
            if self._matches(body["query"], {**document, "_id": id})
        ]
        found.sort(key=lambda hit: -hit[0])  # stable: ties in the order of the index
        if "rescore" in body:
            told = _only(body["rescore"], "window_size", "query")
            how = _only(told["query"], "score_mode", "query_weight", "rescore_query_weight", "rescore_query")
            sltr = _only(_only(how["rescore_query"], "sltr")["sltr"], "model", "params")
            model = self.models[sltr["model"]]
            if how["score_mode"] != "total":
                raise Refused(f"not of this stand-in: {how}")
            first, second = f32(how["query_weight"]), f32(how["rescore_query_weight"])
            window = told["window_size"]
            again = [
                (f32(f32(score * first) + f32(self.total(model, self.documents[id]) * second)), id)
                for score, id in found[:window]
            ]
            found = again + [(f32(score * first), id) for score, id in found[window:]]
            found.sort(key=lambda hit: -hit[0])
        hits = [
            {"_id": id, "_score": float(score), "_source": self.documents[id]}
            for score, id in found[: body.get("size", 10)]
        ]
        return {"hits": {"hits": hits}}


def _only(given: Any, *names: str) -> Any:
    """Return an object whose fields are all among `names`. Raise Refused otherwise, as the parsers of engines do."""
    if not isinstance(given, dict):
        raise Refused(f"expected an object, got {given!r}")
    if strange := [name for name in given if name not in names]:
        raise Refused(f"unknown field [{strange[0]}]")
    return given


def _values(document: Mapping[str, Any], field: str) -> list[Any]:
    """Return the values of a field of a document, none for null; `a.keyword` is the text in `a`, as by default."""
    value = document.get(field, document.get(field.removesuffix(".keyword")))
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def serving(engine: Engine) -> Iterator[str]:
    """Serve an engine over HTTP while the block runs; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            given = self.rfile.read(size)
            try:
                status, told = 200, engine.call(self.command, self.path, json.loads(given) if given else None)
            except Refused as error:
                status, told = 400, {"error": str(error), "status": 400}
            answer = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = _do

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
