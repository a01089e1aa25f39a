"""Models that scikit-learn fits, instead of gradient steps: kernel machines and forests."""
