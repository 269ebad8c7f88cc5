"""Kernels: one way each to compute attention on one device, with what it supports declared beside it."""
