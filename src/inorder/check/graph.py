"""Strongly connected components, without recursion: traces are longer than Python's stack."""

from __future__ import annotations


def components(successors: list[list[int]]) -> list[list[int]]:
    """Tarjan's components of a graph over 0..n-1; a component comes after all it leads to.

    >>> components([[1], [2], [1], []])
    [[2, 1], [0], [3]]
    """
    count = len(successors)
    index = [0] * count  # 1, 2, ... in the order found; 0 is unseen
    low = [0] * count
    waiting = [False] * count
    pending: list[int] = []
    found: list[list[int]] = []
    seen = 0
    for root in range(count):
        if index[root]:
            continue
        walk = [(root, 0)]
        while walk:
            node, step = walk.pop()
            if step == 0:
                seen += 1
                index[node] = low[node] = seen
                pending.append(node)
                waiting[node] = True
            else:
                low[node] = min(low[node], low[successors[node][step - 1]])
            following = successors[node]
            while step < len(following):
                other = following[step]
                step += 1
                if not index[other]:
                    walk.append((node, step))
                    walk.append((other, 0))
                    break
                if waiting[other]:
                    low[node] = min(low[node], index[other])
            else:
                if low[node] == index[node]:
                    found.append(_cut(pending, node, waiting))
    return found


def _cut(pending: list[int], node: int, waiting: list[bool]) -> list[int]:
    at = len(pending) - 1
    while pending[at] != node:
        at -= 1
    component = pending[at:][::-1]
    del pending[at:]
    for member in component:
        waiting[member] = False
    return component
