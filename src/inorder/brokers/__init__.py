"""What holds logs, a room each. The seam is logs/broker.py; nothing above these files knows their
names."""
