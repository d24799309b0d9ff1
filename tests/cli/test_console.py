"""What commands print is what they were given: names are no markup, and no emoji."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console

from heedful.cli.console import console, notes


@pytest.mark.parametrize("make", [console, notes])
def test_a_name_between_colons_is_no_emoji(make: Callable[[], Console], capsys: pytest.CaptureFixture[str]) -> None:
    make().print("always:a: the log cannot tell")
    told = capsys.readouterr()
    assert told.out + told.err == "always:a: the log cannot tell\n"
