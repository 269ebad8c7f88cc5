"""The lengths that are modelled: a tile a GPU at least, so much at most as a mask is drawn for in seconds."""

# Fewer tokens are less than a tile of a kernel, of which a rate measured on thousands says nothing.
LEAST_A_GPU = 128
# The masks of all patterns are drawn in about a second each and 0.2 GB: 256k tokens on each of 1024 GPUs.
MOST = 256 * 2**20


def reason_against(tokens: int, gpus: int) -> str | None:
    """Why `tokens` on each of so many GPUs are not modelled; None where they are."""
    said = f"{tokens} a GPU, {tokens * gpus} over {gpus} GPUs,"
    if tokens < LEAST_A_GPU:
        least = f"{LEAST_A_GPU} a GPU, {LEAST_A_GPU * gpus} in all, or more"
        return f"{said} are less than a tile of a kernel each; allowed: {least}"
    if tokens * gpus > MOST:
        return f"{said} are more than masks are drawn for; allowed: {MOST // 2**20}M in all, or fewer"
    return None
