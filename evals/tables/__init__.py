"""Whether SQL over tables gives what it should."""
