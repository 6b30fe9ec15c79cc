"""The evaluation of "Dynamic Message Ordering for Topic-Based Publish/Subscribe Systems" (MIDLAB
technical report 9/2011, section 6), run again.

The figures' curves are images we do not have, so only the numbers stated in the text can be
compared; everything else is a shape. Every table says which of the two it is.

| module     | figures | what runs                                                            |
|------------|---------|----------------------------------------------------------------------|
| latency    | 9-12    | lean model: routes and trees of the real overlay, delays in bulk     |
| overhead   | 13, 14  | sequencing groups by sparse counting, expectations over publications |
| buffer     | 15      | the real machines in the simulator                                   |
| dynamic    | 16-20   | lean model (swaps): groups, order and counters, event by event       |
| patterns   | 21      | the real machines in the simulator                                   |
| rivals     | 22-24   | the real machines, and a single sequencer, on slow uplinks           |

The lean model leaves out queues, loss and lines on links; tests/experiments holds it against the
real machines where both can run.
"""
