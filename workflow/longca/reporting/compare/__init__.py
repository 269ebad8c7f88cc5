"""Two studies beside each other: the same cells on another device, or with other versions."""
