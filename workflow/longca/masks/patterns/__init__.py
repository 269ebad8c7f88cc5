"""The static patterns, a file each family, and the names of the dynamic ones (`longca.masks.blocks`).

Source: "Long-Context Attention Benchmark: From Kernel Efficiency to Distributed Context Parallelism" (arXiv
2510.17896); where its released code contradicts itself, each pattern's rule says what is kept here.
"""

from longca.masks.patterns.block_causal_document import BLOCK_CAUSAL_DOCUMENT
from longca.masks.patterns.causal_blockwise import CAUSAL_BLOCKWISE
from longca.masks.patterns.document import CAUSAL_DOCUMENT, FULL_DOCUMENT
from longca.masks.patterns.full_and_causal import CAUSAL, FULL
from longca.masks.patterns.global_sliding import GLOBAL_SLIDING
from longca.masks.patterns.pattern import DEFAULT_PARAMETERS, SMALLEST_PARAMETER, Pattern, Tokens
from longca.masks.patterns.prefix_lm import PREFIX_LM_CAUSAL, PREFIX_LM_DOCUMENT
from longca.masks.patterns.shared_question import SHARED_QUESTION
from longca.masks.patterns.sliding_window import CAUSAL_SLIDING_WINDOW, FULL_SLIDING_WINDOW

__all__ = ["DEFAULT_PARAMETERS", "DYNAMIC_PATTERNS", "PATTERNS", "SMALLEST_PARAMETER", "Pattern", "Tokens"]

PATTERNS: dict[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        FULL,
        CAUSAL,
        FULL_DOCUMENT,
        CAUSAL_DOCUMENT,
        FULL_SLIDING_WINDOW,
        CAUSAL_SLIDING_WINDOW,
        SHARED_QUESTION,
        GLOBAL_SLIDING,
        CAUSAL_BLOCKWISE,
        PREFIX_LM_CAUSAL,
        PREFIX_LM_DOCUMENT,
        BLOCK_CAUSAL_DOCUMENT,
    )
}

DYNAMIC_PATTERNS = ("uniform_block", "variable_block")
