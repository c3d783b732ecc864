"""What the tables of docs/ say about names that the code only mentions. Tests compare them with the code."""
