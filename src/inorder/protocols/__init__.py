"""Order over networks that keep nothing: the papers' protocols, a room each."""
