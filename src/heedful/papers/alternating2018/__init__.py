"""[A18] Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018: Figures
1 to 4, the grid search behind them, the run times of footnote 1, ranks, and rarely switching OFUL."""

from __future__ import annotations

from heedful.papers.alternating2018.figures import FIGURES

__all__ = ["FIGURES"]
