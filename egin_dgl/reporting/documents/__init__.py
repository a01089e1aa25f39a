"""For someone who keeps the documents true: the blocks in them that commands make again."""
