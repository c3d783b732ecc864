"""Effect of one person's worst files on another person."""
