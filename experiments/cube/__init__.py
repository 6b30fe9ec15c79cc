"""The evaluation of the thesis on the hypercube, run again.

João Paulo de Araujo, "A communication-efficient causal broadcast publish/subscribe system", thesis,
Sorbonne Université, 2019. Its curves are images we do not have; what its text, tables and captions
state is in thesis.py, beside our numbers in each table and as hollow marks over our curves.

| module   | figures             | what runs                                                    |
|----------|---------------------|--------------------------------------------------------------|
| trees    | 2.9, 4.8            | every node publishes over one tree with root 0               |
| entries  | 3.1                 | what a message carries as a barrier and as a clock           |
| bundles  | tables 4.1-4.3, 4.3 | the runs of chapter4.py, with and without aggregation        |
| delays   | 4.4 to 4.7, 4.9     | the same runs                                                |
| example  | 5.2                 | eight nodes, five subscribers                                |
| single   | 5.6, 5.7            | one publisher, one event                                     |
| several  | 5.8, table 5.1      | a quarter of the nodes or all of them publish once           |
| answers  | 5.9                 | some ask, and all others answer                              |
| topics   | 5.10                | 128 topics, by Zipf's law or evenly                          |
| churn    | 5.11a, 5.11b        | members come and go                                          |
| brokered | 5.12                | trees of brokers with guests                                 |
| cells    | none (6.2.2.3)      | geographic topics: cells of several sizes                    |

All missing points run as one sweep on Spark (`--master`; experiments/sweep.py), the cheapest first;
versus.py judges what the thesis says of VCube-PS, page.py writes docs/reproduction-cube.md.

Everything is run by machines in the simulator's world, at all sizes: srpt.py and srpt_brokers.py
are the thesis's baselines, world.py puts protocols onto the thesis's network of output queues,
workloads.py says who publishes when, meter.py what is measured, shown.py what tables share.
Where the thesis's words leave a choice, both readings are rows of the table.

The `latency` of a table is the mean over the subscribers. The thesis defines it as the time until
the last of them has the event (`to the last`), but all of its numbers fit the mean.
"""
