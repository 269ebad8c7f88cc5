"""How far context parallelism carries: the cost model fitted to a study's records, checked, and projected."""
