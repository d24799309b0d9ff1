"""Data sets that the loaders understand: where they come from, their terms, and the sums of their files."""

import hashlib
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.data.files import GZIP_ERRORS, uncompressed


class Known(NamedTuple):
    """A data set somebody can get from its home; nothing here fetches it."""

    key: str
    title: str
    format: str  # the loader that reads it
    licence: str
    home: str  # official URL
    cite: str
    # File name -> sha256 of the uncompressed content. A file NAME.gz is checked by what it holds: two
    # programs compress the same bytes to different ones. Empty: same format, no sums on record.
    files: Mapping[str, str]


class Finding(NamedTuple):
    """What `check` says about one file of a known data set."""

    dataset: str  # Known.key
    file: str  # below the folder that was checked; of a set without sums, its folder
    status: Literal["ok", "damaged", "missing", "unknown"]
    detail: str


KNOWN = (
    Known(
        key="letor4-mq2008",
        title="LETOR 4.0 MQ2008, supervised ranking, normalised by query",
        format="letor",
        licence="Microsoft Research Asia, no licence text with it: research use, do not redistribute",
        home="https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/letor-4-0/",
        cite="Qin & Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597, 2013",
        files={
            "S1.txt": "cbd42504549a2388f6c0aefdb506f22074225b574c7a5df10194174c9b00e4e0",
            "S2.txt": "055ac792cb8f7d5a029090b8acbfb6c57323339d1371251bf2465ac182aa8605",
            "S3.txt": "a03fe2b6e76479de60fecdb37d560a40a4e899b0cd685553d2da31ea205af1ab",
            "S4.txt": "a239850bc6fe960ad08c2b7b0d99db90fe976dd93a15358e98036591b4e7a2ac",
            "S5.txt": "c68c52feb1ecae7f17b64c8e2fda2098302681bbd4ea5fad8c73a1d32a1cf2b2",
        },
    ),
    Known(
        key="mslr-web10k",
        title="MSLR-WEB10K, Microsoft Learning to Rank, 10,000 queries",
        format="letor",
        licence="Microsoft Research licence: research use",
        home="https://www.microsoft.com/en-us/research/project/mslr/",
        cite="Qin & Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597, 2013",
        files={},
    ),
    Known(
        key="mslr-web30k",
        title="MSLR-WEB30K, Microsoft Learning to Rank, 30,000 queries",
        format="letor",
        licence="Microsoft Research licence: research use",
        home="https://www.microsoft.com/en-us/research/project/mslr/",
        cite="Qin & Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597, 2013",
        files={},
    ),
    Known(
        key="yahoo-ltrc",
        title="Yahoo! Learning to Rank Challenge (Webscope C14)",
        format="letor",
        licence="Yahoo! Webscope: research use, on application",
        home="https://webscope.sandbox.yahoo.com/",
        cite="Chapelle & Chang, Yahoo! Learning to Rank Challenge Overview, JMLR W&CP 14, 2011",
        files={},
    ),
)


def check(folder: str | PathLike[str]) -> list[Finding]:
    """Compare the known data sets in a folder and its direct sub-folders with the sums on record.

    A data set is recognised by the name of one of its files, with or without .gz; one without sums on record
    by the name of its folder. Nothing recognised is an empty list. FileNotFoundError or NotADirectoryError
    when `folder` is not one.
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"{root}: no such folder; nothing is fetched: name the one that holds the data")
    places = [root, *sorted(place for place in root.iterdir() if place.is_dir())]
    return [finding for place in places for known in KNOWN for finding in _findings(known, place, root)]


def _findings(known: Known, place: Path, root: Path) -> Iterator[Finding]:
    if not known.files:
        if place.resolve().name.lower() == known.key:
            detail = f"same format as letor4-mq2008; no sums on record, compare with {known.home}"
            yield Finding(known.key, str(place.relative_to(root)), "unknown", detail)
        return
    present = {name: [file for file in (place / name, place / f"{name}.gz") if file.is_file()] for name in known.files}
    if not any(present.values()):
        return
    for name, wanted in known.files.items():
        for file in present[name]:
            status, detail = _compare(file, wanted)
            yield Finding(known.key, str(file.relative_to(root)), status, detail)
        if not present[name]:
            file = (place / name).relative_to(root)
            yield Finding(known.key, str(file), "missing", f"neither it nor {name}.gz; get it from {known.home}")


def _compare(file: Path, wanted: str) -> tuple[Literal["ok", "damaged"], str]:
    try:
        with uncompressed(file) as content:
            got = hashlib.file_digest(content, "sha256").hexdigest()
    except GZIP_ERRORS as error:
        return "damaged", f"gzip: wanted a whole stream, got {error}"
    if got != wanted:
        return "damaged", f"sha256: wanted {wanted}, got {got}: damaged, or a file of another data set"
    return "ok", f"sha256 {got}"
