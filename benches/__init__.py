"""Speed, as ratios side by side in one run. `python -m benches` runs all of them."""
