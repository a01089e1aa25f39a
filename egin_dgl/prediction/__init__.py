"""What was trained, used: runs loaded again, answers for new graphs, and what the answers rest on."""
