"""The evaluation of "Probabilistic FIFO Ordering In Publish/Subscribe Networks" (sections III and
IV), run again.

The paper's curves are images we do not have, so only the numbers in its text can be compared;
everything else is a shape. It states neither rates nor selectivity, message counts, link delays of
the large network, nor how often messages come out of order without the protocol: those are ours.

| module      | figures     | what runs                                                           |
|-------------|-------------|---------------------------------------------------------------------|
| delays      | 1a, 1b      | delays of pairs in a world of brokers, and laws fitted to them      |
| differences | 1c          | differences of delays of one path, and the exact law                |
| congestion  | 2a, 2b, 2c  | a world of 8 brokers whose workers are too few, or under a wave     |
| lanes       | lane        | a pair of a world against a stream of one path: they agree          |
| effect      | 3a, 3b      | a world of 46 brokers, recorded once, played to many receivers      |
| adaptive    | 4           | one pair of a world of 8 brokers whose publisher changes its rate   |

Worlds run without ordering (network.py keeps what each pair sends and gets); receivers then hear
exactly the same arrivals, as in the paper's testbed (receivers.py).
"""
