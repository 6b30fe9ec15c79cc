"""Sessions: messages once and in order between two machines, over networks that keep nothing."""
