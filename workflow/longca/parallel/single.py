"""One rank: the local kernel alone, with nothing to communicate. What every mechanism is held against."""

from longca.parallel.form import Form
from longca.parallel.ulysses import sequence

FORM = Form("one rank, which holds everything: no communication", sequence)
