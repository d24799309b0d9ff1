"""Checks for what you write yourself: a learner, a kind of feedback. They need no test framework.

`check_learner(learner, world)` runs a learner in a simulated world, as `heedful check FILE.py:Class` does.
`check_kind(case)` yields the checks that loops of every kind must pass, as functions of an empty folder. With pytest:

    @pytest.mark.parametrize("check", check_kind(CASE), ids=lambda check: check.__name__)
    def test_my_kind(check, tmp_path):
        check(tmp_path)
"""

from heedful.core.conformance import CheckResult, check_learner
from heedful.testing.kind_checks import KindCase, check_kind
from heedful.testing.loop_state import bits, bits_from_scratch

__all__ = ["CheckResult", "KindCase", "bits", "bits_from_scratch", "check_kind", "check_learner"]
