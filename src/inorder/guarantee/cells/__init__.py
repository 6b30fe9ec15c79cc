"""Topics with places: events at a point or in an area, subscriptions to areas, on a hypercube.

grid.py: which cells belong to what. holder.py: subscriptions to areas as subscriptions to topics of
cells. peer.py: publications to the topic of their cell. `[network.cube.cells]` of a scenario.
"""
