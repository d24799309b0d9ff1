"""Known public data sets that the loaders read: origin, terms of use, and checksums of their files."""

import hashlib
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.data.files import open_uncompressed


class DatasetInfo(NamedTuple):
    """A public data set: where to get it, and under which terms. Nothing here downloads it.

    - `key`, `title`: its name in this module, and the full one.
    - `format`: the loader that reads it.
    - `licence`, `home`, `cite`: the terms of use, the official URL, and the publication to cite.
    - `files`: SHA-256 of the uncompressed content by file name, "" if it is not on record."""

    key: str
    title: str
    format: str  # the loader that reads it
    licence: str
    home: str  # official URL
    cite: str
    # File name -> sha256 of the uncompressed content. A file NAME.gz is checked by what it holds: two
    # programs compress the same bytes to different ones. Empty: same format, no sums on record; an empty sum: that
    # file has none.
    files: Mapping[str, str]


class Finding(NamedTuple):
    """The result of `check` for one file of a known data set: its `status` ("ok", "damaged", "missing" or "unknown"),
    with an explanation (`detail`).

    `dataset`: the `DatasetInfo.key`; `file`: path below the folder that was checked, or the folder of a data set
    without checksums."""

    dataset: str  # DatasetInfo.key
    file: str  # below the folder that was checked; of a set without sums, its folder
    status: Literal["ok", "damaged", "missing", "unknown"]
    detail: str


_HOULSBY = "Houlsby, Huszár, Ghahramani & Hernández-Lobato, Collaborative Gaussian Processes, NIPS 2012"
_TREC = "NIST / TREC research data; titles and snippets are of web pages: do not redistribute the texts"
_GROUPLENS = "GroupLens: research use with acknowledgement, do not redistribute"

