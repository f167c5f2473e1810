"""Language: program text and numpy's notation in, EinGraphs out; the words for tensors, labels and decompositions."""
