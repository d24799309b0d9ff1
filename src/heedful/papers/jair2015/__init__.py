"""[J15] Shivaswamy & Joachims, *Coactive Learning*, JAIR 53, 2015: Figures 1 to 18, Lemma 3, a remark of 6.3."""

from __future__ import annotations

from heedful.papers.jair2015 import baselines, convex, perceptron

FIGURES = (*perceptron.FIGURES, *baselines.FIGURES, *convex.FIGURES, perceptron.LEMMA_3)
