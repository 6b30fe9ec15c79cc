"""The Spark driver: the same promises over tables too large for one process."""
