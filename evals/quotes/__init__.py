"""What passes as a quotation: labelled ones, and near misses made from the blocks of data sets."""
