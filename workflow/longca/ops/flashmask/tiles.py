"""Tile sizes, by head_dim: the sizes that fit a Hopper SM."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tile:
    """rows queries by columns keys a step, `stages` steps of loads in flight, `warps` a program."""

    rows: int
    columns: int
    stages: int
    warps: int


@dataclass(frozen=True)
class Tiles:
    """One tile for each kernel, and how many tiles are classified at a time (at most 64: they are bits of a number)."""

    forward: Tile
    queries: Tile
    keys: Tile
    chunk: int = 64


BY_HEAD_DIM = {
    64: Tiles(Tile(128, 128, 3, 8), Tile(128, 64, 3, 8), Tile(64, 128, 3, 8)),
    128: Tiles(Tile(128, 128, 2, 8), Tile(128, 64, 3, 8), Tile(64, 128, 2, 8)),
}
# On a CPU only the interpreter runs: small tiles, so that few tokens cross many of them.
INTERPRETED = Tiles(Tile(32, 16, 1, 4), Tile(32, 16, 1, 4), Tile(16, 32, 1, 4), chunk=4)
