"""Document lengths: corpora, histograms and the seeded packed samples drawn from them."""
