"""A corpus of a study that need not be whole yet: lengths are counted before there is a grid."""

from pathlib import Path

from longca.data.corpus import Corpus, parse_corpus
from longca.data.histogram import PUBLISHED
from longca.errors import LongcaError
from longca.names import unknown_name
from longca.study.loading import read_config


def read_corpus(study: Path, name: str) -> Corpus:
    """The corpus `name` of a study's `datasets` section; nothing else of it is looked at.

    Raises LongcaError naming file, key and what is allowed.
    """
    datasets = read_config(study).get("datasets")
    if not isinstance(datasets, dict) or name not in datasets:
        described = map(str, datasets) if isinstance(datasets, dict) else ()
        raise LongcaError(f"{study}: datasets: {unknown_name(name, {*described, *PUBLISHED}, 'dataset')}")
    return parse_corpus(name, datasets[name], f"{study}: datasets.{name}")
