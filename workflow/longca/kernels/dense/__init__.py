"""Dense kernels, one file each."""
