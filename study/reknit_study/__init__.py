"""What was measured of reknit: the experiments of five papers on reordering, rerun."""
