"""Views of a mask: the forms kernels take, each derived from the slices alone."""
