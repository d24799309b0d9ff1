"""Where the real data sets lie: a folder shared/data beside the checkout, or HEEDFUL_DATA."""

import os
from pathlib import Path

import pytest

from films import shared


@pytest.fixture(scope="session")
def data_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
    folder = Path(os.environ.get("HEEDFUL_DATA") or beside)
    if not folder.is_dir():
        pytest.skip("the data sets are not here: put them into ../shared/data or name their folder in HEEDFUL_DATA")
    return folder


@pytest.fixture(scope="session")
def mq2008() -> Path:
    return shared("letor4-mq2008")
