"""One person's worst files, and what another person notices of them."""
