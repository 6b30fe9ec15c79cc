"""`python -m inorder`, and the file that spark-submit is given."""

from __future__ import annotations

from inorder.cli import main

if __name__ == "__main__":
    main()
