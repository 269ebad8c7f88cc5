"""Masks of the static patterns: drawn, written to a file and read from one."""

from longca.masks.mask.drawing import draw_mask
from longca.masks.mask.json_file import mask_to_json, read_mask
from longca.masks.mask.mask import Mask

__all__ = ["Mask", "draw_mask", "mask_to_json", "read_mask"]
