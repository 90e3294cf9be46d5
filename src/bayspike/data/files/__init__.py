"""Readers of single files: idx, AEDAT, N-MNIST, gesture arrays. Each refuses what is damaged, in one sentence."""