KNOWN = (
    DatasetInfo(
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
    DatasetInfo(
        key="mslr-web10k",
        title="MSLR-WEB10K, Microsoft Learning to Rank, 10,000 queries",
        format="letor",
        licence="Microsoft Research licence: research use",
        home="https://www.microsoft.com/en-us/research/project/mslr/",
        cite="Qin & Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597, 2013",
        files={},
    ),
    DatasetInfo(
        key="mslr-web30k",
        title="MSLR-WEB30K, Microsoft Learning to Rank, 30,000 queries",
        format="letor",
        licence="Microsoft Research licence: research use",
        home="https://www.microsoft.com/en-us/research/project/mslr/",
        cite="Qin & Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597, 2013",
        files={},
    ),
    DatasetInfo(
        key="yahoo-ltrc",
        title="Yahoo! Learning to Rank Challenge (Webscope C14)",
        format="letor",
        licence="Yahoo! Webscope: research use, on application",
        home="https://webscope.sandbox.yahoo.com/",
        cite="Chapelle & Chang, Yahoo! Learning to Rank Challenge Overview, JMLR W&CP 14, 2011",
        files={},
    ),
    DatasetInfo(
        key="trec-session-2012",
        title="TREC Session Track 2012, query chains with clicks, and judgments",
        format="trec",
        licence=_TREC,
        home="https://trec.nist.gov/data/session2012.html",
        cite="Kanoulas, Carterette, Hall, Clough & Sanderson, Overview of the TREC 2012 Session Track, 2012",
        files={
            "sessiontrack2012.xml": "2418c876ca6e5040537f6a51da6a17102d6b5e35cc15508a83ce56f30eca7828",
            "qrels.2012.txt": "2f02699c42a6df4687473e602cfb9e3c5383a003c93118e717dfac21757f5300",
        },
    ),
    DatasetInfo(
        key="trec-session-2013",
        title="TREC Session Track 2013, query chains with clicks, and judgments",
        format="trec",
        licence=_TREC,
        home="https://trec.nist.gov/data/session2013.html",
        cite="Carterette, Bah, Kanoulas, Hall & Clough, Overview of the TREC 2013 Session Track, 2013",
        files={"sessiontrack2013.xml": "", "qrels.2013.txt": ""},
    ),
    DatasetInfo(
        key="movielens-1m",
        title="MovieLens 1M, a million ratings of 3,900 movies by 6,040 people",
        format="movielens",
        licence=_GROUPLENS,
        home="https://grouplens.org/datasets/movielens/1m/",
        cite="Harper & Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015",
        files={
            "ratings.dat": "",  # copies differ in the times of ratings, which are not used here
            "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
            "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
        },
    ),
    DatasetInfo(
        key="movielens-100k",
        title="MovieLens 100K, 100,000 ratings of 1,682 movies by 943 people",
        format="movielens",
        licence=_GROUPLENS,
        home="https://grouplens.org/datasets/movielens/100k/",
        cite="Harper & Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015",
        files={
            "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
            "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
        },
    ),
    DatasetInfo(
        key="jester-1",
        title="Jester 1, part 1: 1,810,455 ratings of 100 jokes by 24,983 people",
        format="jester",
        licence="Eigentaste, Berkeley: research use with acknowledgement",
        home="https://eigentaste.berkeley.edu/dataset/",
        cite="Goldberg, Roeder, Gupta & Perkins, Eigentaste, Information Retrieval 4(2), 2001",
        files={"jester-data-1.csv": ""},  # the original is an .xls, which programs save as different CSV files
    ),
    DatasetInfo(
        key="book-crossing-subset",
        title="Book-Crossing, a subset: 100,726 ratings of 44,133 books by 5,157 people",
        format="book-crossing",
        licence="Ziegler, Freiburg: research use with acknowledgement",
        home="http://www2.informatik.uni-freiburg.de/~cziegler/BX/",  # offline; it had the whole data set
        cite="Ziegler, McNee, Konstan & Lausen, Improving Recommendation Lists, WWW 2005",
        files={"BX-Book-Ratings.subset.csv": "494be2b3bc47c67604e9b0a0fdc25320ce13e66d7b3bf31a2c47e3ee651930a0"},
    ),
    DatasetInfo(
        key="sushi",
        title="SUSHI preference data, orders of sushi by 5,000 people",
        format="sushi",
        licence="Kamishima: any research purpose, do not redistribute",
        home="https://www.kamishima.net/sushi/",
        cite="Kamishima, Nantonac Collaborative Filtering: Recommendation Based on Order Responses, KDD 2003",
        files={
            "sushi3a.5000.10.order": "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
            "sushi3b.5000.10.order": "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
            "sushi3.idata": "568d73580f82a9ffba7ee1a3750506a0517c9ce904eec41559fe4ab573911fde",
            "sushi3.udata": "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
        },
    ),
    DatasetInfo(
        key="uk-election-2010",
        title="UK general election of 2010, votes by party and seat, as Houlsby et al. 2012 have them",
        format="election",
        licence="figures: Electoral Commission, Crown / OGL type terms; this compilation has no licence text with it",
        home="https://www.electoralcommission.org.uk/",
        cite=_HOULSBY,
        files={"all_polling_data.dat": "5687269a27561446c7746056c2c775031e219e086fa3794c89f9768e5d4644b2"},
    ),
    DatasetInfo(
        key="jura",
        title="Heavy metals in the soil of the Swiss Jura, 359 places, as Houlsby et al. 2012 have them",
        format="jura",
        licence="R package gstat: GPL (>= 2.0); this copy has no licence text with it",
        home="https://cran.r-project.org/package=gstat",
        cite="Goovaerts, Geostatistics for Natural Resources Evaluation, 1997",
        files={"jura.dat": "40d425df3306c05e55248d03a7a362399177bdd4db68ad2608f7d1806ddc3e8d"},
    ),
    DatasetInfo(
        key="cgp-synthetic",
        title="Synthetic choices of Houlsby et al. 2012, 1,000 people, 10 items, 5 shared functions",
        format="collaborative",
        licence="no licence text with it",
        home="https://github.com/neilhoulsby/pref_learning",
        cite=_HOULSBY,
        files={
            "itemFeatures.txt": "95b2f9aa576b6e0a29503fbc7c0c9283115e308a78ee51a92d59f12b31d12ffb",
            "userFeatures.txt": "3414fbda678d4713bbc4f27bb00c83979185a43f228ff1b2cb93ea984fc72423",
            "dataset.txt": "3e34f9a33aed1317e6e56ccf5ee5853c6d83c9062ae6e6d66fc40646127ba35e",
        },
    ),
)


def check(folder: str | PathLike[str]) -> list[Finding]:
    """Compare the files of known data sets, in a folder and its direct sub-folders, with the recorded checksums.

    A data set is recognised by the name of one of its files, with or without .gz; one without checksums by the name of
    its folder. Return one finding for each file; [] if nothing was recognised. Raise FileNotFoundError if the folder
    does not exist, NotADirectoryError if it is not a folder.
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"{root}: no such folder; nothing is fetched: name the one that holds the data")
    places = [root, *sorted(place for place in root.iterdir() if place.is_dir())]
    return [finding for place in places for known in KNOWN for finding in _findings(known, place, root)]


def _findings(known: DatasetInfo, place: Path, root: Path) -> Iterator[Finding]:
    if not known.files:
        if place.resolve().name.lower() == known.key:
            detail = f"same format as letor4-mq2008; no sums on record, compare with {known.home}"
            yield Finding(known.key, str(place.relative_to(root)), "unknown", detail)
        return
    present = {name: [file for file in (place / name, place / f"{name}.gz") if file.is_file()] for name in known.files}
    if not any(present.values()):
        return
    for name, expected in known.files.items():
        for file in present[name]:
            status, detail = _compare(file, expected)
            yield Finding(known.key, str(file.relative_to(root)), status, detail)
        if not present[name]:
            file = (place / name).relative_to(root)
            yield Finding(known.key, str(file), "missing", f"neither it nor {name}.gz; get it from {known.home}")


def _compare(file: Path, expected: str) -> tuple[Literal["ok", "damaged", "unknown"], str]:
    try:
        with open_uncompressed(file) as content:
            got = hashlib.file_digest(content, "sha256").hexdigest()
    except ValueError as error:
        return "damaged", str(error).removeprefix(f"{file.name}: ")
    if not expected:
        return "unknown", f"no sum on record; sha256 {got}"
    if got != expected:
        return "damaged", f"sha256: expected {expected}, got {got}: damaged, or a file of another data set"
    return "ok", f"sha256 {got}"
