"""Block maps: the dynamic patterns, whose kept blocks are drawn for each KV head.

uniform_block: blocks of one size (the last one cut). variable_block: sizes drawn for each head, rows and
columns apart, at least 128 tokens, on average `block`. In each row of blocks the density's share of the
highest scores is kept; the maps are not causal, and the query heads of a group share one. Source of both:
arXiv 2510.17896.
"""

from longca.masks.blocks.block_map import BlockMap
from longca.masks.blocks.drawing import draw_block_map
from longca.masks.blocks.npz import load_block_map, save_block_map

__all__ = ["BlockMap", "draw_block_map", "load_block_map", "save_block_map"]
