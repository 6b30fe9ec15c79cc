"""The evaluation of "Parametric Subscriptions for Content-Based Publish/Subscribe Networks"
(section 5) and its worked example (figures 1, 4, 7), run again.

Real brokers and clients in virtual time, with a cost model instead of a clock (costs.py). The paper
states neither selectivity nor event rates, subscriptions per client or the number of vehicles
(E-C23): those are ours (workloads.py), and only factors can be compared.

| module | figures           | what runs                                         |
|--------|-------------------|---------------------------------------------------|
| golden | 1, 4, 7           | the example of six clients, message by message    |
| panels | 8a to 8l, table 1 | traffic and trading under rising update rates     |
| size   | (ours)            | table 1's factor for larger and smaller posets    |
| scale  | 9                 | up to 1,000 updates a second and subscriber       |

The paper's curves are images that we do not have; numbers are those of its text.
"""
