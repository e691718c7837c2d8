//! PageRank of a graph that nobody sees whole.

use crate::builder::{Bit, Builder};
use crate::gadgets::words::bits_for;

/// PageRank of a private graph by power iteration on fixed-point numbers, as in GraphSC (Nayak and others 2015), whose
/// page ranks SIFO times.
///
/// The graph is a list of edges, source and target: duplicates count once; an edge from a node to itself, or with a
/// number that is not a node's, counts nothing and so fills a list. A node without edges gives its rank to all. Ranks are
/// in units of 2^-fraction, 2^-fraction / nodes to begin with, and with d = round(0.85 * 2^fraction) each
/// iteration makes
///
/// ```text
/// share[u] = rank[u] / out[u]                                       rounded down
/// rank[v]  = (2^fraction - d) / nodes + d * (sum of share[u]) / 2^fraction     both rounded down
/// ```
///
/// The circuit depends on these three numbers and on how many edges there may be, so it shows nothing else of the
/// graph. It has some 2 nodes^2 ANDs for each edge and, in each iteration, about fraction ANDs for each pair of nodes
/// and a small multiple of that for each node: 13,234 for 4 nodes with 24 edges, 10 iterations and 16 bits.
///
/// ```
/// use blindcore_circuit::gadgets::PageRank;
///
/// let pagerank = PageRank { nodes: 3, iterations: 20, fraction: 16 };
/// let ranks = pagerank.reference(&[(0, 2), (1, 2), (2, 0)]);
/// assert!(ranks[2] > ranks[0] && ranks[0] > ranks[1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRank {
    /// Nodes, 2 to 256.
    pub nodes: usize,
    /// How often ranks are passed on.
    pub iterations: usize,
    /// Bits of a rank after the point, 8 to 32.
    pub fraction: usize,
}

impl PageRank {
    /// Bits of a node's number.
    #[must_use]
    pub fn node_bits(&self) -> usize {
        bits_for(self.nodes - 1)
    }

    /// Bits of a rank: one before the point.
    #[must_use]
    pub fn rank_bits(&self) -> usize {
        self.fraction + 1
    }

    /// d.
    fn damping(&self) -> u64 {
        ((85u64 << self.fraction) + 50) / 100
    }

    /// What every node has without votes.
    fn base(&self) -> u64 {
        ((1u64 << self.fraction) - self.damping()) / self.nodes as u64
    }

    /// The ranks in the clear, bit for bit what the circuit gives.
    #[must_use]
    pub fn reference(&self, edges: &[(usize, usize)]) -> Vec<u64> {
        let n = self.nodes;
        let mut linked = vec![vec![false; n]; n];
        for &(source, target) in edges {
            if source != target && source < n && target < n {
                linked[source][target] = true;
            }
        }
        for row in &mut linked {
            if !row.contains(&true) {
                row.fill(true);
            }
        }
        let mut ranks = vec![(1u64 << self.fraction) / n as u64; n];
        for _ in 0..self.iterations {
            let share: Vec<u64> = ranks
                .iter()
                .zip(&linked)
                .map(|(rank, row)| rank / row.iter().filter(|l| **l).count() as u64)
                .collect();
            for (v, rank) in ranks.iter_mut().enumerate() {
                let votes: u64 = (0..n).filter(|u| linked[*u][v]).map(|u| share[u]).sum();
                *rank = self.base() + ((self.damping() * votes) >> self.fraction);
            }
        }
        ranks
    }
}

impl Builder {
    /// The ranks of the graph with these edges, each a source and a target of
    /// [`node_bits`](PageRank::node_bits).
    ///
    /// # Panics
    /// Nodes or fraction out of range, or node numbers of other widths.
    pub fn pagerank(&mut self, of: &PageRank, edges: &[(Vec<Bit>, Vec<Bit>)]) -> Vec<Vec<Bit>> {
        assert!(
            (2..=256).contains(&of.nodes) && (8..=32).contains(&of.fraction),
            "PageRank is of 2 to 256 nodes with 8 to 32 bits after the point, not of {} with {}",
            of.nodes,
            of.fraction
        );
        let (n, width) = (of.nodes, of.rank_bits());
        let mut linked = vec![vec![Bit::ZERO; n]; n];
        for (source, target) in edges {
            assert_eq!(
                (source.len(), target.len()),
                (of.node_bits(), of.node_bits()),
                "bits of a node's number"
            );
            let (source, target) = (self.one_hot(source), self.one_hot(target));
            for u in 0..n {
                for v in (0..n).filter(|v| *v != u) {
                    let this = self.and(source[u], target[v]);
                    linked[u][v] = self.or(linked[u][v], this);
                }
            }
        }
        let mut out = Vec::with_capacity(n);
        for row in &mut linked {
            let some = self.any(row);
            let none = self.not(some);
            // Exclusive: where there is none, all bits of the row are clear.
            row.iter_mut().for_each(|link| *link = self.xor(*link, none));
            out.push(self.popcount(row));
        }
        let mut ranks = vec![self.constant_word((1u128 << of.fraction) / n as u128, width); n];
        for _ in 0..of.iterations {
            let share: Vec<Vec<Bit>> =
                ranks.iter().zip(&out).map(|(rank, out)| self.divide(rank, out).0).collect();
            ranks = (0..n)
                .map(|v| {
                    let votes: Vec<Vec<Bit>> = (0..n).map(|u| self.mask(linked[u][v], &share[u])).collect();
                    let votes = self.sum(&votes, width);
                    let damped = self.multiply_constant(&votes, of.damping().into(), width + of.fraction);
                    let base = self.constant_word(of.base().into(), width);
                    self.add(&damped[of.fraction..], &base)
                })
                .collect();
        }
        ranks
    }
}
