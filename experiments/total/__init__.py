"""The evaluation of "Dynamic Message Ordering for Topic-Based Publish/Subscribe Systems" (MIDLAB
technical report 9/2011, section 6), run again.

The figures' curves are images we do not have, so only the numbers stated in the text can be
compared; everything else is a shape. Every table says which of the two it is.

| module     | figures | what runs                                                            |
|------------|---------|----------------------------------------------------------------------|
| latency    | 9-12    | the real machines up to 3,000 hosts, and a lean model for 10,000     |
| overhead   | 13, 14  | sequencing groups by sparse counting, expectations over publications |
| buffer     | 15      | the real machines in the simulator                                   |
| dynamic    | 16-20   | lean model (swaps): groups, order and counters, event by event       |
| swap_fit   | 16, 17  | the same, in search of the stated numbers of swaps                   |
| moving     | 16-20   | the real machines, 1,000 topics and 300 nodes, beside the lean model |
| patterns   | 21      | the real machines in the simulator                                   |
| sources    | intro   | the same, with the two sources of the introduction                   |
| rivals     | 22-24   | the real machines, and a single sequencer, on slow uplinks           |

The lean model leaves out queues, loss and lines on links; tests/experiments holds it against the
real machines where both can run.
"""
