"""The document generator: blocks of README.md and docs/ that commands make, and the studies behind them."""
