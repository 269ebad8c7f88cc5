"""Document lengths of a corpus, from its files to a histogram."""

from longca.data.corpus import Corpus
from longca.data.corpus_files import expand_files
from longca.data.counting import Tally
from longca.data.histogram import Histogram, histogram_of_lengths
from longca.data.progress import progress
from longca.data.workers import counting_processes
from longca.errors import LongcaError


def count_corpus(name: str, corpus: Corpus, workers: int) -> tuple[Histogram, Tally]:
    """Count every document of `corpus` with `workers` processes; progress goes to stderr under `name`.

    Raises LongcaError naming file and place for anything that keeps it from being counted whole: a file that
    matches nothing, is truncated or of another kind, a bad record (unless skipped), a subset that no record
    has, no document.
    """
    if corpus.files is not None:
        # The readers bring in Arrow, or the hub's library: only what this corpus needs.
        from longca.data.readers import read_batches

        files = expand_files(corpus.files, corpus.keys)
        total_bytes = sum(file.stat().st_size for file in files)
        batches = read_batches(files, corpus.keys)
    else:
        from longca.data.hugging_face import hub_batches

        total_bytes = None
        batches = hub_batches(corpus)
    tally = Tally()
    with counting_processes(corpus, workers) as count, progress(name, total_bytes) as advance:
        for stored_bytes, counted in count(batches):
            tally.add(counted)
            advance(stored_bytes, counted.lengths.total())
    _check_complete(name, corpus, tally)
    return histogram_of_lengths(tally.lengths), tally


def _check_complete(name: str, corpus: Corpus, tally: Tally) -> None:
    absent = [subset for subset in corpus.subsets or () if subset not in tally.subsets]
    if absent and tally.subsets:
        found = ", ".join(subset for subset, _ in tally.subsets.most_common(30))
        raise LongcaError(f"{name}: subsets: no record of {absent[0]!r}; the corpus has {found}")
    if not tally.lengths:
        source = corpus.hugging_face or ", ".join(corpus.files or ())
        raise LongcaError(
            f"{name}: no document to count in {source} ({tally.empty} empty, {tally.bad} bad records)"
        )
