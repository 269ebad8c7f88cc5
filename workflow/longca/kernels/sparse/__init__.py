"""Block-sparse kernels, one file each."""
