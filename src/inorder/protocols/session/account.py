"""What sessions have done, in figures that can be summed over machines."""

from __future__ import annotations


def describe(account: dict[str, float]) -> list[str]:
    """The summed accounts, for people.

    >>> describe({"frames": 200.0, "frames_early": 30.0, "frames_again": 4.0, "acks": 90.0})
    ['links    200 frames, 15.0 % came early, 2.0 % were sent again']
    """
    frames = account.get("frames", 0.0)
    if not frames:
        return []
    early, again = (100 * account[name] / frames for name in ("frames_early", "frames_again"))
    return [
        f"links    {frames:.0f} frames, {early:.1f} % came early, {again:.1f} % were sent again"
    ]
