//! Divisions of idle workers and what each class must get, in lines of a format of their own:
//!
//! `name: total idle percent/running/waiting/given ...`, indented lines go on with the line before.
//! Where `given` is missing, only the sum is prescribed.

/// Worked examples and small whole systems, ties among them.
pub const WORKED: &str = "
01 two entitlement iterations: 1000 290 30/200/290/94 25/300/230/0 20/0/150/150 15/100/150/46 10/110/90/0
    0/0/328/0
02 one class without waiting: 1000 290 30/200/290/194 25/300/230/26 20/0/0/0 15/100/50/50 10/110/90/20
03 entitlement plus loan: 1000 290 30/200/10/10 25/300/230/157 20/0/0/0 15/100/50/50 10/110/90/73
04 previously inactive classes: 1000 300 30/0/300/105 25/0/230/81 20/0/400/66 15/0/650/48 10/700/800/0
05 zero pct class holds running: 1000 290 35/200/100/100 30/300/50/0 20/0/200/159 0/100/300/0
    15/110/500/31
06 percents sum 80 normalised: 1000 290 30/200/100/100 25/300/50/10 15/0/200/172 0/100/300/0 10/110/500/8
07 large volume: 10000 3770 30/1660/14220/830 25/101/9401/1282 16/420/16542/641 14/14/4194/754
    6/404/15944/76 4/42/11136/187 3/977/9145/0 2/2612/16781/0
08 larger queues same result: 10000 3770 30/1660/14220/830 25/101/29401/1282 16/420/16542/641
    14/14/104194/754 6/404/15944/76 4/42/11136/187 3/977/209145/0 2/2612/416781/0
09 two active of eight: 3270 13 48/0/0/0 25/0/0/0 10/0/0/0 9/3111/22121/0 3/0/0/0 2/0/0/0 2/146/24099/13
    1/0/0/0
10 loaned workers: 4000 743 48/0/0/0 25/0/0/0 10/0/0/0 9/3111/22121/157 3/0/0/0 2/0/0/0 2/146/24099/586
    1/0/0/0
11 two loan iterations: 4000 819 48/0/0/0 25/0/0/0 10/0/0/0 9/3111/22121/319 3/0/0/0 2/0/0/0 2/70/500/500
    1/0/0/0
02 spread too small: 10000 3770 30/1660/14220/830 25/101/9401/1282 16/420/16542/641 14/14/104194/754
    6/404/5944/76 4/42/11136/187 3/977/9145/0 2/2612/16781/0
empty requestor zero workers: 0 0 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/215/0
requestor counts: 5 5 60/0/6/3 40/0/9/2
unknown requestor borrows: 5 5 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/2/2
unknown requestor fills cluster: 5 5 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/5/5
no idle second job waits: 5 0 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/5/3/0
more tasks than nodes: 5 5 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/10/5
no nodes: 0 0 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/10/0
no tasks: 5 5 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/0/0
affinity first round: 5 5 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/0/8/5
affinity second round: 5 2 40/0/0/0 25/0/0/0 10/0/0/0 17/0/0/0 3/0/0/0 2/0/0/0 2/0/0/0 1/3/3/2
";

/// Hand-made edges.
pub const EDGES: &str = "
one idle two borrowers no loans yet: 4 1 50/1/0/0 30/1/1/1 20/1/1/0
single class: 10 7 100/3/50/7
single class pct 50 normalised: 10 7 50/3/50/7
small pct rounds to zero target: 5 5 97/0/0/0 2/0/3/3 1/0/3/2
all idle no waiting: 50 50 60/0/0/0 40/0/0/0
zero pct running hold workers: 50 30 60/0/50/18 40/0/50/12 0/20/25/0
more running than workers: 10 0 60/9/9/0 40/6/9/0
rebalance spread equal threshold no trigger: 100 0 60/40/50/0 40/60/0/0
";

/// Cases in which nothing is due to anybody although workers are idle: only the sum is prescribed.
pub const NOTHING_DUE: &str = "
one idle two borrowers 100w: 100 1 50/49/0 30/30/5 20/20/5
degenerate 01: 5 5 0/0/3 28/0/0 24/0/1 30/0/5 18/0/5
degenerate 03: 2 1 4/0/4 1/0/0 21/0/3 6/0/0 30/0/0 16/0/1 3/0/0 0/1/1 7/0/0 12/0/0
degenerate 05: 5 5 9/0/0 49/0/3 19/0/5 23/0/4
degenerate 06: 5 2 26/0/5 63/3/0 11/0/5
degenerate 08: 2 1 38/1/0 15/0/0 18/0/2 8/0/4
degenerate 09: 1 1 0/0/2 5/0/1 3/0/0 2/0/1 18/0/0
degenerate 10: 2 1 46/0/0 49/1/0 4/0/1 1/0/5
degenerate 11: 2 1 4/0/3 37/0/0 0/0/0 10/0/0 3/0/0 2/0/2 23/0/0 7/0/2 13/1/2 1/0/0
degenerate 13: 5 4 25/0/3 13/1/2 31/0/3 7/0/0 26/0/0 6/0/0 5/0/0 23/0/5
degenerate 17: 2 1 6/0/2 28/0/0 29/0/0 15/1/2 11/0/0
degenerate 18: 1 1 9/0/1 16/0/1 2/0/0 28/0/0 7/0/0 19/0/5 39/0/0 26/0/0
degenerate 19: 500 279 8/0/901 19/0/0 45/184/0 25/37/0 3/0/423
degenerate 20: 100 85 16/0/0 2/0/0 12/0/1 7/4/172 23/2/5 3/0/4 15/0/174 1/1/80 10/8/80 11/0/0
degenerate 21: 200 175 20/2/0 42/21/4 6/1/131 7/1/0 25/0/226
degenerate 22: 50 37 5/1/3 29/8/4 27/0/66 3/0/10 17/4/0
degenerate 23: 5 4 42/1/7 9/0/9 36/0/0 13/0/0
degenerate 24: 5 5 27/0/0 39/0/0 24/0/1 13/0/4 29/0/4
degenerate 25: 2 1 21/0/0 15/0/2 39/0/0 30/0/0 16/1/1
";
