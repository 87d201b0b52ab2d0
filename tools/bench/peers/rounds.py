"""Measuring in pairs: Batten and a peer right after another, in turning order, round after round.

A ratio is that of the medians of one pair, so that what slows the machine for a while slows both. Median and quartiles are
over the rounds.
"""
import statistics


def percentile(values, share):
    """The smallest value that a share of the values don't exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    if len(values) < 2:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def ratios(pairs):
    """Peer's over Batten's median of each pair of lists of times."""
    return [statistics.median(theirs) / statistics.median(ours) for ours, theirs in pairs]


def measure(rounds, peers, take):
    """Takes pairs: yields (round, peer, {"batten": times, peer: times}).

    take(name): times of a slice of that program. Who of a pair is first turns with the rounds, and the peers' order too.
    """
    for index in range(rounds):
        turn = index % len(peers)
        for peer in peers[turn:] + peers[:turn]:
            pair = ("batten", peer) if index % 2 == 0 else (peer, "batten")
            found = {name: take(name) for name in pair}
            yield index, peer, found
